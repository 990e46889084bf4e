//! `rejoin explain`.

use rejoin::{Explanation, SessionKey};
use serde::Serialize;

use crate::args::Explain;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::plain;
use crate::world::World;

#[derive(Debug, Serialize)]
struct ExplainJson {
    keys: Vec<Explanation>,
}

/// The keys that a word means: one, as in `issue-42@claude`, or those of a mailbox with every agent.
fn keys(word: &str, world: &World) -> Result<Vec<SessionKey>, Failure> {
    match key(word, world)? {
        Some(key) => Ok(vec![key]),
        None => of_mailbox(word, world),
    }
}

fn invalid(word: &str, error: &dyn std::error::Error) -> Failure {
    Failure::usage(format!("{word:?} is no key: {error}"))
}

/// The key that a word is, as in `issue-42@claude`, with an agent that is known.
pub(crate) fn key(word: &str, world: &World) -> Result<Option<SessionKey>, Failure> {
    let Some((mailbox, agent)) = word.rsplit_once('@') else { return Ok(None) };
    if !world.agents.iter().any(|known| known.adapter().id().as_str() == agent) {
        return Ok(None);
    }
    SessionKey::new(mailbox, agent).map(Some).map_err(|error| invalid(word, &error))
}

/// Whether anything is known of a mailbox of exactly this name.
pub(crate) async fn is_mailbox(word: &str, world: &World) -> Result<bool, Failure> {
    for key in of_mailbox(word, world)? {
        if is_worked_for(&told(&key, world).await?) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn told(key: &SessionKey, world: &World) -> Result<Explanation, Failure> {
    world.sessions.explain(key).await.map_err(|error| Failure::failed(&error))
}

/// Whether an agent worked for the key.
fn is_worked_for(told: &Explanation) -> bool {
    told.session.is_some() || told.last_run.is_some() || told.closed.is_some() || !told.past.is_empty()
}

/// The keys that a word means and of which anything is known.
pub(crate) async fn known(word: &str, world: &World) -> Result<Vec<SessionKey>, Failure> {
    let mut known = Vec::new();
    for key in keys(word, world)? {
        if is_worked_for(&told(&key, world).await?) {
            known.push(key);
        }
    }
    Ok(known)
}

fn of_mailbox(word: &str, world: &World) -> Result<Vec<SessionKey>, Failure> {
    let agents = world.agents.iter().map(|agent| agent.adapter().id());
    agents.map(|agent| SessionKey::new(word, agent.as_str()).map_err(|error| invalid(word, &error))).collect()
}

pub(crate) async fn run(args: &Explain, world: &World, out: &mut Output) -> Result<(), Failure> {
    let mut known = Vec::new();
    for key in keys(&args.key, world)? {
        let told = told(&key, world).await?;
        if is_worked_for(&told) || told.waiting.is_some() {
            known.push(told);
        }
    }
    if known.is_empty() {
        return Err(Failure::new(Exit::NotFound, format!("nothing is known of {}", args.key)));
    }
    if out.json {
        return out.document(&ExplainJson { keys: known });
    }
    for (number, told) in known.iter().enumerate() {
        if number > 0 {
            out.line("")?;
        }
        out.line(&plain::lines(&told.to_string()))?;
    }
    out.flush()
}
