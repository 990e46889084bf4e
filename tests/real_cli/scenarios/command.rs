//! The built command `rejoin`, beside the CLI in a person's own home: it finds the CLI in its `PATH`, and knows nothing else of
//! the place.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rejoin::NativeId;
use rejoin::core::decide::Reach;
use rejoin_test_support::ContextReply;
use serde_json::{Value, json};

use crate::pinned::{self, Pinned};
use crate::stage::Stage;

/// The mailbox of the runs.
const MAILBOX: &str = "issue-7";
/// A word that the first prompt has, and nothing else.
const WORD: &str = "pelican";

/// A stage with a work tree in which a person sits.
struct Desk {
    stage: Stage,
    tree: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl Desk {
    fn new(cli: &Pinned) -> Self {
        let stage = Stage::new(cli);
        let tree = stage.place.root.join("tree");
        stage.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
        let bin = cli.program.parent().unwrap().display();
        let bare = stage.place.bare(cli).set("PATH", format!("{bin}:{}", cli.path));
        let agent = cli.under_test();
        let environment = agent.in_person(agent.environment(&stage.place, bare));
        let pair = |(name, value): (&OsStr, &OsStr)| (name.to_owned(), value.to_owned());
        let variables = environment.map().iter().map(pair).collect();
        Self { stage, tree, variables }
    }

    /// A program in a folder, with this environment and no other; how it ended, and what it said.
    fn start(
        &self,
        program: &Path,
        args: &[String],
        folder: &Path,
        env: &[(String, Option<String>)],
    ) -> (i32, String) {
        let mut command = Command::new(program);
        command.args(args).current_dir(folder).stdin(Stdio::null()).env_clear();
        // As a shell has it that went there.
        command.envs(self.variables.iter().cloned()).env("PWD", folder);
        for (name, value) in env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = command.output().unwrap();
        let (said, trouble) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        let code = output.status.code().unwrap_or(-1);
        assert!(code >= 0 && !trouble.contains("panicked"), "{args:?}: {said}{trouble}");
        if code != 0 {
            println!(
                "{} {args:?} in {} ended with {code}: {said}{trouble}",
                program.display(),
                folder.display()
            );
        }
        (code, said)
    }

    /// The command in a folder.
    fn rejoin(&self, folder: &Path, words: &[&str]) -> (i32, String) {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        self.start(&pinned::command(), &words, folder, &[])
    }

    /// The document of the command, which has to succeed.
    fn json(&self, folder: &Path, words: &[&str]) -> Value {
        let (code, said) = self.rejoin(folder, &[&["--json"], words].concat());
        assert_eq!(code, 0, "{words:?}: {said}");
        serde_json::from_str(&said).unwrap()
    }

    /// The CLI itself, as a person calls it who gives it one prompt, and what it makes the model see.
    fn cli(
        &self,
        folder: &Path,
        session: Option<&NativeId>,
        prompt: &str,
        env: &[(String, Option<String>)],
    ) -> ContextReply {
        let before = self.stage.model.requests().len();
        let args = self.stage.cli.under_test().one_prompt(session, prompt);
        let (code, said) = self.start(&self.stage.cli.program, &args, folder, env);
        assert_eq!(code, 0, "{args:?}: {said}");
        let requests = self.stage.model.requests();
        let turn = requests[before..].iter().rfind(|request| request.is_turn());
        ContextReply::of(&turn.unwrap_or_else(|| panic!("no turn: {said}")).user_texts)
    }

    /// The one session that the command lists.
    fn only(&self, folder: &Path) -> Value {
        let listing = self.json(folder, &["list"]);
        assert_eq!(
            (&listing["complete"], &listing["notices"]),
            (&true.into(), &Value::Array(vec![])),
            "{listing}"
        );
        let sessions = listing["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{listing}");
        sessions[0].clone()
    }

    /// `git worktree move`, and no index is left.
    fn move_tree(&self) -> PathBuf {
        let moved = self.stage.place.root.join("moved");
        self.stage.git(&["worktree", "move", self.tree.to_str().unwrap(), moved.to_str().unwrap()]);
        self.forget_index();
        moved
    }

    /// Deletes the indexes of lists.
    fn forget_index(&self) {
        let cache = self.stage.place.home().join(".cache/rejoin");
        assert!(cache.is_dir(), "the command keeps its indexes there");
        std::fs::remove_dir_all(cache).unwrap();
    }

    /// Has the session be found in this folder. `false`: this version cannot do that, and nothing was changed.
    fn relocate(&self, session: &NativeId, to: &Path, more: &[&str]) -> bool {
        let words = [&["--json", "relocate", session.as_str()], more].concat();
        let (code, said) = self.rejoin(to, &words);
        let document: Value = serde_json::from_str(&said).unwrap();
        let anywhere = self.stage.rules.reach == Reach::Anywhere;
        match (code, document["outcome"].as_str()) {
            (0, Some("nothing_to_do" | "noted")) => assert!(anywhere, "{document}"),
            (0, Some("done")) => {
                let there = |name: &str| Path::new(document[name].as_str().unwrap()).exists();
                // In a database, the folder alone is another one.
                let moved = document["from_path"] == document["to_path"] || !there("from_path");
                assert!(!anywhere && moved && there("to_path"), "{document}");
            }
            // It goes by the project, which is the same.
            (0, Some("already")) => assert_eq!(self.stage.rules.reach, Reach::Repository, "{document}"),
            (7, Some("refused")) => {
                assert!(!anywhere, "{document}");
                return false;
            }
            _ => panic!("{code}: {document}"),
        }
        true
    }

    /// How the command says that the session is continued, asked in a folder: where, and with what in the environment.
    fn resumption(
        &self,
        folder: &Path,
        session: &NativeId,
        more: &[&str],
    ) -> (PathBuf, Vec<(String, Option<String>)>) {
        let words = [&["resume", session.as_str()], more].concat();
        let document = self.json(folder, &words);
        let invocation = &document["invocation"];
        let (code, line) = self.rejoin(folder, &words);
        assert_eq!((code, line.trim_end()), (0, invocation["line"].as_str().unwrap()));
        assert_eq!(invocation["program"], *self.stage.cli.agent, "{invocation}");
        let args = invocation["args"].as_array().unwrap();
        assert!(args.contains(&session.as_str().into()), "{invocation}");
        let variable = |of: &Value| (text(&of["name"]), of["value"].as_str().map(str::to_owned));
        let env = invocation["env"].as_array().unwrap().iter().map(variable).collect();
        (PathBuf::from(text(&invocation["cwd"])), env)
    }

    /// The word is found in the session's prompt.
    fn search(&self, session: &NativeId) {
        let (code, said) = self.rejoin(&self.tree, &["--json", "search", WORD]);
        let found: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((code, &found["complete"]), (0, &true.into()), "{found}");
        assert_eq!(found["sessions"][0]["session"]["id"], session.as_str(), "{found}");
        let hits = found["sessions"][0]["hits"].as_array().unwrap();
        let is_prompt = |hit: &Value| hit["place"] == "prompt" && text(&hit["excerpt"]).contains(WORD);
        assert!(hits.iter().any(is_prompt), "{found}");
    }

    /// One run of the mailbox: its route, and what the model saw.
    fn run(&self, folder: &Path, prompt: &str) -> (String, ContextReply) {
        let document = self.json(folder, &["run", "-m", MAILBOX, "-a", &self.stage.cli.agent, "--", prompt]);
        let said = text(&document["text"]);
        let saw = ContextReply::parse(&said).unwrap_or_else(|| panic!("{document}"));
        (text(&document["route"]), saw)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn id(session: &Value) -> NativeId {
    NativeId::new(text(&session["id"]))
}

fn saw(user_turns: usize, first: &str, last: &str) -> ContextReply {
    ContextReply { user_turns, first: first.to_owned(), last: last.to_owned() }
}

/// What the CLI wrote by itself is listed, shown, searched, and continued by the line that the command prints; also when git
/// moved the work tree and the index is gone.
pub(super) async fn a_session_of_a_person(cli: &Pinned) {
    let desk = Desk::new(cli);
    // opencode quotes a prompt of several words that stands in its arguments.
    let first = format!("{WORD}s");
    assert_eq!(desk.cli(&desk.tree, None, &first, &[]), saw(1, &first, &first));
    let session = id(&desk.only(&desk.tree));
    let (folder, env) = desk.resumption(&desk.tree, &session, &[]);
    assert_eq!((&folder, env.len()), (&desk.tree, 0), "it lies at the agent's own place");
    assert_eq!(desk.cli(&folder, Some(&session), "beta", &env), saw(2, &first, "beta"));

    let listed = desk.only(&desk.tree);
    assert_eq!(id(&listed), session);
    let told = ["mailbox", "first_prompt", "turns", "cwd", "resumable", "exact", "skipped_lines"]
        .map(|of| listed[of].clone());
    let tree = desk.tree.to_str().unwrap();
    let expected = json!([null, first, 2, tree, true, true, 0]);
    assert_eq!(Value::from_iter(told), expected, "{listed}");

    let shown = desk.json(&desk.tree, &["show", session.as_str()]);
    let entries = shown["entries"].as_array().unwrap().iter();
    let prompts = entries.filter(|entry| entry["kind"] == "prompt" && entry["meta"] == false);
    let prompts: Vec<_> =
        prompts.filter_map(|entry| entry["blocks"].as_array()?.last()?["text"].as_str()).collect();
    // opencode 1.1 puts a newline behind a prompt that stands in its arguments.
    let prompts: Vec<_> = prompts.iter().map(|prompt| prompt.trim_end()).collect();
    assert_eq!(prompts, [first.as_str(), "beta"], "{shown}");
    desk.search(&session);
    let doctor = desk.json(&desk.tree, &["doctor"]);
    let agents = doctor["agents"].as_array().unwrap();
    let agent = agents.iter().find(|agent| agent["agent"] == *cli.agent).unwrap();
    let told = ["installed", "version", "verified", "resumable"].map(|of| agent[of].clone());
    assert_eq!(Value::from_iter(told), json!([true, cli.version, true, 1]), "{doctor}");

    let moved = desk.move_tree();
    assert_eq!(desk.only(&moved), listed, "the index changes nothing, nor does where somebody stands");
    // The agent notes the path alone, so nobody can know that it is this folder.
    if desk.relocate(&session, &moved, &["--other-project"]) {
        let (folder, env) = desk.resumption(&moved, &session, &["--other-project"]);
        assert_eq!(folder, moved);
        assert_eq!(desk.cli(&folder, Some(&session), "gamma", &env), saw(3, &first, "gamma"));
        assert_eq!(desk.only(&moved)["turns"], 3);
    }
}

/// A mailbox goes on through the command, also when git moved the work tree, when the folder got another name, and without an
/// index; and what it holds can be continued by hand.
pub(super) async fn a_mailbox_goes_on(cli: &Pinned) {
    let desk = Desk::new(cli);
    assert_eq!(desk.run(&desk.tree, "alpha"), ("fresh".to_owned(), saw(1, "alpha", "alpha")));
    assert_eq!(desk.run(&desk.tree, "beta"), ("resumed".to_owned(), saw(2, "alpha", "beta")));
    let listed = desk.only(&desk.tree);
    let told = ["mailbox", "bound", "turns", "resumable"].map(|of| listed[of].clone());
    assert_eq!(Value::from_iter(told), json!([MAILBOX, true, 2, true]), "{listed}");
    let session = id(&listed);

    let moved = desk.move_tree();
    assert_eq!(desk.only(&moved), listed);
    let goes_on = desk.relocate(&session, &moved, &[]);
    let third = desk.run(&moved, "gamma");
    if !goes_on {
        assert_eq!(
            third,
            ("fell_back".to_owned(), saw(1, "gamma", "gamma")),
            "said, and nothing weaker done"
        );
        return;
    }
    assert_eq!(third, ("resumed".to_owned(), saw(3, "alpha", "gamma")));

    let renamed = desk.stage.place.root.join("renamed");
    std::fs::rename(&moved, &renamed).unwrap();
    desk.forget_index();
    assert!(desk.relocate(&session, &renamed, &[]));
    assert_eq!(desk.run(&renamed, "delta"), ("resumed".to_owned(), saw(4, "alpha", "delta")));
    assert_eq!(desk.only(&renamed)["turns"], 4);
    let (folder, env) = desk.resumption(&renamed, &session, &[]);
    assert_eq!(folder, renamed);
    assert_eq!(desk.cli(&folder, Some(&session), "epsilon", &env), saw(5, "alpha", "epsilon"));
}
