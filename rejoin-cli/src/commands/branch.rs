//! `rejoin fork`, `rejoin clear` and `rejoin rebind`.

use rejoin::{ForkRequest, NativeId, SessionKey, SessionName, Warning};
use serde::Serialize;

use crate::args;
use crate::commands::checkpoints::{failure, of, the_checkpoint, the_key};
use crate::commands::explain;
use crate::exit::Failure;
use crate::json::KeyJson;
use crate::output::Output;
use crate::plain;
use crate::world::World;

#[derive(Debug, Serialize)]
struct BoundJson {
    /// A fork may have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<KeyJson>,
    session: Option<String>,
    before: Option<String>,
    turns: Option<u64>,
    audit_seq: Option<u64>,
    warnings: Vec<String>,
}

pub(crate) async fn fork(args: &args::Fork, world: &World, out: &mut Output) -> Result<(), Failure> {
    let from = the_key(&args.key, world).await?;
    let to = match &args.mailbox {
        None => None,
        Some(word) => match explain::key(word, world)? {
            Some(key) => Some(key),
            None => SessionKey::new(word, from.agent.as_str())
                .map(Some)
                .map_err(|error| Failure::usage(format!("{word:?} is no mailbox: {error}")))?,
        },
    };
    let here = &world.around.cwd;
    let cwd = args.cwd.as_ref().map_or_else(|| here.clone(), |folder| here.join(folder));
    let request = match &to {
        Some(to) => ForkRequest::new(from.clone(), to.clone(), cwd),
        None => ForkRequest::without_key(from.clone(), cwd),
    };
    let mut request = request.enter_other_project(args.other_project);
    if let Some(word) = &args.at {
        request = request.at(the_checkpoint(word, &of(&from, world).await?)?.id);
    }
    if let Some(name) = &args.name {
        let name = SessionName::new(name).map_err(|error| Failure::usage(error.to_string()))?;
        request = request.named(name);
    }
    let forked = world.sessions.fork(&request).await.map_err(|error| failure(&error))?;
    if out.json {
        return out.document(&BoundJson {
            key: to.as_ref().map(KeyJson::from),
            session: Some(forked.session.to_string()),
            before: Some(forked.of.to_string()),
            turns: Some(forked.kept),
            audit_seq: forked.audit_seq.map(|seq| seq.0),
            warnings: forked.warnings.iter().map(ToString::to_string).collect(),
        });
    }
    let (turns, session) = (plain::turns(forked.kept), &forked.session);
    out.line(&match &to {
        Some(to) => format!("{to} begins with {turns} of {from}: {session}"),
        None => format!("{session} begins with {turns} of {from}; rejoin resume {session} goes on with it"),
    })?;
    tell(&forked.warnings, out)
}

pub(crate) async fn clear(args: &args::Clear, world: &World, out: &mut Output) -> Result<(), Failure> {
    let key = the_key(&args.key, world).await?;
    let cleared = world.sessions.clear(&key).await.map_err(|error| failure(&error))?;
    if out.json {
        return out.document(&BoundJson {
            key: Some(KeyJson::from(&key)),
            session: None,
            before: cleared.session.as_ref().map(ToString::to_string),
            turns: None,
            audit_seq: cleared.audit_seq.map(|seq| seq.0),
            warnings: cleared.warnings.iter().map(ToString::to_string).collect(),
        });
    }
    match &cleared.session {
        Some(session) => out.line(&format!(
            "the next run of {key} begins a new session; rejoin rebind {key} {session} takes this one up again"
        ))?,
        None => out.line(&format!("{key} had no session in force"))?,
    }
    tell(&cleared.warnings, out)
}

pub(crate) async fn rebind(args: &args::Rebind, world: &World, out: &mut Output) -> Result<(), Failure> {
    let key = the_key(&args.key, world).await?;
    let session = NativeId::new(&args.session);
    let rejoined = world.sessions.rejoin(&key, &session).await.map_err(|error| failure(&error))?;
    if out.json {
        return out.document(&BoundJson {
            key: Some(KeyJson::from(&key)),
            session: Some(rejoined.session.to_string()),
            before: rejoined.set_aside.as_ref().map(ToString::to_string),
            turns: None,
            audit_seq: rejoined.audit_seq.map(|seq| seq.0),
            warnings: rejoined.warnings.iter().map(ToString::to_string).collect(),
        });
    }
    let aside = rejoined.set_aside.map(|aside| format!("; {aside} is set aside")).unwrap_or_default();
    let begins_anew = rejoined.warnings.iter().any(|warning| matches!(warning, Warning::BeginsAnew(_)));
    out.line(&match begins_anew {
        true => format!("{} is in force for {key} again{aside}", rejoined.session),
        false => format!("the next run of {key} continues {}{aside}", rejoined.session),
    })?;
    tell(&rejoined.warnings, out)
}

fn tell(warnings: &[Warning], out: &mut Output) -> Result<(), Failure> {
    out.flush()?;
    for warning in warnings {
        out.note(&format!("warning: {warning}"));
    }
    Ok(())
}
