//! Evidence as a verdict.
//!
//! The structure of an attempt decides first: whether the turn came to its end, whether anything began, how the
//! process ended. Texts come second, from one table, and only from fields and streams where the agent speaks of itself:
//! never from the model's prose.

use session_core::decide::{Activity, Verdict};
use session_core::{Asked, EndedBy, Evidence, Exit};

use crate::decode::status_in;

/// Where in an attempt a text can be told from others that look like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// A resume or fork that ended with an error before anything began, in the agent's own error line (`Error: …`).
    ResumeFailed,
    /// Nothing began.
    NotBegun,
    /// Any failure.
    Failed,
    /// Any failure that the agent reports in its stream.
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
    // The session. 0.63 and 0.98 say none of these of one that they do not have: they begin another.
    sign("no rollout found for thread id", When::ResumeFailed, Verdict::Missing, "0.130, 0.171 resume-unknown"),
    sign("already has an active writer", When::ResumeFailed, Verdict::Busy, "0.171 resume-busy"),
    sign("is archived. Run", When::ResumeFailed, Verdict::Archived, "0.171 resume-archived"),
    sign("Cannot change this thread's model provider", When::ResumeFailed, Verdict::ProviderChanged, "0.171 resume-other-provider"),
    sign("modelProviderNotConfigured", When::ResumeFailed, Verdict::ProviderChanged, "0.171 resume-provider-gone"),
    sign("Error: empty session file", When::ResumeFailed, Verdict::Incompatible, "0.63, 0.98 resume-emptied"),
    sign(" is empty (code", When::ResumeFailed, Verdict::Incompatible, "0.130, 0.171 resume-emptied"),
    sign("does not start with session metadata", When::ResumeFailed, Verdict::Incompatible, "0.130, 0.171 resume-first-line-garbage"),
    sign("failed to parse conversation ID from rollout file", When::ResumeFailed, Verdict::Incompatible, "0.63 resume-first-line-garbage"),
    sign("failed to parse thread ID from rollout file", When::ResumeFailed, Verdict::Incompatible, "0.98 resume-first-line-garbage"),
    sign("did not contain valid UTF-8", When::ResumeFailed, Verdict::Incompatible, "0.63, 0.98, 0.130 resume-no-utf-8-in-the-middle"),
    sign("invalid paginated history lineage", When::ResumeFailed, Verdict::Incompatible, "0.171 resume-base-gone"),
    sign("thread source changed during resume", When::ResumeFailed, Verdict::Incompatible, "0.171 resume-renamed-file"),
    // An older version went on with it. That one still can, and so can this one once the records are numbered.
    sign("is missing an ordinal", When::ResumeFailed, Verdict::Unindexed, "0.171 resume-after-older-version"),
    // The index.
    sign("list_turns is not supported yet", When::ResumeFailed, Verdict::Unindexed, "0.171 resume-index-damaged"),
    sign("database is locked", When::ResumeFailed, Verdict::Busy, "0.171, after 47 s"),
    sign("failed to open thread history", When::ResumeFailed, Verdict::Unindexed, "0.171 resume-history-index-damaged"),
    // The surroundings.
    sign("Permission denied (os error 13)", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98, 0.130, 0.171 resume-read-only-file"),
    sign("cannot access session files", When::NotBegun, Verdict::Misconfigured, "0.98 resume-read-only-file"),
    sign("Not a directory (os error 20)", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98: a file in the place of a folder"),
    sign("Read-only file system", When::NotBegun, Verdict::Misconfigured, "the system's text; not seen here"),
    sign("No space left on device", When::NotBegun, Verdict::Misconfigured, "the system's text; not seen here"),
    sign("Error finding codex home", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98, 0.130, 0.171 no-home"),
    sign("Error loading config", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98, 0.130, 0.171 broken-configuration"),
    sign("config profile `", When::NotBegun, Verdict::Misconfigured, "0.130: a profile that is not there"),
    sign("Error: Model provider `", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98, 0.130, 0.171 no-such-provider"),
    sign("Not inside a trusted directory", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98, 0.130, 0.171 no-repository"),
    sign("failed to initialize in-process app-server client", When::NotBegun, Verdict::Misconfigured, "0.130, 0.171: home not writable"),
    sign("Error: No such file or directory", When::NotBegun, Verdict::Misconfigured, "0.171: a folder that is not there"),
    sign("No prompt provided via stdin", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98, 0.130, 0.171 no-prompt"),
    sign("Failed to read prompt from stdin", When::NotBegun, Verdict::Misconfigured, "0.171: no UTF-8"),
    sign("error: unexpected argument", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98, 0.130, 0.171 unknown-argument"),
    sign("error: invalid value", When::NotBegun, Verdict::Misconfigured, "0.63, 0.98, 0.130, 0.171"),
    sign("Input exceeds the maximum length", When::Failed, Verdict::Misconfigured, "0.130, 0.171 prompt-too-long"),
    // What a session holds.
    sign("ran out of room in the model's context window", When::Reported, Verdict::ContextOverflow, "in the programs of 0.63, 0.98, 0.130 and 0.171"),
    sign("context_length_exceeded", When::Reported, Verdict::ContextOverflow, "the API's code; not seen here"),
    sign("invalid_encrypted_content", When::Reported, Verdict::Incompatible, "the API's code; not seen here"),
    sign(".encrypted_content'", When::Reported, Verdict::Incompatible, "users' reports (openai/codex#20165); not seen here"),
    sign("No tool output found for function call", When::Reported, Verdict::Incompatible, "the API's text; not seen here"),
    sign("was provided without its required", When::Reported, Verdict::Incompatible, "the API's text; not seen here"),
    // Limits of the account.
    sign("hit your usage limit", When::Reported, Verdict::RateLimited, "in the programs of 0.63, 0.98, 0.130 and 0.171"),
    sign("Quota exceeded", When::Reported, Verdict::RateLimited, "in the programs of 0.63, 0.98, 0.130 and 0.171"),
    sign("out of credits", When::Reported, Verdict::RateLimited, "in the programs of 0.130 and 0.171"),
    sign("hit your spend cap", When::Reported, Verdict::RateLimited, "in the program of 0.171"),
    sign("To use Codex with your ChatGPT plan, upgrade", When::Reported, Verdict::RateLimited, "in the programs of 0.63, 0.98, 0.130 and 0.171"),
    // The login.
    sign("Missing environment variable: `", When::Reported, Verdict::Unauthenticated, "0.63, 0.98, 0.130, 0.171 no-login"),
    sign("Please log out and sign in again", When::Reported, Verdict::Unauthenticated, "in the programs of 0.63, 0.98, 0.130 and 0.171"),
    sign("since logged out or signed in to another account", When::Reported, Verdict::Unauthenticated, "in the programs of 0.130 and 0.171"),
    sign("model is not supported when using Codex", When::Reported, Verdict::Misconfigured, "users' reports; not seen here"),
    // A model that is not there: 0.171 passes the API's words on, without the status (error-404).
    sign("does not exist or you do not have access to it", When::Reported, Verdict::Misconfigured, "the API's text; not seen here"),
    // The network and the server.
    sign("experiencing high demand", When::Reported, Verdict::Transient, "0.63, 0.98, 0.130, 0.171 error-500"),
    sign("is at capacity", When::Reported, Verdict::Transient, "in the programs of 0.98, 0.130 and 0.171"),
    sign("Connection failed", When::Reported, Verdict::Transient, "0.63, 0.171 connection-refused"),
    sign("error sending request", When::Reported, Verdict::Transient, "0.98, 0.130 connection-refused"),
    sign("stream disconnected before completion", When::Reported, Verdict::Transient, "0.63, 0.98, 0.130, 0.171 stream-dropped"),
];

/// What the end of an attempt means.
pub(crate) fn of(evidence: &Evidence) -> Verdict {
    let observation = &evidence.observation;
    let end = observation.end.as_ref();
    if end.is_some_and(|end| end.kind == "turn.completed" && !end.is_error) {
        return completed(evidence);
    }
    match evidence.ended_by {
        Some(EndedBy::Cancel) => return Verdict::Cancelled,
        Some(EndedBy::StartLimit | EndedBy::IdleLimit | EndedBy::TotalLimit) => return Verdict::TimedOut,
        Some(EndedBy::Linger) | None => {}
    }
    by_text(evidence).or_else(|| by_status(evidence)).unwrap_or_else(|| by_exit(evidence))
}

/// The end of the turn, the end of the process and the id say it together (R16): launchers of 0.63 and 0.130 end with 0
/// when they are killed. A process that we ended after its end has no say.
fn completed(evidence: &Evidence) -> Verdict {
    match evidence.exit {
        _ if evidence.observation.session.is_none() => Verdict::Unknown,
        Exit::Code(0) => Verdict::Completed,
        _ if evidence.ended_by.is_some() => Verdict::Completed,
        Exit::Signal(_) | Exit::Code(101 | 129..=159) => Verdict::Crashed,
        Exit::Code(_) | Exit::Unknown => Verdict::Unknown,
    }
}

fn not_begun(evidence: &Evidence) -> bool {
    evidence.observation.session.is_none() && evidence.observation.activity() == Activity::None
}

fn by_text(evidence: &Evidence) -> Option<Verdict> {
    let not_begun = not_begun(evidence);
    let continues = !matches!(evidence.asked, Asked::Fresh(_));
    let resume_failed = not_begun && continues && !matches!(evidence.exit, Exit::Code(0));
    let observation = &evidence.observation;
    let end = observation.end.iter().flat_map(|end| end.errors.iter().map(String::as_str));
    let trouble = observation.trouble.iter().map(|(_, text)| text.as_str());
    let reported: Vec<&str> = end.chain(trouble).collect();
    let (traced, said): (Vec<&str>, Vec<&str>) =
        evidence.stderr_tail.lines().partition(|line| is_trace(line));
    let said: Vec<&str> = said.into_iter().chain(observation.noise_head.lines()).collect();
    let find = |written: &[&str]| {
        SIGNATURES.iter().find(|signature| match signature.when {
            When::ResumeFailed => {
                resume_failed
                    && written.iter().any(|line| line.starts_with("Error: ") && line.contains(signature.text))
            }
            When::NotBegun => not_begun && written.iter().any(|line| line.contains(signature.text)),
            When::Failed => written.iter().chain(&reported).any(|line| line.contains(signature.text)),
            When::Reported => reported.iter().any(|line| line.contains(signature.text)),
        })
    };
    // What is logged beside has a say only where nothing else has: 0.63 names the cause of a failed start there alone.
    find(&said).or_else(|| find(&traced)).map(|signature| signature.verdict)
}

/// Whether this is a line of the agent's log, as in `2026-11-29T14:45:51.635505Z ERROR codex_core::codex: …`. They are
/// written in good runs, too.
fn is_trace(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let time = words.next().is_some_and(|word| word.ends_with('Z') && word.as_bytes().get(10) == Some(&b'T'));
    time && words.next().is_some_and(|word| matches!(word, "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE"))
}

fn by_status(evidence: &Evidence) -> Option<Verdict> {
    // A status that the agent went on after is not what ended it.
    let end = evidence.observation.end.as_ref().filter(|end| end.is_error)?;
    let status = end.api_status.or_else(|| end.errors.iter().find_map(|text| status_in(text)));
    Some(match status? {
        401 | 403 => Verdict::Unauthenticated,
        404 => Verdict::Misconfigured,
        413 => Verdict::ContextOverflow,
        429 => Verdict::RateLimited,
        408 | 500..=599 => Verdict::Transient,
        _ => return None,
    })
}

fn by_exit(evidence: &Evidence) -> Verdict {
    let ended = evidence.observation.end.is_some();
    match evidence.exit {
        _ if ended => Verdict::Unknown,
        // 101: a panic. 129 and above: a signal, told by the launcher (0.171).
        Exit::Signal(_) | Exit::Code(101 | 129..=159) => Verdict::Crashed,
        // An interrupted 0.63, and the launchers of 0.63 and 0.130 when they are told to end.
        Exit::Code(0) => Verdict::NoResult,
        // Arguments.
        Exit::Code(2) if not_begun(evidence) => Verdict::Misconfigured,
        Exit::Code(_) if not_begun(evidence) => Verdict::Unknown,
        // An interrupted run (0.98 and later).
        Exit::Code(_) => Verdict::Crashed,
        Exit::Unknown => Verdict::Unknown,
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
