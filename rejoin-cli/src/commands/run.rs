//! `rejoin run`.

use std::io::IsTerminal as _;
use std::path::Path;

use rejoin::error::{Chain, RunError};
use rejoin::{
    AgentEvent, AttemptNote, Cancel, FailedRun, Limits, LlmRequest, LlmResult, Route, SessionRef, Totals,
    Usage, Why,
};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::args::Run;
use crate::commands::ends::read;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::plain;
use crate::signals;
use crate::world::World;

#[derive(Debug, Default, Serialize)]
struct RunJson<'a> {
    mailbox: &'a str,
    agent: &'a str,
    ok: bool,
    text: &'a str,
    session: Option<String>,
    name: Option<&'a str>,
    route: Option<&'static str>,
    resumed: bool,
    why: Option<&'static str>,
    why_text: Option<String>,
    usage: Usage,
    cost_usd: Option<f64>,
    totals: Option<Totals>,
    recorded: bool,
    audit_seq: Option<u64>,
    run: Option<String>,
    agent_version: Option<&'a str>,
    attempts: &'a [AttemptNote],
    warnings: Vec<String>,
    error: Option<ErrorJson>,
}

#[derive(Debug, Serialize)]
struct ErrorJson {
    code: Exit,
    exit: u8,
    message: String,
    candidates: [String; 0],
}

pub(crate) async fn run(args: &Run, world: &World, out: &mut Output) -> Result<(), Failure> {
    let prompt = prompt(args)?;
    let here = &world.around.cwd;
    let cwd = args.cwd.as_ref().map_or_else(|| here.clone(), |folder| here.join(folder));
    let mut session = SessionRef::new(&args.mailbox, &args.agent);
    if let Some(name) = &args.name {
        session = session.named(name);
    }
    world.agent_ids(std::slice::from_ref(&args.agent))?;
    let cancel = Cancel::new();
    let mut request = LlmRequest::new(prompt)
        .cwd(cwd)
        .session(session)
        .resume(args.resume.into())
        .enter_other_project(args.enter_other_project)
        .limits(limits(args))
        .cancel(cancel.clone());
    if let Some(model) = &args.model {
        request = request.model(model);
    }
    if let Some(original) = &args.fork_of {
        request = request.fork_of(SessionRef::new(original, &args.agent));
    }
    let (result, signal) = watched(request, &cancel, args, world, out).await?;
    out.clear();
    match (&result, out.json) {
        (Ok(result), true) => out.document(&of_result(args, result)),
        (Ok(result), false) => tell(result, out),
        (Err(error), json) => {
            let exit = exit_of(error);
            // Who ended it is told by the signal's own number.
            let exit = signal.filter(|_| exit == Exit::Cancelled).unwrap_or(exit);
            if json {
                out.document(&of_error(args, error, exit))?;
                return Err(Failure::new(exit, "").told());
            }
            if let RunError::Failed { run, .. } = error {
                partial(run, out)?;
            }
            Err(Failure::caused(exit, error))
        }
    }
}

/// Runs the request; what happens meanwhile is told on stderr, and a signal ends the run in order: the first one is told.
async fn watched(
    request: LlmRequest,
    cancel: &Cancel,
    args: &Run,
    world: &World,
    out: &mut Output,
) -> Result<(Result<LlmResult, RunError>, Option<Exit>), Failure> {
    let (events, mut told) = mpsc::unbounded_channel();
    let mut sink = move |event: &AgentEvent<'_>| {
        if let Some(text) = progress(event) {
            // Nobody reads it once the run is over.
            let _ = events.send(text);
        }
    };
    out.progress(&format!("{} · starting", args.agent));
    let (mut signals, mut signal) = (signals::Ending::listen()?, None);
    let run = world.sessions.run_with(request, &mut sink);
    tokio::pin!(run);
    loop {
        tokio::select! {
            result = &mut run => return Ok((result, signal)),
            Some(text) = told.recv() => out.progress(&format!("{} · {text}", args.agent)),
            ending = signals.next() => {
                signal.get_or_insert(ending);
                cancel.cancel();
            }
        }
    }
}

fn progress(event: &AgentEvent<'_>) -> Option<String> {
    Some(match event {
        AgentEvent::Session { id } => format!("session {id}"),
        AgentEvent::ModelCalled => "the model is at work".to_owned(),
        AgentEvent::ToolStarted { name, .. } => format!("runs {name}"),
        AgentEvent::ToolFinished { .. } => "the model is at work".to_owned(),
        AgentEvent::Retrying { attempt, .. } => format!("tries a model call again ({attempt})"),
        AgentEvent::Trouble { text, .. } => format!("trouble: {text}"),
        AgentEvent::FellBack { why } => format!("starts fresh: {why}"),
        AgentEvent::Queued { by } => {
            let by = by.map(|by| format!(" ({by})")).unwrap_or_default();
            format!("waits for another runner{by}")
        }
        AgentEvent::Waiting { why } => format!("waits: {why}"),
        _ => return None,
    })
}

