//! What a run left in its state dir so that the next one of another mailbox, or of its own, believes it: nothing of it is
//! believed, read from elsewhere, or waited for.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rejoin::adapters::{ClaudeOptions, CodexOptions, claude, codex};
use rejoin::core::{Lifecycle, ListOptions};
use rejoin::process::SystemHost;
use rejoin::stores::FsStore;
use rejoin::{Agent, LlmRequest, LlmResult, NativeId, Route, SessionKey, SessionRef, SessionStore as _, Why};
use serde_json::json;

use crate::stage::Stage;

/// Agents whose sessions are files of lines. Those of opencode are rows; the tests of its catalog do the same to them.
const AGENTS: &[&str] = &["claude", "codex"];

/// Two mailboxes of one agent, each with a conversation.
struct World {
    stage: Stage,
    agent: &'static str,
}

impl World {
    async fn new(agent: &'static str) -> Self {
        let world = Self { stage: Stage::new(), agent };
        world.stage.script(&json!([{ "steps": [{ agent: {} }] }]));
        if agent == "codex" {
            let path = world.stage.path("script.json");
            let mut script: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            script["version"] = "codex-cli 0.171.0".into();
            fs::write(path, script.to_string()).unwrap();
        }
        for (mailbox, prompt) in [("mine", "alpha"), ("theirs", "secret")] {
            assert_eq!(world.run(mailbox, prompt).await.route, Route::Fresh(Why::NoPriorSession));
        }
        world
    }

    fn key(&self, mailbox: &str) -> SessionKey {
        SessionKey::new(mailbox, self.agent).unwrap()
    }

    fn store(&self) -> FsStore {
        FsStore::open(self.stage.path("store")).unwrap()
    }

    fn lifecycle(&self) -> Lifecycle {
        let (program, environment) = (self.stage.program(), self.stage.environment());
        let agent: Agent = match self.agent {
            "claude" => {
                claude().options(ClaudeOptions::new().program(program)).environment(environment).into()
            }
            _ => codex().options(CodexOptions::new().program(program)).environment(environment).into(),
        };
        Lifecycle::new(Arc::new(self.store()), Arc::new(SystemHost::new())).agent(agent)
    }

    async fn run(&self, mailbox: &str, prompt: &str) -> LlmResult {
        let session = SessionRef::new(mailbox, self.agent);
        let request = LlmRequest::new(prompt).cwd(self.stage.path("project")).session(session);
        self.lifecycle().run(request).await.unwrap()
    }

    async fn bound(&self, mailbox: &str) -> NativeId {
        let record = self.lifecycle().record(&self.key(mailbox)).await.unwrap().unwrap();
        record.binding.unwrap().native_id
    }

    async fn state_dir(&self, mailbox: &str) -> PathBuf {
        self.store().state_dir(&self.key(mailbox)).await.unwrap().unwrap()
    }

    /// The file of the mailbox's session.
    async fn transcript(&self, mailbox: &str) -> PathBuf {
        let id = self.bound(mailbox).await.to_string();
        let mut files = self.stage.transcripts().into_iter();
        files.find(|path| path.to_str().unwrap().contains(&id)).unwrap()
    }
}

/// Puts something in the place of a file, given the other mailbox's.
type Plant = fn(&Path, &Path);

/// In the place of the session's file.
const IN_ITS_PLACE: &[(&str, Plant)] = &[
    ("a link to another mailbox's session", |at, theirs| symlink(theirs, at).unwrap()),
    ("a link to itself", |at, _| symlink(at, at).unwrap()),
    ("a pipe", |at, _| made("mkfifo", &[at])),
    ("a link to a device", |at, _| symlink("/dev/zero", at).unwrap()),
    ("a folder", |at, _| fs::create_dir(at).unwrap()),
];

fn made(program: &str, args: &[&Path]) {
    assert!(std::process::Command::new(program).args(args).status().unwrap().success(), "{program}");
}

/// One run with that in the place of its session.
async fn stands_aside(agent: &'static str, name: &str, plant: Plant, why: Why) {
    let world = World::new(agent).await;
    let (mine, theirs) = (world.transcript("mine").await, world.transcript("theirs").await);
    let before = fs::read(&theirs).unwrap();
    fs::remove_file(&mine).unwrap();
    plant(&mine, &theirs);
    let next = world.run("mine", "beta").await;
    assert_eq!(next.route, Route::FellBack(why), "{agent}: {name}");
    assert!(!next.text.contains("secret"), "{agent}: {name}: {}", next.text);
    assert_eq!(fs::read(&theirs).unwrap(), before, "{agent}: {name}");
    // And of the other one, nothing was lost.
    assert_eq!(world.run("theirs", "gamma").await.route, Route::Resumed, "{agent}: {name}");
}

