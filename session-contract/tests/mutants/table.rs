//! Mutants and the cases that caught them, as a table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

/// One broken subject.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) mutant: String,
    /// The case that has to catch it.
    pub(crate) meant: &'static str,
    /// All that did.
    pub(crate) caught: Vec<&'static str>,
}

/// Compares a part of the table with what is in `mutants.md`; `REJOIN_UPDATE=1` writes it anew.
pub(crate) fn compare(part: &str, outcomes: &[Outcome], cases: &[&'static str]) {
    let mut text = format!("## {part}\n\n| mutant | cases that catch it |\n|---|---|\n");
    for Outcome { mutant, meant, caught } in outcomes {
        let rest =
            caught.iter().filter(|case| *case != meant).map(|case| format!(", `{case}`")).collect::<String>();
        let _ = writeln!(text, "| {mutant} | **`{meant}`**{rest} |");
    }
    println!("{text}");
    for Outcome { mutant, meant, caught } in outcomes {
        assert!(caught.contains(meant), "{mutant} is not caught by {meant}, but by {caught:?}");
    }
    let useful: BTreeSet<_> = outcomes.iter().flat_map(|outcome| outcome.caught.iter().copied()).collect();
    let idle: Vec<_> = cases.iter().filter(|case| !useful.contains(*case)).collect();
    assert!(idle.is_empty(), "no mutant is caught by {idle:?}");

    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants.md");
    let whole = std::fs::read_to_string(&path).unwrap_or_default();
    let head = format!("## {part}\n");
    let (before, found) = whole.split_at(whole.find(&head).unwrap_or(whole.len()));
    let end = found[1.min(found.len())..].find("\n## ").map_or(found.len(), |at| at + 2);
    let (found, after) = found.split_at(end);
    if is_updated() {
        let gap = if after.is_empty() { "" } else { "\n" };
        std::fs::write(&path, format!("{before}{text}{gap}{after}")).unwrap();
    } else {
        assert_eq!(found.trim_end(), text.trim_end(), "mutants.md is stale: run with REJOIN_UPDATE=1");
    }
}

/// Whether the tables are made anew.
pub(crate) fn is_updated() -> bool {
    std::env::var_os("REJOIN_UPDATE").is_some()
}

/// The same where only the cases that are meant were tried: each mutant of the table, and no other, is caught by its own.
pub(crate) fn compare_meant(part: &str, outcomes: &[Outcome]) {
    for Outcome { mutant, meant, caught } in outcomes {
        assert!(caught.contains(meant), "{mutant} is not caught by {meant}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants.md");
    let whole = std::fs::read_to_string(&path).unwrap();
    let (_, found) = whole.split_once(&format!("## {part}\n")).expect("the part is in the table");
    let rows = found.split("\n## ").next().unwrap_or_default().lines().filter(|line| line.contains("**`"));
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), outcomes.len(), "mutants.md is stale: run with REJOIN_UPDATE=1");
    for (row, Outcome { mutant, meant, .. }) in rows.iter().zip(outcomes) {
        let begins = format!("| {mutant} | **`{meant}`**");
        assert!(row.starts_with(&begins), "mutants.md is stale: run with REJOIN_UPDATE=1: {row}");
    }
}
