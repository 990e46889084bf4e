//! Evidence as a verdict.
//!
//! The structure of an attempt decides first: whether there is a final event, whether anything began, how the
//! process ended. Texts come second, from one table, and only from fields and streams where the agent speaks of
//! itself: never from the model's prose.

use session_core::decide::{Activity, Verdict};
use session_core::{Asked, EndedBy, Evidence, Exit};

/// Where in an attempt a text can be told from others that look like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// A resume or fork that ended with an error before anything began.
    ResumeFailed,
    /// Nothing began.
    NotBegun,
    /// Any failure.
    Failed,
    /// Any failure that the agent reports in its stream. What it says condemns a session, and stderr is shared with
    /// hooks and servers that fail in the same words.
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

const NOT_FOUND: &str = "No conversation found with session ID";

/// Whether the agent says that it does not have the session.
pub(crate) fn is_not_found(text: &str) -> bool {
    text.contains(NOT_FOUND)
}

/// Every known text, the more special ones first.
#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    // Before anything began.
    sign(NOT_FOUND, When::ResumeFailed, Verdict::Missing, "2.0.14, 2.1.197, 2.1.332 resume-unknown; 2.1.50 only on stdout"),
    sign("is running in the background", When::ResumeFailed, Verdict::Busy, "2.1.332 resume-of-background"),
    sign("running as a background agent", When::ResumeFailed, Verdict::Busy, "2.1.197 resume-of-background"),
    sign("No message found with message.uuid", When::ResumeFailed, Verdict::Misconfigured, "2.1.197, 2.1.332"),
    sign("No deferred tool marker found", When::ResumeFailed, Verdict::Misconfigured, "2.1.332: no prompt"),
    // A file of that name lies there already; with a random id that says nothing of the session asked for.
    sign("is already in use", When::NotBegun, Verdict::Unknown, "2.0.14, 2.1.197, 2.1.332 fresh-in-use"),
    sign("onfiguration file at", When::NotBegun, Verdict::Misconfigured, "2.0.14, 2.1.197, 2.1.332 corrupt-configuration"),
    sign("Configuration error in", When::NotBegun, Verdict::Misconfigured, "2.1.332 corrupt-configuration"),
    sign("cannot be launched inside another", When::NotBegun, Verdict::Misconfigured, "2.1.39 to 2.1.70 (anthropics/claude-code#29543); not in 2.1.332"),
    sign("current directory no longer exists", When::NotBegun, Verdict::Misconfigured, "2.1.332: deleted folder"),
    sign("Bun could not find a file", When::NotBegun, Verdict::Misconfigured, "2.1.197: deleted folder"),
    sign("error: unknown option", When::NotBegun, Verdict::Misconfigured, "2.0.14, 2.1.197, 2.1.332"),
    sign("Allowed choices are", When::NotBegun, Verdict::Misconfigured, "2.1.197: --permission-mode manual"),
    sign("--session-id", When::NotBegun, Verdict::Misconfigured, "2.0.14 fork-with-id; 2.1.197, 2.1.332: without --fork-session"),
    sign("Must be a valid UUID", When::NotBegun, Verdict::Misconfigured, "2.0.14, 2.1.197, 2.1.332"),
    sign("exceeds 10MB", When::NotBegun, Verdict::Misconfigured, "2.1.197, 2.1.332: piped stdin"),
    sign("Input must be provided", When::NotBegun, Verdict::Misconfigured, "2.0.14, 2.1.197, 2.1.332: no prompt"),
    sign("Workspace not trusted", When::NotBegun, Verdict::Misconfigured, "2.1.197, 2.1.332"),
    sign("EACCES: permission denied", When::NotBegun, Verdict::Misconfigured, "2.0.14: unwritable configuration folder"),
    sign("ENAMETOOLONG", When::Failed, Verdict::Misconfigured, "2.0.14: the folder's path is too long for a name"),
    // What a session holds.
    sign("rompt is too long", When::Reported, Verdict::ContextOverflow, "2.1.332: 12 MB of prompt"),
    sign("exceed context limit", When::Reported, Verdict::ContextOverflow, "the API's text; not seen here"),
    sign("Request too large", When::Reported, Verdict::ContextOverflow, "2.1.197, 2.1.332 error-413"),
    sign("Invalid `signature` in `thinking`", When::Reported, Verdict::Incompatible, "the API's text; not seen here"),
    sign("Invalid signature in thinking block", When::Reported, Verdict::Incompatible, "a user's report; not seen here"),
    sign("blocks in the latest assistant message cannot be modified", When::Reported, Verdict::Incompatible, "the API's text; not seen here"),
    sign("`tool_use` ids were found without", When::Reported, Verdict::Incompatible, "1.0.16 (anthropics/claude-code#1695)"),
    sign("ids were found without tool_result", When::Reported, Verdict::Incompatible, "users' reports, without the backticks"),
    sign("unexpected `tool_use_id` found in `tool_result`", When::Reported, Verdict::Incompatible, "the API's text; not seen here"),
    // Limits of the account.
    sign("hit your session limit", When::Failed, Verdict::RateLimited, "users' reports; not seen here"),
    sign("hit your usage limit", When::Failed, Verdict::RateLimited, "users' reports; not seen here"),
    sign("Rate limited", When::Failed, Verdict::RateLimited, "users' reports; not seen here"),
    sign("usage limit reached", When::Failed, Verdict::RateLimited, "in the programs of 2.1.197 and 2.1.332"),
    sign("You've hit your", When::Failed, Verdict::RateLimited, "in the programs of 2.1.197 and 2.1.332"),
    sign("You've reached your", When::Failed, Verdict::RateLimited, "in the program of 2.1.197"),
    sign("You're out of extra usage", When::Failed, Verdict::RateLimited, "in the program of 2.1.197"),
    sign("Credit balance is too low", When::Failed, Verdict::RateLimited, "in the programs of 2.1.197 and 2.1.332"),
    sign("rate_limit_error", When::Failed, Verdict::RateLimited, "2.0.14 error-429"),
    // The login.
    sign("Not logged in", When::Failed, Verdict::Unauthenticated, "2.1.197, 2.1.332 no-login"),
    sign("Invalid API key", When::Failed, Verdict::Unauthenticated, "2.0.14 no-login"),
    sign("Please run /login", When::Failed, Verdict::Unauthenticated, "2.0.14 error-401"),
    sign("Failed to authenticate", When::Failed, Verdict::Unauthenticated, "2.1.197, 2.1.332 error-401"),
    sign("OAuth token", When::Failed, Verdict::Unauthenticated, "the API's text; not seen here"),
    // The network and the server.
    sign("Connection refused", When::Failed, Verdict::Transient, "2.1.332 connection-refused"),
    sign("Unable to connect to API", When::Failed, Verdict::Transient, "2.1.197 connection-refused"),
    sign("Connection error.", When::Failed, Verdict::Transient, "2.0.14 connection-refused"),
    sign("Request timed out", When::Failed, Verdict::Transient, "not seen here"),
    sign("overloaded_error", When::Failed, Verdict::Transient, "2.0.14 error-529"),
    sign("issue with the selected model", When::Failed, Verdict::Misconfigured, "2.1.197, 2.1.332 error-404"),
];

