//! `checkpoints`, `diff`, `rewind`, `undo`, `fork`, `clear` and `rebind`, with an agent that a script plays.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::runs::{machine, rejoin, run};
use crate::support::{Machine, Said};

/// A mailbox with two prompts that change files by shell, and a file of a person's.
fn worked() -> Machine {
    let machine = machine();
    fs::write(machine.project.join("a.txt"), "one\n").unwrap();
    fs::write(machine.project.join("c.txt"), "kept\n").unwrap();
    run(&machine, &[], "do: echo two > a.txt; echo new > b.txt").ok();
    run(&machine, &[], "do: rm c.txt; chmod 600 a.txt").ok();
    machine
}

fn json(machine: &Machine, words: &[&str]) -> Value {
    rejoin(machine, &[words, &["--json"]].concat()).ok().json()
}

fn text(machine: &Machine, name: &str) -> Option<String> {
    fs::read_to_string(machine.project.join(name)).ok()
}

fn mode(machine: &Machine, name: &str) -> u32 {
    fs::metadata(machine.project.join(name)).unwrap().permissions().mode() & 0o777
}

/// Documents of these commands, by the shape that they have.
pub(crate) fn samples() -> Vec<(&'static str, Value)> {
    let machine = worked();
    let socket = std::os::unix::net::UnixListener::bind(machine.project.join("socket")).unwrap();
    run(&machine, &[], "do: mkdir d").ok();
    drop(socket);
    let mut all = vec![
        ("checkpoints", json(&machine, &["checkpoints", "issue-42", "--all"])),
        ("diff", json(&machine, &["diff", "issue-42"])),
    ];
    let first = all[0].1["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    all.push(("diff", json(&machine, &["diff", "issue-42", &first])));
    fs::write(machine.project.join("a.txt"), "mine\n").unwrap();
    fs::write(machine.project.join("mine.txt"), "mine\n").unwrap();
    all.push(("rewind", json(&machine, &["rewind", "issue-42", "-n", "3", "--dry-run"])));
    let partial = rejoin(&machine, &["rewind", "issue-42", "-n", "3", "--json"]);
    assert_eq!(partial.code, 1, "{partial:?}");
    all.push(("rewind", partial.json()));
    all.push(("rewind", json(&machine, &["undo", "issue-42"])));
    all.push(("rewind", json(&machine, &["rewind", "issue-42"])));
    all.push(("fork", json(&machine, &["fork", "issue-42", "other"])));
    all.push(("fork", json(&machine, &["fork", "issue-42"])));
    all.push(("summarise", json(&machine, &["summarise", "issue-42"])));
    all.push(("summarise", json(&machine, &["handover", "issue-42", "codex"])));
    all.push(("summarise", json(&machine, &["compact", "other"])));
    all.push(("fork", json(&machine, &["clear", "issue-42"])));
    all
}

#[test]
fn what_shell_did_is_taken_back_and_the_taking_back_too() {
    let machine = worked();
    let preview = rejoin(&machine, &["rewind", "issue-42", "-n", "2", "--dry-run"]).ok();
    assert!(preview.stdout.contains("  M a.txt (mode 600 to 644)\n  D b.txt\n  A c.txt\n"), "{preview:?}");
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("two\n"), "nothing was done");

    let done = rejoin(&machine, &["rewind", "issue-42", "-n", "2"]).ok();
    assert!(done.stdout.contains("3 paths put back"), "{done:?}");
    let all = |machine: &Machine| ["a.txt", "b.txt", "c.txt"].map(|name| text(machine, name));
    assert_eq!(all(&machine), [Some("one\n".to_owned()), None, Some("kept\n".to_owned())]);
    assert_eq!(mode(&machine, "a.txt"), 0o644);

    rejoin(&machine, &["undo", "issue-42"]).ok();
    assert_eq!(all(&machine), [Some("two\n".to_owned()), Some("new\n".to_owned()), None]);
    assert_eq!(mode(&machine, "a.txt"), 0o600);
}

#[test]
fn the_next_run_knows_the_kept_turns_alone() {
    let machine = worked();
    rejoin(&machine, &["rewind", "issue-42"]).ok();
    let next = run(&machine, &["--json"], "go on").ok().json();
    assert_eq!((&next["text"], &next["resumed"]), (&"prompt 2: go on".into(), &true.into()), "{next}");
    rejoin(&machine, &["rewind", "issue-42", "-n", "2"]).ok();
    let next = run(&machine, &["--json"], "anew").ok().json();
    assert_eq!((&next["text"], &next["resumed"]), (&"prompt 1: anew".into(), &false.into()), "{next}");
}

