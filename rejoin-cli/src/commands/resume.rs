//! `rejoin resume`.

use std::io::{self, IsTerminal as _};

use rejoin::core::history::{Depth, ListedSession, SessionsListing};
use serde::Serialize;

use crate::args::{Resume, ScopeChoice};
use crate::commands::list;
use crate::exit::{Exit, Failure};
use crate::folders::{Folders, holds};
use crate::invocation::{Invocation, InvocationJson};
use crate::json::SessionJson;
use crate::output::Output;
use crate::picker;
use crate::target::{self, By, Wanted};
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
    if word.is_empty() {
        return if is_attended(args, out) { picked(args, "", world, out).await } else { offer(args, world, out).await };
    }
    out.progress("looking for the session …");
    let listing = world.everything(Depth::Quick).await?;
    match meant(args, &listing, &word, world) {
        Ok(listed) => go_on(args, &listed, world, out),
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
        Some(listed) => go_on(args, &listed, world, out),
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

/// The one session that is meant: by its id, by its title, or because it alone has these words in what names it.
fn meant(
    args: &Resume,
    listing: &SessionsListing,
    word: &str,
    world: &World,
) -> Result<ListedSession, Failure> {
    let folders = Folders::around(&world.around.cwd);
    let scope = folders.scope(args.scope.unwrap_or_default());
    let (listed, by) = match target::pick(listing, word, Wanted::Resumable) {
        Err(failure) if failure.exit == Exit::NotFound => {
            let words: Vec<_> = word.split_whitespace().map(str::to_lowercase).collect();
            let has = |listed: &&ListedSession| {
                let named = format!("{} {}", listed.entry.label(), listed.entry.first_prompt.as_deref().unwrap_or_default());
                let named = named.to_lowercase();
                target::is_offered(listed) && holds(&scope, listed) && words.iter().all(|word| named.contains(word))
            };
            let found: Vec<_> = listing.sessions.iter().filter(has).collect();
            match found[..] {
                [] => return Err(failure),
                [one] => (one.clone(), By::Title),
                _ => {
                    let message = format!("{} sessions have {word:?} in their names; name one by its id", found.len());
                    let candidates = found.into_iter().take(20).map(target::told).collect();
                    return Err(Failure::new(Exit::Ambiguous, message).with_candidates(candidates));
                }
            }
        }
        found => found?,
    };
    // A title proposes; an id was said on purpose.
    if by == By::Title && !args.other_project && !folders.is_home_of(&listed) {
        let message = "the session that has this title belongs to another project; name it by its id, or say --other-project";
        return Err(Failure::new(Exit::OtherProject, message).with_candidates(vec![target::told(&listed)]));
    }
    Ok(listed)
}

fn go_on(args: &Resume, listed: &ListedSession, world: &World, out: &mut Output) -> Result<(), Failure> {
    let invocation = Invocation::of(listed, world)?;
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
