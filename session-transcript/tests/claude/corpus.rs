//! Some hundred sessions with all that is awkward, each compared with the truth about it.

use session_core::history::{Resumability, SessionKind};

use crate::lines::{SESSION, entry_at, notices, read};
use crate::session::{Dice, Truth, Writer};

/// What is awkward about a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trap {
    None,
    Noise,
    Rewound,
    Compacted,
    Moved,
    Torn,
    Blank,
    Helper,
    MetadataOnly,
    LateTitle,
    Forked,
}

const TRAPS: [Trap; 11] = [
    Trap::None,
    Trap::Noise,
    Trap::Rewound,
    Trap::Compacted,
    Trap::Moved,
    Trap::Torn,
    Trap::Blank,
    Trap::Helper,
    Trap::MetadataOnly,
    Trap::LateTitle,
    Trap::Forked,
];

fn session(seed: u64, trap: Trap) -> (Vec<u8>, Truth) {
    let mut writer = Writer::new(Dice::new(seed));
    writer.sidechain = trap == Trap::Helper;
    writer.raw(r#"{"type":"mode","mode":"normal","sessionId":"s"}"#);
    writer.raw(
        r#"{"type":"file-history-snapshot","messageId":"x","snapshot":{"messageId":"x","timestamp":"1999"}}"#,
    );
    if trap == Trap::MetadataOnly {
        writer.title();
        return writer.finish(false, false);
    }
    if trap == Trap::Forked {
        let mut donor = Writer::new(Dice::new(seed + 1_000_000));
        donor.turn();
        donor.turn();
        writer.fork(&donor);
        writer.truth.first_prompt = donor.truth.first_prompt.clone();
        writer.adopt(&donor);
    }
    if trap == Trap::Noise {
        writer.noise();
    }
    let turns = 1 + writer.dice.below(8);
    for turn in 0..turns {
        if trap == Trap::Compacted && turn > 0 && writer.dice.one_in(2) {
            writer.compact();
        }
        if trap == Trap::Rewound && turn > 0 {
            writer.rewind();
        }
        if trap == Trap::Moved && turn == 1 {
            (writer.cwd, writer.branch) = ("/work/other tree".into(), "feat/x".into());
        }
        writer.prompt();
        for _ in 0..writer.dice.below(4) {
            writer.reply();
        }
        if trap == Trap::Blank {
            writer.raw("");
        }
        if trap == Trap::LateTitle || writer.dice.one_in(3) {
            writer.title();
        }
    }
    writer.finish(trap != Trap::Helper, trap == Trap::Torn)
}

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
