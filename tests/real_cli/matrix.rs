//! The matrix: agent × version × scenario → verdicts, route, reason, model calls. Compared with the copy in
//! `docs/verified.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

use rejoin::{LlmResult, RunError};

use crate::pinned::Pinned;

/// Set by `cargo xtask real-cli --bless`: rows are written into the document in place of being compared.
const BLESS: &str = "REJOIN_BLESS";

static ROWS: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);

/// What a run came to, in one line.
pub(crate) fn summary(outcome: &Result<LlmResult, RunError>) -> (String, String) {
    let verdicts = |attempts: &[rejoin::AttemptNote]| {
        attempts.iter().map(|a| format!("{} {}", a.attempt, a.verdict)).collect::<Vec<_>>().join(", ")
    };
    match outcome {
        Ok(result) => {
            let why = result.route.why().map_or("", rejoin::Why::code);
            (verdicts(&result.attempts), format!("{} | {why}", result.route.code()))
        }
        Err(RunError::Failed { why, run }) => (verdicts(&run.attempts), format!("failed | {}", why.code())),
        Err(RunError::Refused { why }) => ("–".to_owned(), format!("refused | {}", why.code())),
        Err(RunError::Busy { .. }) => ("–".to_owned(), "busy | lease".to_owned()),
        Err(error) => ("–".to_owned(), format!("error | {error}")),
    }
}

/// Notes a row and compares it with the document.
pub(crate) fn note(cli: &Pinned, scenario: &str, outcome: &Result<LlmResult, RunError>, turns: usize) {
    let (verdicts, route) = summary(outcome);
    let row = format!("| {} | {} | {scenario} | {verdicts} | {route} | {turns} |", cli.agent, cli.version);
    ROWS.lock().unwrap().insert(row.clone());
    if std::env::var_os(BLESS).is_none() {
        let document = std::fs::read_to_string(document()).unwrap();
        assert!(
            document.lines().any(|line| line == row),
            "docs/verified.md does not have this row; look at it, then `cargo xtask real-cli --bless`\n{row}"
        );
    }
}

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/verified.md")
}

/// The rows of this run as a table; with `REJOIN_BLESS` they replace those of the same versions in the document.
pub(crate) fn render() -> String {
    let rows = ROWS.lock().unwrap();
    let mut table = String::from(
        "| agent | version | scenario | attempts and verdicts | route | reason | model turns |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows.iter() {
        writeln!(table, "{row}").unwrap();
    }
    if std::env::var_os(BLESS).is_some() {
        let old = std::fs::read_to_string(document()).unwrap();
        let cell = |row: &str, at: usize| row.split(" | ").nth(at).unwrap_or_default().to_owned();
        let fresh: BTreeSet<_> = rows.iter().map(|row| (cell(row, 0), cell(row, 1), cell(row, 2))).collect();
        let (head, body): (Vec<_>, Vec<_>) = old.lines().partition(|line| !line.starts_with("| claude"));
        let kept =
            body.into_iter().filter(|row| !fresh.contains(&(cell(row, 0), cell(row, 1), cell(row, 2))));
        let all: BTreeSet<String> = kept.map(str::to_owned).chain(rows.iter().cloned()).collect();
        let text = head.into_iter().map(str::to_owned).chain(all).collect::<Vec<_>>().join("\n");
        std::fs::write(document(), text + "\n").unwrap();
    }
    table
}