#[test]
fn a_prompt_that_has_all_ignored_is_taken_back_all_the_same() {
    let machine = machine();
    fs::write(machine.project.join("a.txt"), "one\n").unwrap();
    run(&machine, &[], "do: echo '*' > .gitignore; echo two > a.txt; echo new > b.txt").ok();
    let preview = rejoin(&machine, &["rewind", "issue-42", "--dry-run"]).ok();
    for said in ["  D .gitignore\n", "  M a.txt\n", "  b.txt (ignored)\n"] {
        assert!(preview.stdout.contains(said), "{said}: {preview:?}");
    }
    rejoin(&machine, &["rewind", "issue-42"]).ok();
    assert_eq!((text(&machine, "a.txt").as_deref(), text(&machine, ".gitignore")), (Some("one\n"), None));
    rejoin(&machine, &["undo", "issue-42"]).ok();
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("two\n"));
    assert_eq!(text(&machine, ".gitignore").as_deref(), Some("*\n"));
}

#[test]
fn what_nobody_covers_any_more_is_not_told_as_put_back() {
    let machine = machine();
    fs::write(machine.project.join("a.txt"), "one\n").unwrap();
    fs::write(machine.project.join("b.txt"), "one\n").unwrap();
    fs::create_dir(machine.project.join("d")).unwrap();
    fs::write(machine.project.join("d/x"), "one\n").unwrap();
    run(&machine, &[], "do: rm -r a.txt d; mkfifo a.txt d new; echo two > b.txt").ok();
    let partial = rejoin(&machine, &["rewind", "issue-42"]);
    assert_eq!(partial.code, 1, "{partial:?}");
    for (path, told) in [("a.txt", true), ("d", true), ("new", false)] {
        assert_eq!(partial.stderr.contains(&format!("\n{path}: ")), told, "{path}: {partial:?}");
    }
    assert_eq!(text(&machine, "b.txt").as_deref(), Some("one\n"));
    // Without the other, it goes back.
    fs::remove_file(machine.project.join("a.txt")).unwrap();
    fs::remove_file(machine.project.join("d")).unwrap();
    let checkpoints = json(&machine, &["checkpoints", "issue-42"]);
    let first = checkpoints["checkpoints"][0]["id"].as_str().unwrap();
    rejoin(&machine, &["rewind", "issue-42", "--to", first]).ok();
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("one\n"));
    assert_eq!(text(&machine, "d/x").as_deref(), Some("one\n"));
}

#[test]
fn a_prompt_that_makes_a_repository_or_removes_one_is_taken_back() {
    let machine = machine();
    fs::write(machine.project.join("a.txt"), "one\n").unwrap();
    run(&machine, &[], "do: mkdir -p .git; echo ref > .git/HEAD; echo two > a.txt").ok();
    assert!(rejoin(&machine, &["diff", "issue-42"]).ok().stdout.contains("M a.txt"));
    run(&machine, &[], "do: rm -r .git; echo three > a.txt").ok();
    rejoin(&machine, &["rewind", "issue-42"]).ok();
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("two\n"));
    fs::create_dir(machine.project.join(".git")).unwrap();
    fs::write(machine.project.join(".git/HEAD"), "ref\n").unwrap();
    rejoin(&machine, &["rewind", "issue-42"]).ok();
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("one\n"));
    rejoin(&machine, &["undo", "issue-42"]).ok();
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("two\n"));
}

#[test]
fn what_changed_while_no_prompt_covered_it_stays_unless_it_is_said() {
    let machine = machine();
    let write = |text: &str| fs::write(machine.project.join("env"), text).unwrap();
    write("one\n");
    run(&machine, &[], "do: echo env > .gitignore; echo two > env").ok();
    write("mine\n");
    run(&machine, &[], "do: echo x > other").ok();
    let partial = rejoin(&machine, &["rewind", "issue-42", "-n", "2"]);
    assert_eq!((partial.code, text(&machine, "env").as_deref()), (1, Some("mine\n")), "{partial:?}");
    assert_eq!((text(&machine, "other"), text(&machine, ".gitignore")), (None, None));
    assert!(partial.stderr.contains("env: somebody else changed it, too"), "{partial:?}");
}

