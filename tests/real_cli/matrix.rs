//! The matrix: agent × scenario × version → verdicts, route, reason, model calls. Compared with the copy in
//! `docs/verified.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

use rejoin::{LlmResult, RunError};
use rejoin_test_support::verified::Verified;

use crate::pinned::Pinned;

/// Set by `cargo xtask real-cli --bless`: cells are written into the document in place of being compared.
const BLESS: &str = "REJOIN_BLESS";

/// What this run saw, by agent, version and scenario.
static SEEN: LazyLock<Mutex<BTreeMap<[String; 3], String>>> = LazyLock::new(Mutex::default);

/// How many turns reached the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// So many.
    Counted(usize),
    /// As many as the agent made until it was ended.
    Many,
}

/// What a run came to, in one line.
fn cell(outcome: &Result<LlmResult, RunError>, turns: Turns) -> String {
    let attempts = |attempts: &[rejoin::AttemptNote]| {
        attempts.iter().map(|a| format!("{} {}", a.attempt, a.verdict)).collect::<Vec<_>>().join(", ")
    };
    let with = |word: &str, reason: &str| match reason {
        "" => word.to_owned(),
        _ => format!("{word} ({reason})"),
    };
    let nothing = "nothing ran".to_owned();
    let (tried, came_to) = match outcome {
        Ok(result) => {
            let why = result.route.why().map_or("", rejoin::Why::code);
            (attempts(&result.attempts), with(result.route.code(), why))
        }
        Err(RunError::Failed { why, run }) => (attempts(&run.attempts), with("failed", why.code())),
        Err(RunError::Refused { why }) => (nothing, with("refused", why.code())),
        Err(RunError::Busy { .. }) => (nothing, with("busy", "lease")),
        Err(error) => (nothing, with("error", &error.to_string())),
    };
    let turns = match turns {
        Turns::Counted(1) => "1 turn".to_owned(),
        Turns::Counted(turns) => format!("{turns} turns"),
        Turns::Many => "turns without end".to_owned(),
    };
    format!("{tried} → {came_to}, {turns}").replace('|', "¦")
}

fn blessing() -> bool {
    std::env::var_os(BLESS).is_some()
}

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/verified.md")
}

fn read() -> Verified {
    Verified::parse(&std::fs::read_to_string(document()).unwrap()).unwrap()
}

/// Notes what a scenario came to, and compares it with the document.
pub(crate) fn note(cli: &Pinned, scenario: &str, outcome: &Result<LlmResult, RunError>, turns: Turns) {
    let cell = cell(outcome, turns);
    let key = [cli.agent.clone(), cli.version.clone(), scenario.to_owned()];
    let before = SEEN.lock().unwrap().insert(key, cell.clone());
    assert_eq!(before, None, "two trials have the scenario {scenario}");
    if !blessing() {
        let document = read();
        let told = document.cell(&cli.agent, &cli.version, scenario);
        assert_eq!(
            told,
            Some(cell.as_str()),
            "docs/verified.md has another cell for {scenario:?} on {} {}; look at it, then `cargo xtask real-cli --bless`",
            cli.agent,
            cli.version,
        );
    }
}

/// What this run saw, as the document shows it. With `REJOIN_BLESS` it is written there; a whole run then takes the
/// place of all that was told of its versions.
///
/// # Errors
/// What the document tells and a whole run did not see.
pub(crate) fn finish(clis: &[Pinned], whole: bool) -> Result<String, String> {
    let seen = SEEN.lock().unwrap();
    let mut document = read();
    let of_run = |agent: &str, version: &str| clis.iter().any(|c| c.agent == agent && c.version == version);
    let stale: Vec<_> = document
        .cells()
        .filter(|[agent, version, scenario]| {
            let key = [agent, version, scenario].map(|part| (*part).to_owned());
            of_run(agent, version) && !seen.contains_key(&key)
        })
        .map(|key| key.map(str::to_owned))
        .collect();
    if blessing() {
        if whole {
            stale.iter().for_each(|[agent, version, scenario]| document.remove(agent, version, scenario));
        }
        for ([agent, version, scenario], cell) in seen.iter() {
            document.set(agent, version, scenario, cell);
        }
        std::fs::write(self::document(), document.render()).unwrap();
    } else if whole && !stale.is_empty() {
        let names: Vec<_> = stale.iter().map(|key| key.join(" ")).collect();
        return Err(format!("docs/verified.md tells of what no trial did: {}", names.join("; ")));
    }
    let mut table = Verified::default();
    for ([agent, version, scenario], cell) in seen.iter() {
        table.set(agent, version, scenario, cell);
    }
    Ok(table.render())
}