/// What the end of an attempt means.
pub(crate) fn of(evidence: &Evidence) -> Verdict {
    let observation = &evidence.observation;
    let end = observation.end.as_ref();
    // A valid success decides, whatever became of the process after it (R16). Its text alone proves nothing.
    if end.is_some_and(|end| end.kind == "success" && !end.is_error) {
        return if observation.session.is_some() { Verdict::Completed } else { Verdict::Unknown };
    }
    match evidence.ended_by {
        Some(EndedBy::Cancel) => return Verdict::Cancelled,
        Some(EndedBy::StartLimit | EndedBy::IdleLimit | EndedBy::TotalLimit) => return Verdict::TimedOut,
        Some(EndedBy::Linger) | None => {}
    }
    match end {
        Some(end) if matches!(end.kind.as_str(), "error_max_turns" | "error_max_budget_usd") => {
            return Verdict::LimitReached;
        }
        // 2.0.14 gives up on a stream that was dropped, and does not call it an error.
        Some(end) if end.kind == "error_during_execution" && !end.is_error => return Verdict::Transient,
        _ => {}
    }
    by_text(evidence)
        .or_else(|| by_code(evidence))
        .or_else(|| by_status(evidence))
        .unwrap_or_else(|| by_exit(evidence))
}

fn not_begun(evidence: &Evidence) -> bool {
    evidence.observation.session.is_none() && evidence.observation.activity() == Activity::None
}

