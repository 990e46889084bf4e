//! Every recorded run of every adapter, through the real process runner: the fake agent plays it, and the adapter has to
//! make of it what its `meta.json` says.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rejoin::adapters::{ClaudeOptions, CodexOptions, OpencodeOptions, claude, codex, opencode};
use rejoin::core::{Asked, EndedBy, Mode, NoSink, Program, RunId, Turn};
use rejoin::process::Environment;
use rejoin::{Agent, Cancel, Limits};
use rejoin_test_support::fake_agent::leading_args;
use rejoin_test_support::fixture::Meta;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How an adapter is made, and what its CLI prints as its version.
pub(crate) struct Adapter {
    folder: &'static str,
    pub(crate) make: fn(Program, Environment) -> Agent,
    pub(crate) version: fn(&str) -> String,
}

const ADAPTERS: &[Adapter] = &[
    Adapter {
        folder: "adapter-claude",
        make: |program, environment| {
            claude().options(ClaudeOptions::new().program(program)).environment(environment).into()
        },
        version: |version| format!("{version} (Claude Code)"),
    },
    Adapter {
        folder: "adapter-codex",
        make: |program, environment| {
            codex().options(CodexOptions::new().program(program)).environment(environment).into()
        },
        version: |version| format!("codex-cli {version}"),
    },
    Adapter {
        folder: "adapter-opencode",
        make: |program, environment| {
            opencode().options(OpencodeOptions::new().program(program)).environment(environment).into()
        },
        version: str::to_owned,
    },
];

/// The adapter in this folder.
pub(crate) fn adapter_in(folder: &str) -> &'static Adapter {
    let adapter = ADAPTERS.iter().find(|adapter| adapter.folder == folder);
    adapter.unwrap_or_else(|| panic!("{folder} has fixtures, and nothing here plays them"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// How long a recorded run that was ended by a limit goes on here; it has said all it says long before.
const LIMIT: Duration = Duration::from_secs(2);

fn limits(ended_by: Option<EndedBy>) -> Limits {
    let mut limits = Limits::default();
    match ended_by {
        Some(EndedBy::StartLimit) => limits.start = LIMIT,
        Some(EndedBy::IdleLimit) => limits.idle = LIMIT,
        Some(EndedBy::TotalLimit) => limits.total = LIMIT,
        Some(EndedBy::Linger) => limits.linger = LIMIT,
        Some(EndedBy::Cancel) | None => {}
    }
    limits
}

/// Plays one, and says what does not fit.
async fn replay(adapter: &Adapter, fixture: &Path) -> Option<String> {
    let meta = Meta::read(fixture).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for folder in ["home", "project", "state"] {
        std::fs::create_dir(path(folder)).unwrap();
    }
    let play = json!([{"fixture": {"folder": fixture, "ready": path("ready")}}]);
    // What a dialect does before the turn goes well, unless that is what was recorded.
    let recorded = fixture.file_name().unwrap().to_str().unwrap();
    let before = if recorded.starts_with("import-") { play.clone() } else { json!([]) };
    let script = json!({
        "version": (adapter.version)(&meta.version),
        "cases": [{"when": {"has": ["import"]}, "steps": before}, {"steps": play}],
    });
    std::fs::write(path("script.json"), script.to_string()).unwrap();
    let program = leading_args(&path("script.json"))
        .into_iter()
        .fold(Program::new(env!("CARGO_BIN_EXE_fake-agent")), Program::leading_arg);
    let environment = Environment::bare().pass(&["PATH"]).set("HOME", path("home"));
    let agent = (adapter.make)(program, environment);
    let installation = agent.adapter().detect().await.unwrap();

    let asked: Asked = serde_json::from_value(meta.asked.clone()).unwrap();
    let ended_by: Option<EndedBy> = serde_json::from_value(meta.ended_by.clone()).unwrap();
    let cancel = Cancel::new();
    if ended_by == Some(EndedBy::Cancel) {
        let (cancel, ready) = (cancel.clone(), path("ready"));
        tokio::spawn(async move {
            while !ready.exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            cancel.cancel();
        });
    }
    let turn = Turn {
        run: RunId::new(uuid::Uuid::new_v4()),
        prompt: "the recorded one",
        cwd: &path("project"),
        mode: match &asked {
            Asked::Fresh(id) => Mode::Fresh { id: id.as_ref() },
            Asked::Resume(id) => Mode::Resume { id },
            Asked::Fork(source) => Mode::Fork { source, transcript: None, id: None },
        },
        name: None,
        model: None,
        recipe: rejoin::core::TurnRecipe::default(),
        state_dir: Some(&path("state")),
        installation: &installation,
        limits: &limits(ended_by),
        cancel: &cancel,
    };
    let report = agent.adapter().run(turn, &mut NoSink).await.unwrap();
    let evidence = report.evidence;
    let found = Meta {
        version: evidence.version.clone().unwrap(),
        asked: serde_json::to_value(&evidence.asked).unwrap(),
        exit: serde_json::to_value(evidence.exit).unwrap(),
        ended_by: serde_json::to_value(evidence.ended_by).unwrap(),
        verdict: report.verdict.name().to_owned(),
        activity: evidence.observation.activity().name().to_owned(),
        session: evidence.observation.session.as_ref().map(ToString::to_string),
        args: meta.args.clone(),
    };
    (found != meta).then(|| format!("{}: {}is not{}", fixture.display(), found.to_text(), meta.to_text()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fixture_of_every_adapter_gives_its_verdict() {
    let recorded: Vec<_> = children(&root())
        .into_iter()
        .map(|folder| folder.join("fixtures"))
        .filter(|folder| folder.is_dir())
        .collect();
    assert!(!recorded.is_empty());
    let (few, mut running, mut wrong) = (Arc::new(Semaphore::new(4)), JoinSet::new(), Vec::new());
    for fixtures in recorded {
        let name = fixtures.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let adapter = adapter_in(name);
        for fixture in children(&fixtures).iter().flat_map(|version| children(version)) {
            let few = Arc::clone(&few);
            running.spawn(async move {
                let _turn = few.acquire().await.unwrap();
                replay(adapter, &fixture).await
            });
        }
    }
    let mut played = 0;
    while let Some(answer) = running.join_next().await {
        wrong.extend(answer.unwrap());
        played += 1;
    }
    assert!(played > 100, "{played}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
