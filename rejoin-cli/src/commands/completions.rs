//! `rejoin completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde::Serialize;

use crate::args::Cli;
use crate::exit::Failure;
use crate::output::Output;

#[derive(Debug, Serialize)]
struct CompletionsJson {
    shell: String,
    script: String,
}

pub(crate) fn run(shell: Shell, out: &mut Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rejoin", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if out.json {
        return out.document(&CompletionsJson { shell: shell.to_string(), script });
    }
    out.line(script.trim_end())?;
    out.flush()
}