#[test]
fn a_part_alone_goes_back_and_what_goes_apart_is_said() {
    let machine = worked();
    let apart = |only| json(&machine, &["rewind", "issue-42", "--only", only, "--dry-run"])["apart"].clone();
    assert_eq!(apart("files"), serde_json::json!({"prompts": 1, "lacks": 0, "paths": null}));
    assert_eq!(apart("conversation"), serde_json::json!({"prompts": null, "lacks": null, "paths": 2}));
    let files = rejoin(&machine, &["rewind", "issue-42", "--only", "files"]).ok();
    assert!(files.stdout.contains("may still tell of 1 prompt"), "{files:?}");
    assert_eq!(text(&machine, "c.txt").as_deref(), Some("kept\n"));
    assert_eq!(run(&machine, &[], "go on").ok().stdout, "prompt 3: go on\n");
    let talk = rejoin(&machine, &["rewind", "issue-42", "--only", "conversation"]).ok();
    assert!(talk.stdout.contains("0 paths put back"), "{talk:?}");
    assert_eq!(run(&machine, &[], "once more").ok().stdout, "prompt 3: once more\n");
}

#[test]
fn what_somebody_else_changed_stays_unless_it_is_said() {
    let machine = worked();
    fs::write(machine.project.join("a.txt"), "mine\n").unwrap();
    fs::write(machine.project.join("mine.txt"), "mine\n").unwrap();
    let preview = rejoin(&machine, &["rewind", "issue-42", "-n", "2", "--dry-run"]).ok();
    assert!(preview.stdout.contains("only somebody else changed them:\n  mine.txt\n"), "{preview:?}");
    let partial = rejoin(&machine, &["rewind", "issue-42", "-n", "2"]);
    assert_eq!(partial.code, 1, "{partial:?}");
    assert!(partial.stderr.contains("a.txt: somebody else changed it, too"), "{partial:?}");
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("mine\n"));
    rejoin(&machine, &["undo", "issue-42"]).ok();
    let done = rejoin(&machine, &["rewind", "issue-42", "-n", "2", "--overwrite"]).ok();
    assert!(done.stdout.contains("3 paths put back"), "{done:?}");
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("one\n"));
    assert_eq!(text(&machine, "mine.txt").as_deref(), Some("mine\n"));
}

#[test]
fn a_checkpoint_is_named_by_the_beginning_of_its_id() {
    let machine = worked();
    let listed = json(&machine, &["checkpoints", "issue-42"]);
    let all = listed["checkpoints"].as_array().unwrap();
    assert_eq!(all.len(), 2, "{listed}");
    assert_eq!(all[0]["prompt"], "do: echo two > a.txt; echo new > b.txt");
    let first = &all[0]["id"].as_str().unwrap()[..8];
    let shown = rejoin(&machine, &["checkpoints", "issue-42@claude"]).ok();
    assert!(shown.stdout.lines().nth(1).unwrap().starts_with(first), "{shown:?}");
    let diff = rejoin(&machine, &["diff", "issue-42", first, "--patch"]).ok();
    assert!(diff.stdout.starts_with("M a.txt\n"), "{diff:?}");
    assert!(diff.stdout.contains("  -one\n  +two\n") && diff.stdout.contains("A b.txt\n"), "{diff:?}");
    rejoin(&machine, &["rewind", "issue-42", "--to", first]).ok();
    assert_eq!(text(&machine, "a.txt").as_deref(), Some("one\n"));
    for (word, code) in [("", 2), ("zzzz", 3)] {
        let said = rejoin(&machine, &["rewind", "issue-42", "--to", word]);
        assert_eq!(said.code, code, "{said:?}");
    }
}

