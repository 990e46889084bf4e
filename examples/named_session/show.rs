//! Prints what happened, for people or as JSON lines.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this file is for")]

use std::error::Error;
use std::path::Path;

use rejoin::{AuditEntry, LlmResult, NativeId, RunError, SessionKey, Usage, Why};
use serde::Serialize;

#[derive(Serialize)]
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
    error: Option<String>,
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
            error: None,
        }),
        (true, Err(error)) => failed_line(error),
        (false, Ok(result)) => {
            println!("\n {number}  “{prompt}”");
            println!("    {:<10} {}", result.route.code(), reason(result.route.why()));
            if let Some(id) = &result.session_id {
                let name = result.name.as_deref().unwrap_or("–");
                println!("    {:<10} {id}  ({name})", "session");
            }
            println!("    {:<10} {}", "answer", result.text.trim().replace('\n', "\n               "));
            let cost = result.cost_usd.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
            let Usage { input_tokens, output_tokens, .. } = result.usage;
            println!("    {:<10} {input_tokens} tokens in, {output_tokens} out{cost}", "usage");
            for warning in &result.warnings {
                println!("    {:<10} {warning}", "note");
            }
        }
        (false, Err(failure)) => {
            println!("\n {number}  “{prompt}”");
            error(failure);
            if let RunError::Failed { run, .. } = failure {
                for said in run.attempts.iter().filter_map(|attempt| attempt.said.as_deref()) {
                    eprintln!("  the agent said: {said}");
                }
            }
        }
    }
    result.is_ok()
}

fn failed_line(failure: &RunError) {
    let run = if let RunError::Failed { run, .. } = failure { Some(run) } else { None };
    line(&Turn {
        session_id: run.and_then(|run| run.session_id.as_ref()),
        resumed: false,
        resume_fallback: failure.why().map(Why::code),
        route: "failed",
        text: run.map_or("", |run| &run.partial_text),
        usage: run.map(|run| run.usage).unwrap_or_default(),
        cost_usd: run.and_then(|run| run.cost_usd),
        recorded: run.is_some_and(|run| run.recorded.is_saved()),
        audit_seq: run.and_then(|run| run.audit_seq).map(|seq| seq.0),
        error: Some(chain(failure)),
    });
}

fn line(turn: &Turn<'_>) {
    match serde_json::to_string(turn) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("{error}"),
    }
}

/// Says what is about to run.
pub(crate) fn title(json: bool, key: &SessionKey, base: &Path) {
    if !json {
        println!("Mailbox {}, agent {}", key.mailbox, key.agent);
        println!("Store   {}", base.join(".agent-sessions").display());
    }
}

/// Says that the session's file was deleted.
pub(crate) fn lost(json: bool, path: &Path) {
    if !json {
        println!("\n    ✂ somebody deletes {}", path.display());
    }
}

/// Prints the audit trail.
pub(crate) fn audit(json: bool, key: &SessionKey, entries: &[AuditEntry]) {
    if json {
        return;
    }
    println!("\nAudit trail of {key}");
    for AuditEntry { seq, event } in entries {
        let route = event.route.as_deref().unwrap_or_default();
        let why = event.why.as_deref().unwrap_or("–");
        let short = |id: &Option<NativeId>| {
            id.as_ref().map_or_else(|| "–".to_owned(), |id| id.as_str().chars().take(8).collect())
        };
        let (before, after) = (short(&event.before), short(&event.after));
        println!(" {:>2}  {:<13} {route:<10} {why:<17} {before:>8} → {after}", seq.0, event.kind);
    }
}

/// Prints an error and what caused it.
pub(crate) fn error(failure: &dyn Error) {
    eprintln!("error: {}", chain(failure));
}

fn chain(failure: &dyn Error) -> String {
    let mut text = failure.to_string();
    let mut source = failure.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn reason(why: Option<Why>) -> String {
    why.map(|why| format!("{} – {why}", why.code())).unwrap_or_default()
}
