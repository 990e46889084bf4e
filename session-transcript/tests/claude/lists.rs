//! What a list shows, and what it leaves out.

use adapter_claude::ClaudeTranscripts;
use serde_json::{Value, json};
use session_core::SessionCatalog as _;
use session_core::history::{Depth, ListQuery, Resumability, SessionKind, Title, TitleSource, Unresumable};
use session_transcript::FileCatalog;

use crate::lines::{SESSION, boundary, entry, entry_at, read, record, reply, snapshot, text, user};

const EMPTY: Resumability = Resumability::No(Unresumable::Empty);

fn title(text: &str, source: TitleSource) -> Option<Title> {
    Some(Title { text: text.to_owned(), source })
}

#[test]
fn nothing_that_was_not_said_makes_a_session() {
    let summary = json!({"type": "summary", "summary": "old", "leafUuid": "x"});
    let titles =
        [json!({"type": "custom-title", "customTitle": "a"}), json!({"type": "mode", "mode": "normal"})];
    assert_eq!(entry(&[snapshot("a"), snapshot("b")]).resumable, EMPTY);
    assert_eq!(entry(&[]).resumable, EMPTY);
    assert_eq!(entry(&[summary]).resumable, EMPTY);
    assert_eq!(entry(&titles).resumable, EMPTY);
    assert_eq!(entry(&[user("u", None, "   \n")]).resumable, EMPTY);
    let real = [snapshot("u"), user("u", None, "hello"), reply("a", Some("u"))];
    assert_eq!(entry(&real).resumable, Resumability::Yes);
    assert_eq!(entry(&real[..2]).resumable, Resumability::Yes);
}

#[test]
fn a_file_of_rubbish_is_damaged_and_not_empty() {
    let file = read(b"rubbish\nmore\n");
    let entry = entry_at(&file, &format!("-work/{SESSION}.jsonl")).unwrap();
    assert_eq!(entry.resumable, Resumability::No(Unresumable::Damaged));
}

#[test]
fn prompts_are_what_somebody_typed_and_not_what_is_put_around_it() {
    let mut caveat = user("u1", None, "<local-command-caveat>Caveat: …</local-command-caveat>");
    caveat["isMeta"] = json!(true);
    let lines = [
        snapshot("x"),
        caveat,
        user(
            "u2",
            Some("u1"),
            "<command-name>/clear</command-name>\n <command-message>clear</command-message>",
        ),
        user("u3", Some("u2"), "<local-command-stdout>Done</local-command-stdout>"),
        user("u4", Some("u3"), "[Request interrupted by user]"),
        user(
            "u5",
            Some("u4"),
            "<system-reminder>Be kind.</system-reminder>\n<system-reminder>x</system-reminder>Add paging",
        ),
        user("u6", Some("u5"), "<system-reminder>alone</system-reminder>"),
        reply("a", Some("u6")),
    ];
    let found = entry(&lines);
    assert_eq!(found.first_prompt.as_deref(), Some("Add paging"));
    assert_eq!((found.label(), found.turns), ("Add paging", Some(2)));
    assert_eq!(read(&text(&lines)).counts().messages, 6);
    // Where nothing else was typed, the command's name is better than nothing.
    assert_eq!(entry(&lines[..3]).first_prompt.as_deref(), Some("/clear"));
}

#[test]
fn reminders_may_be_blocks_of_their_own_and_an_image_may_stand_alone() {
    let with = |content: Value| entry(&[record("user", "u", None, json!({"message": {"content": content}}))]);
    let reminder = json!({"type": "text", "text": "<system-reminder>x</system-reminder>"});
    let image = json!({"type": "image", "source": {"data": "abc"}});
    let split =
        with(json!([reminder, {"type": "text", "text": "/"}, {"type": "text", "text": "path is gone"}]));
    assert_eq!(split.first_prompt.as_deref(), Some("/path is gone"));
    let alone = with(json!([image]));
    assert_eq!((alone.first_prompt, alone.turns, alone.resumable), (None, Some(1), Resumability::Yes));
    assert_eq!(with(json!([reminder])).turns, Some(0));
}

#[test]
fn a_name_given_last_beats_what_the_agent_made_up_later() {
    let given = |text: &str| json!({"type": "custom-title", "customTitle": text});
    let made_up = json!({"type": "ai-title", "aiTitle": "c"});
    let mut lines = vec![user("u", None, "hello"), reply("a", Some("u")), given("billing rework")];
    lines.extend((0..2000).map(|at| user(&format!("m{at}"), None, &"x".repeat(2000))));
    assert_eq!(entry(&lines).title, title("billing rework", TitleSource::Given));
    lines.extend([given("a"), given("b"), made_up.clone()]);
    assert_eq!(entry(&lines).title, title("b", TitleSource::Given));
    lines.push(json!({"type": "agent-name", "agentName": "d"}));
    assert_eq!(entry(&lines).title, title("d", TitleSource::Given));
    lines.push(given(""));
    assert_eq!(entry(&lines).title, title("c", TitleSource::Agent));
    let summary = json!({"type": "summary", "summary": "s"});
    assert_eq!(entry(&[summary.clone(), user("u", None, "x")]).title, title("s", TitleSource::Summary));
    assert_eq!(entry(&[summary, made_up]).title, title("c", TitleSource::Agent));
}

