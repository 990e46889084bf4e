//! Prints what happened, for people or as JSON lines.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;

use rejoin::error::Chain;
use rejoin::{AuditEntry, LlmResult, NativeId, RunError, SessionKey, Usage, Why};
use serde::Serialize;

#[derive(Debug, Default, Serialize)]
struct Turn<'a> {
    session_id: Option<&'a NativeId>,
    resumed: bool,
    resume_fallback: Option<&'static str>,
    route: &'static str,
    text: &'a str,
    usage: Usage,
    cost_usd: Option<f64>,
    recorded: bool,
    audit_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A reader that went away is no reason to fail.
fn out(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}

fn field(name: &str, value: impl Display) {
    out(format_args!("    {name:<10} {value}"));
}

/// Text of others, without what would move the cursor or change the colours.
fn plain(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() && c != '\n' { '·' } else { c }).collect()
}

/// Prints one turn; says whether it went well.
pub(crate) fn turn(json: bool, number: usize, prompt: &str, result: &Result<LlmResult, RunError>) -> bool {
    match (json, result) {
        (true, Ok(result)) => line(&Turn {
            session_id: result.session_id.as_ref(),
            resumed: result.resumed,
            resume_fallback: result.resume_fallback.map(Why::code),
            route: result.route.code(),
            text: &result.text,
            usage: result.usage,
            cost_usd: result.cost_usd,
            recorded: result.recorded.is_saved(),
            audit_seq: result.audit_seq.map(|seq| seq.0),
            ..Turn::default()
        }),
        (true, Err(failure)) => failed_line(failure),
        (false, _) => {
            out(format_args!("\n {number}  “{}”", plain(prompt).replace('\n', " ")));
            match result {
                Ok(result) => went_well(result),
                Err(failure) => error(failure),
            }
        }
    }
    result.is_ok()
}

fn went_well(result: &LlmResult) {
    match result.route.why() {
        None => field("route", result.route.code()),
        Some(why) => field("route", format_args!("{} ({}): {why}", result.route.code(), why.code())),
    }
    if let Some(id) = &result.session_id {
        field("session", format_args!("{id} {}", result.name.as_deref().map(plain).unwrap_or_default()));
    }
    field("answer", plain(&result.text).replace('\n', "\n               "));
    let Usage { input_tokens, output_tokens, .. } = result.usage;
    let cost = result.cost_usd.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    field("usage", format_args!("{input_tokens} tokens in, {output_tokens} out{cost}"));
    for warning in &result.warnings {
        field("note", warning);
    }
}

fn failed_line(failure: &RunError) {
    let run = if let RunError::Failed { run, .. } = failure { Some(run) } else { None };
    line(&Turn {
        session_id: run.and_then(|run| run.session_id.as_ref()),
        route: "failed",
        text: run.map_or("", |run| &run.partial_text),
        usage: run.map(|run| run.usage).unwrap_or_default(),
        cost_usd: run.and_then(|run| run.cost_usd),
        recorded: run.is_some_and(|run| run.recorded.is_saved()),
        audit_seq: run.and_then(|run| run.audit_seq).map(|seq| seq.0),
        failed: failure.why().map(Why::code),
        error: Some(Chain(failure).to_string()),
        ..Turn::default()
    });
}

fn line(turn: &Turn<'_>) {
    match serde_json::to_string(turn) {
        Ok(text) => out(text),
        Err(failure) => error(&failure),
    }
}

/// Says what is about to run.
pub(crate) fn title(json: bool, key: &SessionKey, agent: &str, base: &Path) {
    if !json {
        out(format_args!("Mailbox {}, agent {agent}", key.mailbox));
        out(format_args!("Store   {}", base.join(".agent-sessions").display()));
    }
}

/// Says that the session's file was deleted.
pub(crate) fn lost(json: bool, path: &Path) {
    if !json {
        out(format_args!("\n    ✂ somebody deletes {}", path.display()));
    }
}

/// Prints the audit trail.
pub(crate) fn audit(json: bool, key: &SessionKey, entries: &[AuditEntry]) {
    if json {
        return;
    }
    out(format_args!("\nAudit trail of {key}"));
    for AuditEntry { seq, event } in entries {
        let route = event.route.as_deref().unwrap_or_default();
        let why = event.why.as_deref().unwrap_or("–");
        let short = |id: &Option<NativeId>| {
            id.as_ref().map_or_else(|| "–".to_owned(), |id| id.as_str().chars().take(8).collect())
        };
        let (before, after) = (short(&event.before), short(&event.after));
        out(format_args!(" {:>2}  {:<13} {route:<10} {why:<17} {before:>8} → {after}", seq.0, event.kind));
    }
}

/// Prints an error and what caused it.
pub(crate) fn error(failure: &(dyn Error + 'static)) {
    let _ = writeln!(io::stderr(), "error: {}", plain(&Chain(failure).to_string()));
}

/// The same before there is a turn, in either form.
pub(crate) fn no_turn(json: bool, failure: &(dyn Error + 'static)) {
    if json {
        line(&Turn { route: "failed", error: Some(Chain(failure).to_string()), ..Turn::default() });
    } else {
        error(failure);
    }
}
