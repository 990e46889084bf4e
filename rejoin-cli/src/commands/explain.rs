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
    let agents = || world.agents.iter().map(|agent| agent.adapter().id());
    let invalid = |error: &dyn std::error::Error| Failure::usage(format!("{word:?} is no key: {error}"));
    if let Some((mailbox, agent)) = word.rsplit_once('@')
        && agents().any(|known| known.as_str() == agent)
    {
        return Ok(vec![SessionKey::new(mailbox, agent).map_err(|error| invalid(&error))?]);
    }
    agents().map(|agent| SessionKey::new(word, agent.as_str()).map_err(|error| invalid(&error))).collect()
}

pub(crate) async fn run(args: &Explain, world: &World, out: &mut Output) -> Result<(), Failure> {
    let mut known = Vec::new();
    for key in keys(&args.key, world)? {
        let told = world.sessions.explain(&key).await.map_err(|error| Failure::failed(&error))?;
        if told.session.is_some() || told.last_run.is_some() || told.closed.is_some() || !told.past.is_empty()
        {
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
