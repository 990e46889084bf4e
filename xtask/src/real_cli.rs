//! Runs the suite for the real CLIs, and has it record fixtures.

use crate::clis::{Installed, Selection};
use crate::{Outcome, cargo, root, sandbox};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Install, and run nothing.
    #[arg(long)]
    install_only: bool,
    /// Write the cells of `docs/verified.md` anew in place of comparing them.
    #[arg(long)]
    bless: bool,
    /// What to hand to the test program: a filter, `--exact`, `--test-threads`.
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    selection: Selection,
    /// What to hand to the test program: a filter, `--exact`, `--test-threads`.
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let installed = args.selection.install()?;
    match args.install_only {
        true => Ok(()),
        false => suite(&installed, args.bless.then_some("REJOIN_BLESS"), &args.rest),
    }
}

pub(crate) fn capture(args: &CaptureArgs) -> Outcome {
    suite(&args.selection.install()?, Some("REJOIN_CAPTURE"), &args.rest)
}

/// Runs the suite where there is no network, with this switch on.
fn suite(installed: &[Installed], switch: Option<&str>, rest: &[String]) -> Outcome {
    // As `cargo test --workspace` builds them: of one package alone, most that it depends on would have other features, and be
    // built once more. The tests of the command bring it with them.
    let wanted = ["test", "--workspace", "--test", "real_cli", "--test", "it", "--no-run"];
    let [program, rejoin] = cargo::build_all(&wanted, ["real_cli", "rejoin"])?;
    let (mut command, open) = sandbox::command(&program);
    if let Some(why) = open {
        eprintln!("xtask: {why}; running without one");
    }
    let json = serde_json::to_string(installed).map_err(|error| error.to_string())?;
    command.env("REJOIN_REAL_CLIS", json).env("REJOIN_COMMAND", rejoin).args(rest).current_dir(root());
    command.envs(switch.map(|name| (name, "1")));
    let status = command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err(format!("the suite failed: {status}")) }
}
