//! `rejoin doctor`.

use rejoin::Agent;
use rejoin::error::Chain;
use rejoin::history::{Depth, SessionsListing};
use serde::Serialize;

use crate::commands::list::unreadable;
use crate::exit::Failure;
use crate::json::{NoticeJson, text};
use crate::output::{Output, Style};
use crate::place::FoundBy;
use crate::plain;
use crate::target::is_offered;
use crate::world::World;

#[derive(Debug, Serialize)]
struct DoctorJson {
    version: &'static str,
    store: Option<StoreJson>,
    cache: Option<String>,
    agents: Vec<AgentJson>,
    /// Whether everything could be looked at.
    complete: bool,
    notices: Vec<NoticeJson>,
}

#[derive(Debug, Serialize)]
struct StoreJson {
    base: String,
    found_by: FoundBy,
    exists: bool,
    /// Why it cannot be read.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct AgentJson {
    agent: String,
    installed: bool,
    program: Option<String>,
    version: Option<String>,
    verified: bool,
    problem: Option<String>,
    sessions: u64,
    resumable: u64,
    bound: u64,
    unlisted: Vec<String>,
}

pub(crate) async fn run(world: &World, out: &mut Output) -> Result<(), Failure> {
    out.progress("reading sessions …");
    let listing = world.everything(Depth::Quick).await?;
    let mut agents = Vec::new();
    for agent in &world.agents {
        out.progress(&format!("asking {} for its version …", agent.adapter().id()));
        agents.push(look(agent, &listing).await);
    }
    out.clear();
    let document = DoctorJson {
        version: env!("CARGO_PKG_VERSION"),
        store: world.place.as_ref().map(|place| StoreJson {
            base: text(&place.base),
            found_by: place.by,
            exists: place.exists,
            problem: world.unread_store.clone(),
        }),
        cache: world.around.cache().map(text),
        agents,
        complete: listing.is_complete(),
        notices: listing.notices.iter().map(NoticeJson::from).collect(),
    };
    if out.json {
        return out.document(&document);
    }
    tell(&document, out)?;
    unreadable(&listing.notices, out);
    Ok(())
}

/// Asks one agent for its version, which starts it, and counts its sessions.
async fn look(agent: &Agent, listing: &SessionsListing) -> AgentJson {
    let id = agent.adapter().id();
    let found = agent.adapter().detect().await;
    let problem = found.as_ref().err().map(|error| Chain(error).to_string());
    let found = found.ok();
    let of = || listing.sessions.iter().filter(|listed| listed.agent == *id);
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let unlisted = listing.unlisted.iter().filter(|unlisted| unlisted.agent == *id);
    AgentJson {
        agent: id.to_string(),
        installed: found.is_some(),
        program: found.as_ref().map(|found| text(&found.program)),
        version: found.as_ref().and_then(|found| found.version.as_ref()).map(ToString::to_string),
        verified: found.as_ref().is_some_and(|found| found.capabilities.verified),
        problem,
        sessions: count(of().count()),
        resumable: count(of().filter(|listed| is_offered(listed)).count()),
        bound: count(of().filter(|listed| listed.bound).count()),
        unlisted: unlisted.map(|unlisted| unlisted.reason.clone()).collect(),
    }
}

fn tell(document: &DoctorJson, out: &mut Output) -> Result<(), Failure> {
    match &document.store {
        None => out.line("store     none: set HOME, or name one with --store")?,
        Some(store) => {
            let how = match store.found_by {
                FoundBy::Option => "named by --store",
                FoundBy::Variable => "named by REJOIN_STORE",
                FoundBy::Home => "the user's own",
            };
            let there = match &store.problem {
                Some(_) => "; it cannot be read",
                None if store.exists => "",
                None => "; it is not there yet",
            };
            out.line(&format!("store     {} ({how}{there})", plain::line(&store.base)))?;
        }
    }
    for agent in &document.agents {
        let name = plain::fit(&agent.agent, 9);
        let name = out.styled(Style::Bold, &name);
        let version = agent.version.as_deref().unwrap_or("of an unknown version");
        let verified =
            if agent.verified { "verified" } else { "not verified; the nearest known rules are used" };
        let state = match (&agent.program, &agent.problem) {
            (Some(program), _) => format!("{version} ({verified}), {program}"),
            // The agent's name stands before it already.
            (None, Some(problem)) => {
                problem.strip_prefix(&format!("{}: ", agent.agent)).unwrap_or(problem).to_owned()
            }
            (None, None) => "not installed".to_owned(),
        };
        out.line(&format!("{name} {}", plain::line(&state)))?;
        let AgentJson { sessions, resumable, bound, .. } = agent;
        out.line(&format!(
            "          {} with those of helpers, {resumable} can be continued, {bound} bound to a mailbox",
            plain::number(*sessions, "session")
        ))?;
        for reason in &agent.unlisted {
            let text = format!("          not all could be listed: {}", plain::line(reason));
            let text = out.styled(Style::Warn, &text);
            out.line(&text)?;
        }
    }
    out.flush()
}
