//! `rejoin close` and `rejoin sweep`.

use std::io::Read as _;
use std::path::Path;

use rejoin::core::Timestamp;
use rejoin::error::Chain;
use rejoin::{
    CloseError, Closed, Closing, InvalidLive, Live, MailboxNotClosed, Sweep, SweepOutcome, SweepReport, Swept,
};
use serde::Serialize;

use crate::args;
use crate::commands::explain::{is_mailbox, key};
use crate::exit::{Exit, Failure};
use crate::json::KeyJson;
use crate::output::Output;
use crate::plain;
use crate::world::World;

#[derive(Debug, Serialize)]
struct CloseJson {
    mailbox: String,
    because: &'static str,
    closed: Vec<ClosedJson>,
    failed: Vec<NotClosedJson>,
}

#[derive(Debug, Serialize)]
struct ClosedJson {
    agent: String,
    session: Option<String>,
    candidate: Option<String>,
    ended: u32,
    state_removed: bool,
    checkpoints: Option<u64>,
}

#[derive(Debug, Serialize)]
struct NotClosedJson {
    agent: Option<String>,
    code: Exit,
    message: String,
}

impl From<&Closed> for ClosedJson {
    fn from(closed: &Closed) -> Self {
        Self {
            agent: closed.key.agent.to_string(),
            session: closed.session.as_ref().map(ToString::to_string),
            candidate: closed.candidate.as_ref().map(ToString::to_string),
            ended: closed.ended,
            state_removed: closed.state_removed,
            checkpoints: closed.checkpoints,
        }
    }
}

impl From<&CloseError> for NotClosedJson {
    fn from(error: &CloseError) -> Self {
        let (key, code) = match error {
            CloseError::Busy { key, .. } => (Some(key), Exit::Busy),
            CloseError::Newer { key }
            | CloseError::Store { key, .. }
            | CloseError::Checkpoints { key, .. } => (Some(key), Exit::Failed),
            _ => (None, Exit::Failed),
        };
        Self { agent: key.map(|key| key.agent.to_string()), code, message: Chain(error).to_string() }
    }
}

pub(crate) async fn close(args: &args::Close, world: &World, out: &mut Output) -> Result<(), Failure> {
    let because = Closing::from(args.because);
    // A mailbox may be called like a key: its own name counts first.
    let key = match key(&args.mailbox, world)? {
        Some(key) if !is_mailbox(&args.mailbox, world).await? => Some(key),
        _ => None,
    };
    let (closed, failed) = match &key {
        Some(key) => match world.sessions.close_key(key, because).await {
            Ok(closed) => (vec![closed], Vec::new()),
            Err(error) => (Vec::new(), vec![error]),
        },
        None => match world.sessions.close(&args.mailbox, because).await {
            Ok(closed) => (closed, Vec::new()),
            Err(MailboxNotClosed::Agents { closed, source, others }) => {
                (closed, std::iter::once(*source).chain(others).collect())
            }
            Err(error) => return Err(Failure::caused(Exit::Usage, &error)),
        },
    };
    // A mailbox is closed for every agent, also for those that never had it.
    let had = |closed: &&Closed| {
        let checkpoints = closed.checkpoints.is_some_and(|gone| gone > 0);
        let had_session = closed.session.is_some() || closed.candidate.is_some();
        had_session || closed.state_removed || closed.ended > 0 || checkpoints
    };
    let closed: Vec<_> = closed.iter().filter(had).collect();
    let document = CloseJson {
        mailbox: key.map_or_else(|| args.mailbox.clone(), |key| key.mailbox.to_string()),
        because: because.code(),
        closed: closed.iter().map(|closed| ClosedJson::from(*closed)).collect(),
        failed: failed.iter().map(NotClosedJson::from).collect(),
    };
    if out.json {
        out.document(&document)?;
    } else {
        for one in &closed {
            let session = one.session.as_ref().map_or_else(|| "no session".to_owned(), ToString::to_string);
            out.line(&plain::line(&format!("closed {}: {session}", one.key)))?;
        }
        if closed.is_empty() && failed.is_empty() {
            out.line("nothing was open")?;
        }
        out.flush()?;
    }
    let Some(first) = document.failed.first() else { return Ok(()) };
    let messages: Vec<_> = document.failed.iter().map(|failed| failed.message.clone()).collect();
    let failure = Failure::new(first.code, messages.join("\n"));
    Err(if out.json { failure.told() } else { failure })
}