fn by_text(evidence: &Evidence) -> Option<Verdict> {
    let not_begun = not_begun(evidence);
    let continues = !matches!(evidence.asked, Asked::Fresh(_));
    let resume_failed = not_begun && continues && failed(evidence.exit);
    let applies = |when| match when {
        When::ResumeFailed => resume_failed,
        When::NotBegun => not_begun,
        When::Failed | When::Reported => true,
    };
    let observation = &evidence.observation;
    let end = observation.end.iter().flat_map(|end| {
        end.errors.iter().chain(Some(&end.text).filter(|_| end.is_error)).map(String::as_str)
    });
    let trouble = observation.trouble.iter().map(|(_, text)| text.as_str());
    let reported: Vec<&str> = end.chain(trouble).collect();
    let written = [evidence.stderr_tail.as_str(), observation.noise_head.as_str()];
    let holds = |signature: &Signature| {
        reported.iter().any(|text| text.contains(signature.text))
            || (signature.when != When::Reported && written.iter().any(|text| text.contains(signature.text)))
    };
    SIGNATURES
        .iter()
        .find(|signature| applies(signature.when) && holds(signature))
        .map(|signature| signature.verdict)
}

/// The agent's own codes for a failed model call (2.1.197, 2.1.332).
fn by_code(evidence: &Evidence) -> Option<Verdict> {
    let (code, _) = evidence.observation.trouble.as_ref()?;
    Some(match code.as_str() {
        "authentication_failed" | "oauth_org_not_allowed" => Verdict::Unauthenticated,
        "rate_limit" | "billing_error" => Verdict::RateLimited,
        "server_error" | "overloaded" => Verdict::Transient,
        "model_not_found" => Verdict::Misconfigured,
        _ => return None,
    })
}

fn by_status(evidence: &Evidence) -> Option<Verdict> {
    let observation = &evidence.observation;
    // A status that the agent went on after is not what ended it.
    observation.end.as_ref().filter(|end| end.is_error)?;
    let text = observation.end.as_ref().map_or("", |end| end.text.as_str());
    Some(match observation.status.or_else(|| status_in(text))? {
        401 | 403 => Verdict::Unauthenticated,
        404 => Verdict::Misconfigured,
        413 => Verdict::ContextOverflow,
        429 => Verdict::RateLimited,
        408 | 500..=599 => Verdict::Transient,
        _ => return None,
    })
}

/// The status in `API Error: 529 {…}`: 2.0.14 has no field for it.
fn status_in(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("API Error: ")?.get(..3)?;
    digits.parse().ok()
}

const fn failed(exit: Exit) -> bool {
    !matches!(exit, Exit::Code(0))
}

fn by_exit(evidence: &Evidence) -> Verdict {
    let ended = evidence.observation.end.is_some();
    match evidence.exit {
        _ if ended => Verdict::Unknown,
        // 129 and above: the agent caught a signal and said so (143: TERM, 129: HUP; 2.0.14, 2.1.197, 2.1.332).
        Exit::Signal(_) | Exit::Code(129..=159) => Verdict::Crashed,
        // An interrupted run of all versions ends so.
        Exit::Code(0) => Verdict::NoResult,
        Exit::Code(_) if not_begun(evidence) => Verdict::Unknown,
        Exit::Code(_) => Verdict::Crashed,
        Exit::Unknown => Verdict::Unknown,
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