#[test]
fn a_fork_goes_its_own_way_and_a_clear_can_be_taken_up_again() {
    let machine = worked();
    let fork = json(&machine, &["fork", "issue-42", "second"]);
    assert_eq!(fork["turns"], 2, "{fork}");
    let on = |mailbox: &str, prompt: &str| {
        rejoin(&machine, &["run", "-m", mailbox, "-a", "claude", "--", prompt]).ok().stdout
    };
    assert_eq!(on("second", "beside"), "prompt 3: beside\n");
    assert_eq!(on("issue-42", "as before"), "prompt 3: as before\n");

    let cleared = json(&machine, &["clear", "issue-42"]);
    let session = cleared["before"].as_str().unwrap();
    assert_eq!(on("issue-42", "anew"), "prompt 1: anew\n");
    rejoin(&machine, &["rebind", "issue-42", session]).ok();
    assert_eq!(on("issue-42", "back"), "prompt 4: back\n");
    let taken = rejoin(&machine, &["fork", "issue-42", "second"]);
    assert_eq!(taken.code, 7, "{taken:?}");
    // A key is one here, too, and never the name of a mailbox.
    assert_eq!(json(&machine, &["fork", "issue-42", "third@claude"])["key"]["mailbox"], "third");
    for key in ["issue-42@claude", "third@codex"] {
        assert_eq!(rejoin(&machine, &["fork", "issue-42", key]).code, 7, "{key}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    let machine = worked();
    let code = |words: &[&str]| -> Said { rejoin(&machine, words) };
    for (words, expected) in [
        (&["checkpoints", "nobody"][..], 3),
        (&["rewind", "issue-42", "-n", "9"], 7),
        (&["undo", "issue-42"], 3),
        (&["rebind", "issue-42", "nothing"], 3),
        (&["rewind", "issue-42", "-n", "0"], 7),
    ] {
        let said = code(words);
        assert_eq!(said.code, expected, "{words:?}: {said:?}");
        assert!(said.stderr.starts_with("rejoin: "), "{said:?}");
    }
    // One that was made without checkpoints cannot be taken back.
    let words = ["run", "-m", "bare", "-a", "claude", "--no-checkpoints", "--", "do: echo x > x.txt"];
    rejoin(&machine, &words).ok();
    assert_eq!(code(&["rewind", "bare"]).code, 7);
}

#[test]
fn where_several_agents_worked_the_key_of_one_is_asked_for_and_is_enough() {
    let machine = worked();
    rejoin(&machine, &["handover", "issue-42", "codex"]).ok();
    rejoin(&machine, &["close", "issue-42"]).ok();
    for command in ["checkpoints", "undo", "rewind", "clear", "diff", "fork", "summarise"] {
        let said = rejoin(&machine, &[command, "issue-42"]);
        assert_eq!(said.code, 4, "{said:?}");
        let advice = "rejoin: several agents worked for issue-42; in its place, give the key of one, as in issue-42@claude\n    \
                      issue-42@claude\n    issue-42@codex\n";
        assert_eq!(said.stderr, advice, "{command}");
    }
    let told = rejoin(&machine, &["undo", "issue-42", "--json"]).json();
    for key in told["error"]["candidates"].as_array().unwrap() {
        let key = key.as_str().unwrap();
        let listed = rejoin(&machine, &["checkpoints", key]).ok();
        assert!(listed.stderr.contains(&format!("{key} has no checkpoints")), "{listed:?}");
        let undone = rejoin(&machine, &["undo", key]);
        assert_eq!(undone.code, 3, "{undone:?}");
        assert!(undone.stderr.contains(key), "{undone:?}");
    }
}

#[test]
fn a_summary_is_printed_and_passed_on_once() {
    let machine = worked();
    let summary = rejoin(&machine, &["summarise", "issue-42", "--steer", "the modes"]).ok();
    for part in ["do: echo two > a.txt", "do: rm c.txt", "the modes"] {
        assert!(summary.stdout.contains(part), "{part}: {summary:?}");
    }
    let late = rejoin(&machine, &["summarise", "issue-42", "--from", "2"]).ok();
    assert!(!late.stdout.contains("echo two"), "{late:?}");
    for (words, code) in
        [(&["--from", "3"][..], 3), (&["--bytes", "10"], 2), (&["--from", "1", "--up-to", "1"], 2)]
    {
        assert_eq!(rejoin(&machine, &[&["summarise", "issue-42"], words].concat()).code, code, "{words:?}");
    }
    assert_eq!(rejoin(&machine, &["handover", "issue-42", "issue-42@claude"]).code, 7);

    let compacted = rejoin(&machine, &["compact", "issue-42"]).ok();
    assert!(compacted.stdout.contains("with a summary of 2 turns"), "{compacted:?}");
    assert_eq!(rejoin(&machine, &["compact", "issue-42"]).code, 7, "one waits already");
    let first = run(&machine, &["--json"], "go on").ok().json();
    // The agent of these tests reads a line of its prompt.
    let told = "prompt 1: <earlier-conversation>";
    assert_eq!((&first["resumed"], &first["text"]), (&false.into(), &told.into()), "{first}");
    let second = run(&machine, &["--json"], "and on").ok().json();
    assert_eq!((&second["resumed"], &second["text"]), (&true.into(), &"prompt 2: and on".into()), "{second}");
}

/// Everything that is listed, by its id: root, origin and how.
fn lineages(machine: &Machine) -> Vec<[String; 4]> {
    let listed = json(machine, &["list", "--by-root"]);
    let word = |of: &Value, name: &str| of[name].as_str().unwrap_or("-").to_owned();
    let sessions = listed["sessions"].as_array().unwrap().iter();
    sessions.map(|of| ["id", "root", "from", "lineage"].map(|name| word(of, name))).collect()
}

#[test]
fn lists_group_by_root_whatever_a_session_came_from() {
    let machine = worked();
    let session = |mailbox: &str, prompt: &str| {
        let words = ["run", "-m", mailbox, "-a", "claude", "--json", "--", prompt];
        rejoin(&machine, &words).ok().json()["session"].as_str().unwrap().to_owned()
    };
    let told = |id: &str| lineages(&machine).into_iter().find(|[of, ..]| of == id).unwrap();
    let root = session("issue-42", "go on");
    assert_eq!(told(&root)[1..], [&root, "-", "-"]);
    let fork = json(&machine, &["fork", "issue-42", "second"])["session"].as_str().unwrap().to_owned();
    let keyless = json(&machine, &["fork", "issue-42"])["session"].as_str().unwrap().to_owned();
    rejoin(&machine, &["rewind", "issue-42"]).ok();
    let rewound = session("issue-42", "another way");
    rejoin(&machine, &["clear", "issue-42"]).ok();
    let cleared = session("issue-42", "anew");
    rejoin(&machine, &["compact", "issue-42"]).ok();
    let compacted = session("issue-42", "in short");
    let other = session("unrelated", "something else");
    // The last one is lost.
    let listed = json(&machine, &["list"]);
    let of_last = listed["sessions"].as_array().unwrap().iter().find(|of| of["id"] == *compacted).unwrap();
    fs::remove_file(of_last["path"].as_str().unwrap()).unwrap();
    let fell_back = session("issue-42", "after a loss");
    // A hand-over begins nothing.
    rejoin(&machine, &["handover", "unrelated", "third@claude"]).ok();
    let told_of = session("third", "go on");

    for (id, from, how) in [
        (&fork, &root, "forked"),
        (&keyless, &root, "forked"),
        (&rewound, &root, "rewound"),
        (&cleared, &rewound, "cleared"),
        // What it came from is gone, and leads to the root all the same.
        (&fell_back, &compacted, "fell_back"),
    ] {
        assert_eq!(told(id)[1..], [&root, from.as_str(), how]);
    }
    for id in [&other, &told_of] {
        assert_eq!(told(id)[1..], [id, "-", "-"]);
    }
    // Of each mailbox, one is in force, in every list alike.
    let in_force = [&fell_back, &other, &told_of];
    for words in [&["list"][..], &["list", "--by-root"]] {
        let listed = json(&machine, words);
        let bound = listed["sessions"].as_array().unwrap().iter().filter(|of| of["bound"] == true);
        let bound: HashSet<&str> = bound.map(|of| of["id"].as_str().unwrap()).collect();
        let expected: HashSet<&str> = in_force.iter().chain([&&fork]).map(|id| id.as_str()).collect();
        assert_eq!(bound, expected, "{words:?}");
    }
    let order: Vec<String> = lineages(&machine).into_iter().map(|[_, root, ..]| root).collect();
    let mut groups = order.clone();
    groups.dedup();
    assert_eq!(groups.len(), 3, "{order:?}");

    let shown = rejoin(&machine, &["list", "--by-root"]).ok().stdout;
    let lines: Vec<&str> = shown.lines().collect();
    let at = lines.iter().position(|line| line.contains(&root)).unwrap();
    assert!(!lines[at].starts_with("  "), "{shown}");
    for (line, word) in lines[at + 1..at + 5].iter().zip(["fell back", "after a clear", "rewound", "forked"])
    {
        assert!(line.starts_with("  ") && shown.contains(&format!("  {word}: ")), "{word}: {line}: {shown}");
    }
    let line = |id: &str| *lines.iter().find(|line| line.contains(id)).unwrap();
    let marked = lines.iter().filter(|line| line.contains(", in force] ")).count();
    assert_eq!(marked, 4, "{shown}");
    assert!(line(&fell_back).contains("  fell back: [issue-42, in force] "), "{shown}");
    assert!(line(&fork).contains("  forked: [second, in force] "), "{shown}");
    assert!(line(&other).contains("  [unrelated, in force] "), "{shown}");
    assert!(line(&cleared).contains("  after a clear: [issue-42] "), "{shown}");
    assert!(!line(&keyless).contains('['), "{shown}");
    // Where the root is gone, its id stands over them.
    let of_root = listed["sessions"].as_array().unwrap().iter().find(|of| of["id"] == *root).unwrap();
    fs::remove_file(of_root["path"].as_str().unwrap()).unwrap();
    let shown = rejoin(&machine, &["list", "--by-root"]).ok().stdout;
    assert!(shown.contains(&format!("{root}  (not listed)")), "{shown}");
    assert_eq!(told(&fork)[1..], [&root, &root, "forked"]);
}
