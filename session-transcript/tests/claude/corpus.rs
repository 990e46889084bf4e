//! Some hundred sessions with all that is awkward, each compared with the truth about it.

use session_core::history::{Resumability, SessionKind};

use crate::lines::{SESSION, entry_at, notices, read};
use crate::session::Truth;
use crate::traps::{TRAPS, session};

#[test]
fn every_field_of_every_session_is_as_the_truth_says() {
    for seed in 1..=220 {
        let trap = TRAPS[seed as usize % TRAPS.len()];
        let (text, truth) = session(seed, trap);
        let ours = ours(&text);
        assert_eq!(ours, expected(truth), "seed {seed}, {trap:?}");
    }
}

/// What a list shows of the first prompt.
fn expected(mut truth: Truth) -> Truth {
    if let Some(prompt) = &mut truth.first_prompt {
        let end = (0..=prompt.len().min(1024)).rfind(|end| prompt.is_char_boundary(*end));
        prompt.truncate(end.unwrap());
    }
    truth
}

fn ours(text: &[u8]) -> Truth {
    let summary = read(text);
    let counts = summary.counts();
    assert_eq!(counts.skipped, 0);
    let entry = entry_at(&summary, &format!("-work/{SESSION}.jsonl")).unwrap();
    let helper = entry.kind == SessionKind::Sidechain;
    let [given, made_up, summary_line] = summary.titles().map(|title| title.map(str::to_owned));
    let path = |path: Option<std::path::PathBuf>| path.map(|path| path.to_str().unwrap().to_owned());
    // The chain of helpers is not followed here; the truth counts it as any other.
    let chain = [counts.prompts, counts.messages, counts.queued, counts.all_messages];
    let [prompts, messages, queued, all] = if helper { helper_chain(text) } else { chain };
    Truth {
        listed: !helper && entry.resumable == Resumability::Yes,
        first_prompt: entry.first_prompt,
        given,
        made_up,
        summary: summary_line,
        last_noted: summary.last_noted_prompt().map(str::to_owned),
        cwds: path(entry.cwd).zip(path(entry.last_cwd)),
        branch: entry.branch,
        counts: [
            counts.lines,
            counts.bytes,
            prompts,
            messages,
            queued,
            all,
            counts.replies,
            counts.compactions,
        ],
        usage: counts.usage,
        usage_new: counts.usage_new,
        usage_of_sidechains: counts.usage_of_sidechains,
        torn: !notices(&summary).is_empty(),
    }
}

/// The same file, were it no helper's.
fn helper_chain(text: &[u8]) -> [u64; 4] {
    let text =
        String::from_utf8(text.to_vec()).unwrap().replace(r#""isSidechain":true"#, r#""isSidechain":false"#);
    let counts = read(text.as_bytes()).counts();
    [counts.prompts, counts.messages, counts.queued, counts.all_messages]
}
