//! `rejoin summarise`, `rejoin compact` and `rejoin handover`.

use rejoin::core::SummarySource;
use rejoin::error::{Chain, HandOverError, SummaryError};
use rejoin::{SessionKey, Summary, SummaryRequest, TurnSpan};
use serde::Serialize;

use crate::args::{self, How};
use crate::commands::checkpoints::the_key;
use crate::commands::explain;
use crate::exit::{Exit, Failure};
use crate::json::KeyJson;
use crate::output::Output;
use crate::plain;
use crate::world::World;

#[derive(Debug, Serialize)]
struct SummaryJson<'a> {
    key: KeyJson,
    session: String,
    text: &'a str,
    by: &'static str,
    reason: Option<String>,
    turns: u64,
    first: u64,
    last: u64,
    left_out: u64,
    cut: bool,
    to: Option<KeyJson>,
    audit_seq: Option<u64>,
    warnings: Vec<String>,
}

impl<'a> SummaryJson<'a> {
    fn new(summary: &'a Summary) -> Self {
        let (by, reason) = match &summary.source {
            SummarySource::Text => ("text", None),
            SummarySource::Agent { .. } => ("agent", None),
            SummarySource::TextInstead(why) => ("text", Some(why.to_string())),
            _ => ("other", None),
        };
        Self {
            key: KeyJson::from(&summary.key),
            session: summary.session.to_string(),
            text: &summary.text,
            by,
            reason,
            turns: summary.turns,
            first: summary.span.0,
            last: summary.span.1,
            left_out: summary.left_out,
            cut: summary.cut,
            to: None,
            audit_seq: None,
            warnings: summary.warnings.iter().map(ToString::to_string).collect(),
        }
    }
}

pub(crate) async fn summarise(
    args: &args::Summarise,
    world: &World,
    out: &mut Output,
) -> Result<(), Failure> {
    let request = request(the_key(&args.key, world).await?, &args.how, world);
    out.progress("summarising …");
    let summary = world.sessions.summarise(&request).await.map_err(|error| failure(&error))?;
    if out.json {
        return out.document(&SummaryJson::new(&summary));
    }
    out.line(&plain::lines(&summary.text))?;
    out.flush()?;
    warn(&summary, out);
    Ok(())
}

pub(crate) async fn compact(args: &args::Compact, world: &World, out: &mut Output) -> Result<(), Failure> {
    let key = the_key(&args.key, world).await?;
    let request = request(key.clone(), &args.how, world);
    out.progress("summarising …");
    let compacted = world.sessions.compact(&request).await.map_err(|error| failure(&error))?;
    let summary = &compacted.summary;
    if out.json {
        let audit_seq = compacted.audit_seq.map(|seq| seq.0);
        return out.document(&SummaryJson { audit_seq, ..SummaryJson::new(summary) });
    }
    out.line(&format!(
        "the next run of {key} begins a new session with a summary of {}; rejoin rebind {key} {} takes the old one up again",
        plain::turns(summary.span.1 - summary.span.0 + 1 - summary.left_out),
        compacted.before
    ))?;
    out.flush()?;
    warn(summary, out);
    Ok(())
}

pub(crate) async fn handover(args: &args::Handover, world: &World, out: &mut Output) -> Result<(), Failure> {
    let from = the_key(&args.key, world).await?;
    let to = match explain::key(&args.to, world)? {
        Some(key) => key,
        None => {
            let agent = world.agent_ids(std::slice::from_ref(&args.to))?.remove(0);
            SessionKey { mailbox: from.mailbox.clone(), agent }
        }
    };
    let request = request(from.clone(), &args.how, world);
    out.progress("summarising …");
    let handed = world.sessions.hand_over_to(&request, &to).await.map_err(|error| failure(&error))?;
    let summary = &handed.summary;
    if out.json {
        let audit_seq = handed.audit_seq.map(|seq| seq.0);
        return out.document(&SummaryJson {
            to: Some(KeyJson::from(&to)),
            audit_seq,
            ..SummaryJson::new(summary)
        });
    }
    out.line(&format!(
        "the next run of {to} is told of {} of {from}",
        plain::turns(summary.span.1 - summary.span.0 + 1 - summary.left_out)
    ))?;
    out.flush()?;
    warn(summary, out);
    Ok(())
}

fn request(key: SessionKey, how: &How, world: &World) -> SummaryRequest {
    let span = match (how.from, how.up_to) {
        (Some(first), _) => TurnSpan::From(first),
        (None, Some(last)) => TurnSpan::UpTo(last),
        (None, None) => TurnSpan::Whole,
    };
    let mut request = SummaryRequest::new(key).span(span).by(how.by.into());
    if let Some(bytes) = how.bytes {
        request = request.bytes(bytes);
    }
    if let Some(words) = &how.steer {
        request = request.steering(words);
    }
    if let Some(folder) = &how.cwd {
        request = request.cwd(world.around.cwd.join(folder));
    }
    request
}

/// What a person has to know beside the text.
fn warn(summary: &Summary, out: &mut Output) {
    if let SummarySource::TextInstead(why) = &summary.source {
        out.note(&format!("made from the transcript: {why}"));
    }
    if summary.left_out > 0 {
        out.note(&format!("left out: {}", plain::turns(summary.left_out)));
    }
    for warning in &summary.warnings {
        out.note(&format!("warning: {warning}"));
    }
}

fn failure(error: &SummaryError) -> Failure {
    let exit = match error {
        SummaryError::Budget { .. } | SummaryError::Steering { .. } => Exit::Usage,
        SummaryError::Span { .. } | SummaryError::Read { source: HandOverError::NoSession { .. }, .. } => {
            Exit::NotFound
        }
        SummaryError::Busy { .. } => Exit::Busy,
        SummaryError::Unsettled { .. } | SummaryError::Pending { .. } | SummaryError::ToItself { .. } => {
            Exit::Refused
        }
        _ => Exit::Failed,
    };
    Failure::new(exit, Chain(error).to_string())
}
