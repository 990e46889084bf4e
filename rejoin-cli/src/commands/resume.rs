//! `rejoin resume`.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use rejoin::Answer;
use rejoin::history::{Depth, ListedSession};
use serde::Serialize;

use crate::args::{Resume, ScopeChoice};
use crate::commands::list;
use crate::exit::{Exit, Failure};
use crate::folders::{Folders, holds};
use crate::invocation::{Invocation, InvocationJson};
use crate::json::SessionJson;
use crate::meant::{meant, seek};
use crate::output::Output;
use crate::picker;
use crate::target;
use crate::world::World;

#[derive(Debug, Serialize)]
struct ResumeJson {
    session: SessionJson,
    invocation: InvocationJson,
}

#[derive(Debug, Serialize)]
struct OfferJson {
    sessions: Vec<SessionJson>,
    complete: bool,
}

pub(crate) async fn run(args: &Resume, world: &World, out: &mut Output) -> Result<(), Failure> {
    let word = args.what.join(" ");
    if word.trim().is_empty() {
        return match args.what.is_empty() {
            false => Err(Failure::new(Exit::Usage, "the session is named by an empty word")),
            true if is_attended(args, out) => picked(args, "", world, out).await,
            // What stands on stdout is run by who asked for one of these.
            true if args.exec || (args.pick && !out.json) => {
                let message = "a session is picked at a terminal: name one, or ask for the list without --pick and --exec";
                Err(Failure::new(Exit::Usage, message))
            }
            true => offer(args, world, out).await,
        };
    }
    out.progress("looking for the session …");
    let seek = seek(&word, &world.around.cwd, args.current.as_deref(), args.other_project);
    match meant(world, &seek).await {
        Ok(found) => {
            let finds = matches!(found.located.answer, Answer::Found { .. });
            go_on(args, &found.session, finds.then_some(&*world.around.cwd), world, out).await
        }
        // A person can tell which one.
        Err(failure) if failure.exit == Exit::Ambiguous && is_attended(args, out) => {
            picked(args, &word, world, out).await
        }
        Err(failure) => Err(failure),
    }
}

/// Whether a person sits there and sees the picker.
fn is_attended(args: &Resume, out: &Output) -> bool {
    let sees = io::stdin().is_terminal() && io::stderr().is_terminal();
    !out.json && sees && (args.pick || io::stdout().is_terminal())
}

async fn picked(args: &Resume, query: &str, world: &World, out: &mut Output) -> Result<(), Failure> {
    out.clear();
    let start = picker::Start {
        scope: args.scope.unwrap_or(if query.is_empty() { ScopeChoice::Here } else { ScopeChoice::All }),
        query: query.to_owned(),
        current: args.current.clone(),
        color: out.color,
    };
    match picker::pick(world, &start).await? {
        Some(listed) => go_on(args, &listed, None, world, out).await,
        None => Err(Failure::new(Exit::Cancelled, "")),
    }
}

/// What a person could go on with, as a list: nobody is there to pick one.
async fn offer(args: &Resume, world: &World, out: &mut Output) -> Result<(), Failure> {
    out.progress("reading sessions …");
    let scope = Folders::around(&world.around.cwd).scope(args.scope.unwrap_or_default());
    let listing = world.everything(Depth::Exact).await?;
    let is_current = |listed: &&ListedSession| Some(listed.entry.id.as_str()) == args.current.as_deref();
    let offered = listing.sessions.iter().filter(|listed| target::is_offered(listed) && !is_current(listed));
    let offered: Vec<_> = offered.filter(|listed| holds(&scope, listed)).collect();
    if out.json {
        let sessions = offered.into_iter().map(SessionJson::from).collect();
        return out.document(&OfferJson { sessions, complete: listing.is_complete() });
    }
    for listed in offered {
        list::line(listed, world, out)?;
    }
    out.flush()
}

/// Continues it, or says how. `here`: the present folder, where its agent finds it from there.
async fn go_on(
    args: &Resume,
    listed: &ListedSession,
    here: Option<&Path>,
    world: &World,
    out: &mut Output,
) -> Result<(), Failure> {
    let invocation = Invocation::of(listed, here, world).await?;
    if args.exec {
        out.clear();
        out.flush()?;
        return match invocation.take_over(listed, world)? {
            0 => Ok(()),
            _ => Err(Failure::new(Exit::Failed, "")),
        };
    }
    if out.json {
        return out.document(&ResumeJson { session: listed.into(), invocation: (&invocation).into() });
    }
    out.line(&invocation.line())?;
    out.flush()
}