/// The prompt: what was said after `--`, else a file, else stdin. Word for word.
fn prompt(args: &Run) -> Result<String, Failure> {
    if !args.prompt.is_empty() {
        return Ok(args.prompt.join(" "));
    }
    match &args.prompt_file {
        Some(file) => read(file),
        None if std::io::stdin().is_terminal() => {
            Err(Failure::usage("there is no prompt: say it after --, in --prompt-file, or on stdin"))
        }
        None => read(Path::new("-")),
    }
}

fn limits(args: &Run) -> Limits {
    let mut limits = Limits::default();
    if let Some(wait) = args.wait {
        limits = limits.lease(wait);
    }
    if let Some(idle) = args.idle {
        limits = limits.idle(idle);
    }
    if let Some(total) = args.total {
        limits = limits.total(total);
    }
    limits
}

const fn exit_of(error: &RunError) -> Exit {
    match error {
        RunError::Request(_) => Exit::Usage,
        RunError::Busy { .. } => Exit::Busy,
        RunError::Cancelled => Exit::Cancelled,
        RunError::Refused { why: Why::ProjectDiffers } => Exit::OtherProject,
        RunError::Refused { .. } => Exit::Refused,
        RunError::Agent(_) => Exit::NoAgent,
        RunError::Failed { why: Why::Cancelled, .. } => Exit::Cancelled,
        _ => Exit::Failed,
    }
}

fn of_result<'a>(args: &'a Run, result: &'a LlmResult) -> RunJson<'a> {
    let why = result.route.why();
    RunJson {
        mailbox: &args.mailbox,
        agent: &args.agent,
        ok: true,
        text: &result.text,
        session: result.session_id.as_ref().map(ToString::to_string),
        name: result.name.as_deref(),
        route: Some(result.route.code()),
        resumed: result.resumed,
        why: why.map(Why::code),
        why_text: why.map(|why| why.to_string()),
        usage: result.usage,
        cost_usd: result.cost_usd,
        totals: Some(result.totals),
        recorded: result.recorded.is_saved(),
        audit_seq: result.audit_seq.map(|seq| seq.0),
        run: Some(result.run.to_string()),
        agent_version: result.agent_version.as_deref(),
        attempts: &result.attempts,
        warnings: result.warnings.iter().map(ToString::to_string).collect(),
        error: None,
    }
}

fn of_error<'a>(args: &'a Run, error: &'a RunError, exit: Exit) -> RunJson<'a> {
    let why = error.why();
    let message = Chain(error).to_string();
    let error_json = ErrorJson { code: exit, exit: exit.number(), message, candidates: [] };
    let base = RunJson {
        mailbox: &args.mailbox,
        agent: &args.agent,
        why: why.map(Why::code),
        why_text: why.map(|why| why.to_string()),
        error: Some(error_json),
        ..RunJson::default()
    };
    let RunError::Failed { run, .. } = error else { return base };
    RunJson {
        text: &run.partial_text,
        session: run.session_id.as_ref().map(ToString::to_string),
        route: Some(run.route.code()),
        usage: run.usage,
        cost_usd: run.cost_usd,
        recorded: run.recorded.is_saved(),
        audit_seq: run.audit_seq.map(|seq| seq.0),
        run: Some(run.run.to_string()),
        attempts: &run.attempts,
        warnings: run.warnings.iter().map(ToString::to_string).collect(),
        ..base
    }
}

/// The answer goes to stdout, what happened to stderr.
fn tell(result: &LlmResult, out: &mut Output) -> Result<(), Failure> {
    let id = result.session_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let route = match result.route {
        Route::Resumed => format!("resumed {id}"),
        Route::Forked => format!("forked to {id}"),
        Route::Fresh(why) | Route::FellBack(why) => format!("fresh {id}: {why} ({})", why.code()),
    };
    out.note(&route);
    for warning in &result.warnings {
        out.note(&format!("note: {warning}"));
    }
    if !result.recorded.is_saved() {
        out.note("note: the session could not be recorded; the next run will not know of it");
    }
    out.line(&plain::lines(result.text.trim_end()))?;
    out.flush()
}

fn partial(run: &FailedRun, out: &mut Output) -> Result<(), Failure> {
    if !run.partial_text.trim().is_empty() {
        out.line(&plain::lines(run.partial_text.trim_end()))?;
        out.flush()?;
    }
    let kept = run.session_id.as_ref().map(|id| format!("the session {id} stays bound"));
    out.note(kept.as_deref().unwrap_or("no session is bound"));
    Ok(())
}