#[test]
fn keys_inside_of_what_a_tool_is_called_with_are_no_keys_of_the_line() {
    let input = json!({"summary": "no", "customTitle": "no", "gitBranch": "no", "cwd": "/no", "type": "summary", "uuid": "no"});
    let mut call = reply("a", Some("u"));
    call["message"]["content"] = json!([{"type": "tool_use", "id": "t", "name": "n", "input": input}]);
    let quoted = user("u", None, r#"","customTitle":"no","cwd":"/no\"#);
    let found = entry(&[quoted, call]);
    assert_eq!((found.title, found.branch.as_deref()), (None, Some("main")));
    assert_eq!(found.last_cwd, Some("/work".into()));
    // A key may be written with escapes, and what is written last counts.
    let line = br#"{"\u0074ype":"user","uuid":"a","cwd":"/old","cwd":"/n\u0065w","message":{"content":"h\ud83d\ude00\ud800"}}"#;
    let found = entry_at(&read(line), &format!("p/{SESSION}.jsonl")).unwrap();
    assert_eq!((found.cwd, found.first_prompt.as_deref()), (Some("/new".into()), Some("h\u{1F600}\u{FFFD}")));
}

#[test]
fn a_file_where_all_is_a_helpers_is_a_helpers() {
    let helper = |mut line: Value| {
        line["isSidechain"] = json!(true);
        line
    };
    let mode = json!({"type": "mode", "mode": "normal", "sessionId": SESSION});
    let lines = [mode, helper(user("u", None, "look")), helper(reply("a", Some("u")))];
    for from in [0, 1] {
        let found = entry(&lines[from..]);
        assert_eq!((found.kind, found.turns), (SessionKind::Sidechain, Some(1)));
        assert_eq!(found.resumable, Resumability::No(Unresumable::Sidechain));
        assert_eq!(found.first_prompt.as_deref(), Some("look"));
    }
    let file = read(&text(&[user("u", None, "x")]));
    for place in
        ["-work/agent-12345678.jsonl".to_owned(), format!("-work/{SESSION}/subagents/agent-a1.jsonl")]
    {
        assert_eq!(entry_at(&file, &place).unwrap().kind, SessionKind::Sidechain, "{place}");
    }
    for place in
        ["-work/notes-3.jsonl", "-work/x/subagents/agent-a1.jsonl", "a.jsonl", "-work/agent-1.meta.json"]
    {
        assert_eq!(entry_at(&file, place), None, "{place}");
    }
    // A helper inside of a main conversation says nothing of it.
    let mut other = helper(user("h", None, "helper's task"));
    other["cwd"] = json!("/w/tree");
    let found = entry(&[other.clone(), user("u", None, "mine"), other]);
    assert_eq!(
        (found.first_prompt.as_deref(), found.turns, found.kind),
        (Some("mine"), Some(1), SessionKind::Main)
    );
    assert_eq!(found.last_cwd, Some("/work".into()));
}

#[test]
fn a_session_of_a_work_tree_began_in_the_folder_that_the_tree_was_made_from() {
    let state = json!({"type": "worktree-state", "sessionId": SESSION,
        "worktreeSession": {"originalCwd": "/w/demo", "worktreePath": "/trees/fix", "worktreeName": "fix"}});
    let mut there = user("u", None, "x");
    there["cwd"] = json!("/trees/fix");
    let mut here = there.clone();
    here["cwd"] = json!("/w/demo/sub");
    let folders = |lines: &[Value]| {
        let found = entry(lines);
        assert_eq!((found.parent, found.kind, found.resumable), (None, SessionKind::Main, Resumability::Yes));
        [found.cwd, found.last_cwd].map(|folder| folder.unwrap().to_str().unwrap().to_owned())
    };
    assert_eq!(folders(&[state.clone(), there.clone()]), ["/w/demo", "/trees/fix"]);
    // Written anew at the end, it does not say where the session is.
    assert_eq!(folders(&[state.clone(), there.clone(), state.clone()]), ["/w/demo", "/trees/fix"]);
    assert_eq!(folders(&[here, state.clone(), there.clone(), state]), ["/w/demo/sub", "/trees/fix"]);
    let left = json!({"type": "worktree-state", "worktreeSession": null, "sessionId": SESSION});
    assert_eq!(folders(&[left, there.clone()]), ["/trees/fix", "/trees/fix"]);
    // A program's prompt may wait before it, or behind it.
    let queued =
        json!({"type": "queue-operation", "operation": "enqueue", "content": "x", "sessionId": SESSION});
    let state = json!({"type": "worktree-state", "sessionId": SESSION,
        "worktreeSession": {"originalCwd": "/w/demo", "worktreePath": "/trees/fix", "worktreeName": "fix"}});
    for lines in [[queued.clone(), state.clone(), there.clone()], [state, queued, there]] {
        let found = entry(&lines);
        assert_eq!((found.cwd, found.kind), (Some("/w/demo".into()), SessionKind::Headless));
    }
}

#[test]
fn what_a_program_began_is_headless() {
    let queued =
        json!({"type": "queue-operation", "operation": "enqueue", "content": "x", "sessionId": SESSION});
    let mode = json!({"type": "mode", "mode": "normal", "sessionId": SESSION});
    let prompt = user("u", None, "x");
    assert_eq!(entry(&[mode, queued.clone(), prompt.clone()]).kind, SessionKind::Headless);
    assert_eq!(entry(&[prompt.clone(), queued]).kind, SessionKind::Main);
    let mut sdk = prompt;
    sdk["entrypoint"] = json!("sdk-cli");
    assert_eq!(entry(&[sdk]).kind, SessionKind::Headless);
}

#[test]
fn a_large_file_of_helpers_work_shows_its_own_few_turns() {
    let mut lines = vec![json!({"type": "custom-title", "customTitle": "the one"})];
    for turn in 0_usize..14 {
        lines.push(user(
            &format!("u{turn}"),
            turn.checked_sub(1).map(|at| format!("u{at}")).as_deref(),
            "go",
        ));
        for step in 0..200 {
            let mut helper = reply(&format!("h{turn}.{step}"), None);
            helper["isSidechain"] = json!(true);
            helper["message"]["content"] = json!("y".repeat(1000));
            lines.push(helper);
        }
    }
    lines.push(boundary("b", "u13"));
    let found = entry(&lines);
    assert_eq!((found.turns, found.resumable), (Some(14), Resumability::Yes));
    assert_eq!(found.title, title("the one", TitleSource::Given));
}

#[test]
fn a_fork_names_the_session_that_it_comes_from() {
    let mut line = user("u", None, "x");
    line["forkedFrom"] = json!({"messageUuid": "m", "sessionId": "33333333-1111-4111-8111-111111111111"});
    let parent = entry(&[line]).parent.unwrap();
    assert_eq!(parent.id.as_str(), "33333333-1111-4111-8111-111111111111");
}

#[test]
fn of_a_long_prompt_the_beginning_is_shown_wherever_it_is_cut() {
    for space in 0..40 {
        let long = format!("go{}{}", "-".repeat(space), "\\\u{1F980}\u{1}é\"\n ".repeat(3000));
        let shown = entry(&[user("u", None, &long)]).first_prompt.unwrap();
        assert!(long.starts_with(&shown), "{space}");
        assert!(shown.len() > 1020, "{space}: {}", shown.len());
    }
    let long = format!("<system-reminder>{}</system-reminder>Add paging", "x".repeat(20_000));
    assert_eq!(entry(&[user("u", None, &long)]).first_prompt.as_deref(), Some("Add paging"));
    let spaces = format!("\t{}Add paging", " ".repeat(20_000));
    assert_eq!(entry(&[user("u", None, &spaces)]).resumable, Resumability::Yes);
}

#[tokio::test]
async fn a_quick_list_finds_a_given_name_behind_the_first_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("projects/-work");
    std::fs::create_dir_all(&project).unwrap();
    let mut lines = vec![user("u0", None, "hello"), json!({"type": "custom-title", "customTitle": "given"})];
    lines[0]["cwd"] = json!("/work");
    for n in 0..400 {
        lines.push(user(&format!("u{}", n + 1), Some(&format!("u{n}")), &"more ".repeat(80)));
        // Without a time at the end, all of the file would be read for one.
        lines[n + 2]["timestamp"] = json!("2026-03-01T10:00:00.000Z");
    }
    lines.push(json!({"type": "ai-title", "aiTitle": "made up"}));
    std::fs::write(project.join(format!("{SESSION}.jsonl")), text(&lines)).unwrap();
    let format = ClaudeTranscripts::new(Default::default());
    let query =
        ListQuery { depth: Depth::Quick, state_dir: Some(dir.path().to_owned()), ..ListQuery::default() };
    let listing = FileCatalog::new(format).list(&query).await.unwrap();
    assert_eq!(listing.sessions[0].title, title("given", TitleSource::Given));
    assert!(!listing.sessions[0].exact);
}
