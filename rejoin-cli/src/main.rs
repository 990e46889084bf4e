//! The command `rejoin`: what there is on this machine of coding agents' sessions, for people and scripts.

mod args;
mod commands;
mod exit;
mod folders;
mod invocation;
mod json;
mod meant;
mod output;
mod picker;
mod place;
mod plain;
mod signals;
mod talk;
mod target;
mod when;
mod world;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::args::{Cli, Command};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::place::Surroundings;
use crate::world::{Need, Running, World};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let command = command_of(std::env::args_os());
            return output::clap(&error, asks_for_json(), command.as_deref()).into();
        }
    };
    let around = match Surroundings::look() {
        Ok(around) => around,
        Err(failure) => return output::bare(&failure).into(),
    };
    let mut out = Output::new(cli.command.name(), &cli.common, &around);
    let exit = match act(&cli, around, &mut out) {
        Ok(()) => Exit::Ok,
        Err(failure) => out.fail(&failure),
    };
    exit.into()
}

/// Whether a document was asked for, as far as words that could not be understood tell.
fn asks_for_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

/// The command that words were meant for that could not be understood, by its own name: the first word that is none of an
/// option.
fn command_of(words: impl Iterator<Item = OsString>) -> Option<String> {
    let cli = Cli::command();
    let mut words = words.skip(1);
    while let Some(word) = words.next() {
        match word.to_str()? {
            "--store" | "--color" => drop(words.next()),
            option if option.starts_with('-') => {}
            word => return cli.find_subcommand(word).map(|command| command.get_name().to_owned()),
        }
    }
    None
}

/// Carries the command out on a runtime that does not outlive it: a look at a file that hangs keeps nobody.
fn act(cli: &Cli, around: Surroundings, out: &mut Output) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(&error))?;
    let result = runtime.block_on(dispatch(cli, around, out));
    runtime.shutdown_background();
    result
}

async fn dispatch(cli: &Cli, around: Surroundings, out: &mut Output) -> Result<(), Failure> {
    let open =
        |need, running: &Running| World::open(around.clone(), cli.common.store.as_deref(), need, running);
    let look = || open(Need::Look, &Running::default());
    // What has no place for it among its own words says it before.
    let warned = |out: &mut Output| {
        let world = look()?;
        commands::list::unreadable(world.missing_store().as_slice(), out);
        Ok::<_, Failure>(world)
    };
    let have = || open(Need::Have, &Running::default());
    match &cli.command {
        Command::Run(args) => {
            let running = Running {
                permission_mode: args.permission_mode.clone(),
                own_place: args.own_place,
                no_checkpoints: args.no_checkpoints,
            };
            commands::run::run(args, &open(Need::Make, &running)?, out).await
        }
        Command::List(args) => commands::list::run(args, &look()?, out).await,
        Command::Show(args) => commands::show::run(args, &look()?, out).await,
        Command::Explain(args) => commands::explain::run(args, &have()?, out).await,
        Command::Close(args) => commands::ends::close(args, &have()?, out).await,
        Command::Sweep(args) => commands::ends::sweep(args, &have()?, out).await,
        Command::Resume(args) => commands::resume::run(args, &warned(out)?, out).await,
        Command::Doctor => commands::doctor::run(&look()?, out).await,
        Command::Completions { shell } => commands::completions::run(*shell, out),
        Command::Search(args) => commands::search::run(args, &look()?, out).await,
        Command::Checkpoints(args) => commands::checkpoints::run(args, &have()?, out).await,
        Command::Diff(args) => commands::diff::run(args, &have()?, out).await,
        Command::Rewind(args) => commands::rewind::rewind(args, &have()?, out).await,
        Command::Undo(args) => commands::rewind::undo(args, &have()?, out).await,
        Command::Fork(args) => commands::branch::fork(args, &have()?, out).await,
        Command::Clear(args) => commands::branch::clear(args, &have()?, out).await,
        Command::Rebind(args) => commands::branch::rebind(args, &have()?, out).await,
        Command::Summarise(args) => commands::summary::summarise(args, &have()?, out).await,
        Command::Compact(args) => commands::summary::compact(args, &have()?, out).await,
        Command::Handover(args) => commands::summary::handover(args, &have()?, out).await,
        Command::Relocate(args) => commands::relocate::run(args, &warned(out)?, out).await,
    }
}
