//! Evidence as a verdict.
//!
//! The structure of an attempt decides first: why the last step ended, whether an error came after it, how the process
//! ended. Exit 0 alone proves nothing: up to 1.15.13 it is also the exit of an error, of an unknown session and of a
//! rejected permission. Texts come second, from one table, and only from where the agent speaks of itself: never from
//! the model's prose.

use session_core::decide::{Activity, Verdict};
use session_core::{Asked, EndedBy, Evidence, Exit};

use crate::decode::{ERROR, OVERFLOW, STREAM_CUT};

/// Where in an attempt a text can be told from others that look like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// A resume or fork of which nothing was heard but this.
    ResumeFailed,
    /// Nothing began.
    NotBegun,
    /// An error that the agent reports in its stream.
    Reported,
}

/// A known text of a failure.
struct Signature {
    text: &'static str,
    when: When,
    verdict: Verdict,
    /// The versions that showed it, and the fixture where there is one.
    #[cfg_attr(not(test), expect(dead_code, reason = "the proof is for readers and for a test"))]
    seen: &'static str,
}

const fn sign(text: &'static str, when: When, verdict: Verdict, seen: &'static str) -> Signature {
    Signature { text, when, verdict, seen }
}

/// Every known text, the more special ones first.
#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    // A session that is not there. Also said when a column of its row cannot be read: the catalog knows better.
    sign("Session not found", When::ResumeFailed, Verdict::Missing, "1.2.1 (exit 0), 1.15.13, 1.18.33 resume-unknown"),
    sign("storage/session/", When::ResumeFailed, Verdict::Missing, "1.1.65 resume-unknown: Resource not found: …/storage/session/…"),
    sign("must start with \\\"ses\\\"", When::ResumeFailed, Verdict::Missing, "1.1.65, 1.2.1: exit 0"),
    // A database that cannot be used. The fresh run gets another one, but for 1.2 to 1.14 and without a state dir.
    sign("database is locked", When::NotBegun, Verdict::Busy, "1.2.1, 1.18.33 database-locked"),
    sign("file is not a database", When::ResumeFailed, Verdict::Incompatible, "1.2.1, 1.18.33 database-garbage"),
    sign("database disk image is malformed", When::ResumeFailed, Verdict::Incompatible, "1.18.33 database-cut"),
    sign("SQLITE_CORRUPT", When::ResumeFailed, Verdict::Incompatible, "1.2.1: damaged pages, exit 0"),
    // Locked, damaged or of a newer version: 1.15.13 does not tell.
    sign("Failed to run the query 'PRAGMA journal_mode", When::ResumeFailed, Verdict::Unindexed, "1.15.13 database-garbage, database-locked"),
    sign("Failed to run the query 'CREATE TABLE", When::ResumeFailed, Verdict::Unindexed, "1.15.13, 1.2.1: made by 1.18.33"),
    sign("file is not a database", When::NotBegun, Verdict::Misconfigured, "1.18.33: import"),
    sign("database disk image is malformed", When::NotBegun, Verdict::Misconfigured, "1.18.33: import"),
    sign("Failed to run the query", When::NotBegun, Verdict::Misconfigured, "1.15.13: import"),
    sign("unable to open database file", When::NotBegun, Verdict::Misconfigured, "1.15.13, 1.18.33: mode 000, no parent folder"),
    sign("attempt to write a readonly database", When::NotBegun, Verdict::Misconfigured, "1.18.33: read-only data folder"),
    sign("Failed query: insert into \"project\"", When::NotBegun, Verdict::Misconfigured, "1.18.33: database of mode 444"),
    sign("database or disk is full", When::NotBegun, Verdict::Misconfigured, "SQLite's text; not seen here"),
    sign("output file already exists", When::NotBegun, Verdict::Misconfigured, "1.15.13: a copy for a fork"),
    sign("Failed query: VACUUM INTO", When::NotBegun, Verdict::Misconfigured, "1.18.33: a copy for a fork"),
    sign("EACCES: permission denied", When::NotBegun, Verdict::Misconfigured, "1.18.33: data folder of mode 000, read-only home"),
    sign("PermissionDenied: FileSystem", When::NotBegun, Verdict::Misconfigured, "1.18.33: read-only log folder"),
    // What was asked for.
    sign("You must provide a message", When::NotBegun, Verdict::Misconfigured, "all: a prompt of white space"),
    sign("Failed to change directory", When::NotBegun, Verdict::Misconfigured, "1.18.33"),
    sign("onfiguration is invalid", When::NotBegun, Verdict::Misconfigured, "1.15.13, 1.18.33 configuration-broken"),
    sign("is not valid JSON", When::NotBegun, Verdict::Misconfigured, "1.1.65, 1.2.1 configuration-broken"),
    sign("ProviderModelNotFoundError", When::NotBegun, Verdict::Misconfigured, "1.1.65, 1.2.1 model-unknown"),
    sign("Model not found", When::Reported, Verdict::Misconfigured, "1.1.65, 1.2.1, 1.15.13 model-unknown; 1.18.33 does not tell"),
    // What the provider says of a conversation that is too long.
    sign("rompt is too long", When::Reported, Verdict::ContextOverflow, "an API's text; not seen here"),
    sign("maximum context length", When::Reported, Verdict::ContextOverflow, "an API's text; not seen here"),
    sign("exceeds the context window", When::Reported, Verdict::ContextOverflow, "an API's text; not seen here"),
    // What the provider says of one that it takes no more, whatever is asked: calls without results, thoughts that were
    // signed by or for another.
    sign("`tool_use` ids were found without", When::Reported, Verdict::Incompatible, "users' reports (anomalyco/opencode#10616)"),
    sign("ids were found without tool_result", When::Reported, Verdict::Incompatible, "users' reports, without the backticks"),
    sign("must be followed by tool messages", When::Reported, Verdict::Incompatible, "an API's text; not seen here"),
    sign("No tool output found for function call", When::Reported, Verdict::Incompatible, "an API's text; not seen here"),
    sign("was provided without its required", When::Reported, Verdict::Incompatible, "an API's text; not seen here"),
    sign("Invalid `signature` in `thinking`", When::Reported, Verdict::Incompatible, "an API's text; not seen here"),
    sign("invalid_encrypted_content", When::Reported, Verdict::Incompatible, "an API's code; not seen here"),
];