#[tokio::test]
async fn what_stands_in_the_place_of_a_session_is_not_continued() {
    for agent in AGENTS {
        for (name, plant) in IN_ITS_PLACE {
            stands_aside(agent, name, *plant, Why::SessionUnreadable).await;
        }
    }
}

/// How much of it is read is counted where it is read.
#[tokio::test]
async fn ten_gigabytes_of_nothing_in_the_place_of_a_session_are_no_session() {
    let hole: Plant = |at, _| fs::File::create(at).unwrap().set_len(10 << 30).unwrap();
    stands_aside("claude", "10 GB", hole, Why::SessionEmpty).await;
}

#[tokio::test]
async fn folders_that_lead_elsewhere_or_in_circles_show_no_session() {
    for agent in AGENTS {
        for circle in [false, true] {
            let world = World::new(agent).await;
            let (mine, theirs) = (world.state_dir("mine").await, world.state_dir("theirs").await);
            let below = if *agent == "claude" { "projects" } else { "sessions" };
            let before = fs::read(world.transcript("theirs").await).unwrap();
            fs::remove_dir_all(mine.join(below)).unwrap();
            if circle {
                fs::create_dir(mine.join(below)).unwrap();
                (0..50).for_each(|number| symlink(".", mine.join(below).join(number.to_string())).unwrap());
            } else {
                symlink(theirs.join(below), mine.join(below)).unwrap();
            }
            let next = world.run("mine", "beta").await;
            assert!(!next.resumed && !next.text.contains("secret"), "{agent}: {next:?}");
            assert_eq!(fs::read(world.transcript("theirs").await).unwrap(), before, "{agent}");
        }
    }
}

/// A record, a log or a lock in a state dir is a file of the agent's like any other.
#[tokio::test]
async fn a_record_in_a_state_dir_is_none() {
    for agent in AGENTS {
        let world = World::new(agent).await;
        let (state, base) = (world.state_dir("mine").await, world.stage.path("store/.agent-sessions"));
        let (mine, theirs) = (world.bound("mine").await, world.bound("theirs").await);
        // The whole store once more, with what is bound exchanged: as files, and as what a store would look like.
        let planted = state.join(".agent-sessions");
        for folder in ["records", "audit", "locks"] {
            fs::create_dir_all(planted.join(folder)).unwrap();
            for entry in fs::read_dir(base.join(folder)).unwrap() {
                let entry = entry.unwrap();
                let text = fs::read_to_string(entry.path()).unwrap().replace(mine.as_str(), theirs.as_str());
                for at in [planted.join(folder), state.clone(), state.parent().unwrap().to_owned()] {
                    fs::write(at.join(entry.file_name()), &text).unwrap();
                }
            }
        }
        let next = world.run("mine", "beta").await;
        assert_eq!((next.route, next.session_id.as_ref()), (Route::Resumed, Some(&mine)), "{agent}");
        assert!(!next.text.contains("secret"), "{agent}");
        let page = world.store().list(&ListOptions::default()).await.unwrap();
        assert_eq!(page.items, [world.key("mine"), world.key("theirs")], "{agent}");
        assert!(world.lifecycle().audit(&world.key("mine"), None).await.unwrap().len() >= 2);
    }
}

/// Between two runs, the state dir itself was exchanged: whole, or the folder of its mailbox.
#[tokio::test]
async fn a_state_dir_that_was_exchanged_for_a_link_starts_nothing() {
    for agent in AGENTS {
        for level in [0, 1] {
            let world = World::new(agent).await;
            let mine = world.state_dir("mine").await;
            let theirs = world.state_dir("theirs").await;
            let at = |state: &Path| state.ancestors().nth(level).unwrap().to_owned();
            let before = fs::read(world.transcript("theirs").await).unwrap();
            fs::remove_dir_all(at(&mine)).unwrap();
            symlink(at(&theirs), at(&mine)).unwrap();
            let calls = world.stage.calls().len();
            let session = SessionRef::new("mine", *agent);
            let request = LlmRequest::new("beta").cwd(world.stage.path("project")).session(session);
            let refused = world.lifecycle().run(request).await;
            assert!(matches!(refused, Err(rejoin::RunError::Store(_))), "{agent}: {refused:?}");
            assert_eq!(world.stage.calls().len(), calls, "{agent}: nothing was started");
            assert_eq!(fs::read(world.transcript("theirs").await).unwrap(), before);
        }
    }
}
