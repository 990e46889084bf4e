//! The big runs of the crash proof of the embedded store, and its numbers.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Outcome, cargo, root};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many histories of operations are played; every tenth of them also with every call failing.
    #[arg(long, default_value_t = 10_000)]
    histories: u64,
    /// How many workers are killed.
    #[arg(long, default_value_t = 5_000)]
    kills: u64,
    /// Another seed is other histories.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the numbers into `docs/reliability.md`.
    #[arg(long)]
    bless: bool,
}

/// The rows of the table, by what the tests call them.
const ROWS: [(&str, &str); 5] = [
    ("histories", "histories"),
    ("crash points in them", "crash points"),
    ("states after a crash, each opened, checked and worked on", "states"),
    ("workers killed", "kills"),
    ("calls that failed", "failing calls"),
];

/// What the numbers come to: at the first violation the tests fail, and there is no table.
const NONE: &str = "None of them left a wrong binding, lost a write that was acknowledged, or left a lease, a lock or a \
temporary file in the way.";

const BEGIN: &str = "<!-- numbers -->\n";
const END: &str = "<!-- end of numbers -->\n";

pub(crate) fn run(args: &Args) -> Outcome {
    let build = |what: &[&str], target| {
        let args = [&["test", "--release", "-p", "session-store-fs", "--no-run"], what].concat();
        cargo::build(&args, target)
    };
    let simulated = build(&["--lib"], "session_store_fs")?;
    let killed = build(&["--test", "processes"], "processes")?;
    let mut numbers = suite(&simulated, "faults::", "REJOIN_FAULTS", args.histories, args.seed)?;
    numbers.extend(suite(&killed, "whenever_a_worker", "REJOIN_KILLS", args.kills, args.seed)?);

    let mut table = format!(
        "`cargo xtask faults --histories {} --kills {} --seed {}`:\n\n| what | number |\n|---|---|\n",
        args.histories, args.kills, args.seed
    );
    for (row, name) in ROWS {
        let told = numbers.iter().find_map(|(told, number)| (told == name).then_some(*number));
        let number = told.ok_or_else(|| format!("the tests say nothing of {name}"))?;
        table += &format!("| {row} | {} |\n", grouped(number));
    }
    table += &format!("\n{NONE}\n");
    println!("{table}");
    if args.bless { bless(&table) } else { Ok(()) }
}

/// Runs tests to such an extent, and says the numbers that they tell.
fn suite(
    program: &Path,
    filter: &str,
    variable: &str,
    count: u64,
    seed: u64,
) -> Result<Vec<(String, u64)>, String> {
    let output = Command::new(program)
        .args([filter, "--nocapture"])
        .env(variable, format!("{count} {seed}"))
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!(
            "{text}\nthe store broke a promise, or the tests could not run: {}",
            output.status
        ));
    }
    let told = |line: &str| {
        let (name, number) = line.split_once("faults: ")?.1.split_once(": ")?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    Ok(text.lines().filter_map(told).collect())
}

fn bless(table: &str) -> Outcome {
    let path = root().join("docs/reliability.md");
    let failed = |error| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(failed)?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{} has no place for the numbers", path.display()))?;
    std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).map_err(failed)
}

/// With commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