/// What the end of an attempt means.
pub(crate) fn of(evidence: &Evidence) -> Verdict {
    if is_done(evidence) {
        return if evidence.observation.session.is_some() { Verdict::Completed } else { Verdict::Unknown };
    }
    match evidence.ended_by {
        Some(EndedBy::Cancel) => return Verdict::Cancelled,
        Some(EndedBy::StartLimit | EndedBy::IdleLimit | EndedBy::TotalLimit) => return Verdict::TimedOut,
        Some(EndedBy::Linger) | None => {}
    }
    by_text(evidence)
        .or_else(|| by_error(evidence))
        .or_else(|| by_reason(evidence))
        .unwrap_or_else(|| by_exit(evidence))
}

/// Whether the last step was a last one, nothing went wrong after it, and the process ended as such a run does.
fn is_done(evidence: &Evidence) -> bool {
    let observation = &evidence.observation;
    let stopped = observation.end.as_ref().is_some_and(|end| end.kind == "stop" && !end.is_error);
    let proper = match evidence.exit {
        Exit::Code(0) => true,
        // An error that the agent went on after, such as an overflow that a compaction cured, leaves its mark (1.18.33).
        Exit::Code(1) => observation.trouble.is_some(),
        // It was over, but for its process.
        _ => evidence.ended_by.is_some(),
    };
    stopped && proper
}

fn not_begun(evidence: &Evidence) -> bool {
    let observation = &evidence.observation;
    observation.session.is_none() && observation.activity() == Activity::None && observation.trouble.is_none()
}

fn by_text(evidence: &Evidence) -> Option<Verdict> {
    let not_begun = not_begun(evidence);
    let continues = !matches!(evidence.asked, Asked::Fresh(_));
    let observation = &evidence.observation;
    let errors = observation.end.iter().flat_map(|end| end.errors.iter().map(String::as_str));
    let reported: Vec<&str> = errors.collect();
    let written = [evidence.stderr_tail.as_str(), observation.noise_head.as_str()];
    let holds = |signature: &Signature| match signature.when {
        When::ResumeFailed if !(not_begun && continues) => false,
        When::NotBegun if !not_begun => false,
        When::ResumeFailed | When::NotBegun => written.iter().any(|text| text.contains(signature.text)),
        When::Reported => reported.iter().any(|text| text.contains(signature.text)),
    };
    SIGNATURES.iter().find(|signature| holds(signature)).map(|signature| signature.verdict)
}

/// An error after which nothing came.
fn by_error(evidence: &Evidence) -> Option<Verdict> {
    let end = evidence.observation.end.as_ref()?;
    let (code, _) = evidence.observation.trouble.as_ref()?;
    if end.kind == OVERFLOW {
        return Some(Verdict::ContextOverflow);
    }
    if end.kind != ERROR {
        return None;
    }
    Some(match (code.as_str(), end.api_status) {
        // After the first one the agent makes the conversation shorter: a run that ended there was ended.
        ("ContextOverflowError", _) if evidence.exit != Exit::Code(0) => return None,
        ("ContextOverflowError", _) | (_, Some(413)) => Verdict::ContextOverflow,
        ("ProviderAuthError", _) | (_, Some(401 | 403)) => Verdict::Unauthenticated,
        ("MessageOutputLengthError", _) => Verdict::LimitReached,
        (_, Some(402 | 429)) => Verdict::RateLimited,
        (_, Some(404)) => Verdict::Misconfigured,
        (_, Some(408 | 500..=599)) => Verdict::Transient,
        // Among them `UnknownError`, the only line of a resume whose messages cannot be read, or whose folder is gone
        // (1.15.13, 1.18.33), and of a fresh run whose model is unknown (1.18.33): a fresh run on trial tells them apart.
        _ => Verdict::Unknown,
    })
}

/// Why the last step ended, where that was not `stop`.
fn by_reason(evidence: &Evidence) -> Option<Verdict> {
    let end = evidence.observation.end.as_ref()?;
    Some(match end.kind.as_str() {
        STREAM_CUT => Verdict::Transient,
        _ if !matches!(evidence.exit, Exit::Code(0)) => return None,
        // A permission that nobody could give ends the turn so (1.1.65 to 1.18.33). The line names the permission.
        "tool-calls" if is_rejected(&evidence.stderr_tail) => Verdict::Misconfigured,
        "length" => Verdict::LimitReached,
        // The provider cut its stream (1.15.13).
        "unknown" => Verdict::Transient,
        _ => Verdict::NoResult,
    })
}

fn is_rejected(stderr: &str) -> bool {
    stderr.contains("permission requested: ") && stderr.contains("auto-rejecting")
}

fn by_exit(evidence: &Evidence) -> Verdict {
    let not_begun = not_begun(evidence);
    match evidence.exit {
        Exit::Signal(_) | Exit::Code(129..=159) => Verdict::Crashed,
        Exit::Code(0) => Verdict::NoResult,
        Exit::Code(_) if not_begun => Verdict::Unknown,
        Exit::Code(_) => Verdict::Crashed,
        Exit::Unknown => Verdict::Unknown,
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