#[derive(Debug, Serialize)]
struct SweepJson {
    dry_run: bool,
    at: Timestamp,
    swept: Vec<SweptJson>,
    live: u64,
    young: u64,
    freed: u64,
    falling: Vec<FallingJson>,
    unread: Vec<UnreadJson>,
    left_alone: Vec<String>,
}

#[derive(Debug, Serialize)]
struct SweptJson {
    key: Option<KeyJson>,
    place: Option<String>,
    session: Option<String>,
    reason: &'static str,
    last_used: Option<Timestamp>,
    bytes: Option<u64>,
    outcome: &'static str,
    message: Option<String>,
}

#[derive(Debug, Serialize)]
struct FallingJson {
    key: KeyJson,
    session: String,
    last_used: Timestamp,
    falls_at: Timestamp,
}

#[derive(Debug, Serialize)]
struct UnreadJson {
    key: KeyJson,
    reason: Option<String>,
}

impl From<&Swept> for SweptJson {
    fn from(swept: &Swept) -> Self {
        let (outcome, message) = match &swept.outcome {
            SweepOutcome::Removed => ("removed", None),
            SweepOutcome::WouldBeRemoved => ("would_be_removed", None),
            SweepOutcome::Busy { by } => ("busy", by.as_ref().map(ToString::to_string)),
            SweepOutcome::Changed => ("changed", None),
            SweepOutcome::Failed(error) => ("failed", Some(Chain(error).to_string())),
            SweepOutcome::NotForgotten(error) => ("failed", Some(Chain(error).to_string())),
            _ => ("other", None),
        };
        Self {
            key: swept.key.as_ref().map(KeyJson::from),
            place: swept.place.clone(),
            session: swept.session.as_ref().map(ToString::to_string),
            reason: swept.reason.code(),
            last_used: swept.last_used,
            bytes: swept.size.map(|size| size.bytes),
            outcome,
            message,
        }
    }
}

impl From<&SweepReport> for SweepJson {
    fn from(report: &SweepReport) -> Self {
        let falling = report.falling.iter().map(|falling| FallingJson {
            key: KeyJson::from(&falling.key),
            session: falling.session.to_string(),
            last_used: falling.last_used,
            falls_at: falling.falls_at,
        });
        let unread = report.unread.iter().map(|(key, error)| UnreadJson {
            key: KeyJson::from(key),
            reason: error.as_ref().map(|error| Chain(error).to_string()),
        });
        Self {
            dry_run: report.dry_run,
            at: report.at,
            swept: report.swept.iter().map(SweptJson::from).collect(),
            live: report.live,
            young: report.young,
            freed: report.freed(),
            falling: falling.collect(),
            unread: unread.collect(),
            left_alone: report.left_alone.clone(),
        }
    }
}

pub(crate) async fn sweep(args: &args::Sweep, world: &World, out: &mut Output) -> Result<(), Failure> {
    let live = if args.live_all {
        Live::all()
    } else {
        let mut mailboxes = args.live.clone();
        if let Some(file) = &args.live_file {
            mailboxes.extend(lines(file)?);
        }
        Live::of(mailboxes).map_err(|error| match error {
            // The library's own words are for who calls it.
            InvalidLive::Empty => Failure::usage("no mailbox is said to be alive: everything would be swept"),
            error => Failure::caused(Exit::Usage, &error),
        })?
    };
    let sweep = Sweep::new(live).grace(args.grace).dry_run(!args.remove);
    out.progress("looking at what is kept …");
    let report = world.sessions.sweep(&sweep).await.map_err(|error| Failure::failed(&error))?;
    if out.json {
        out.document(&SweepJson::from(&report))?;
    } else {
        out.line(&plain::lines(&report.to_string()))?;
        out.flush()?;
    }
    match report.failures().count() {
        0 => Ok(()),
        _ if out.json => Err(Failure::new(Exit::Failed, "").told()),
        failed => Err(Failure::new(Exit::Failed, format!("{failed} could not be removed"))),
    }
}

/// The lines of a file, or of stdin, that hold a mailbox.
fn lines(file: &Path) -> Result<Vec<String>, Failure> {
    let text = read(file)?;
    Ok(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
}

/// A file, or stdin, as text.
pub(crate) fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", file.display())))?;
    Ok(text)
}
