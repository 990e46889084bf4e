//! What each version can do: data, one row per change of behaviour.

use session_core::{AgentCapabilities, Claim, FigureScope, ForkSupport, ReachCapability, Version};

/// The exact versions whose behaviour was verified on the real program.
pub const VERIFIED: &[&str] = &["0.63.0", "0.98.0", "0.130.0", "0.171.0"];

/// Every change of behaviour, oldest first. A version has all claims up to its own number; an unknown or a
/// newer one has them all. Where the first version lies between two that were tried, the later one counts,
/// as the weaker claim does no harm.
pub const CLAIMS: &[Claim] = &[
    Claim {
        since: (0, 45, 0),
        what: "a stream that names the session; `exec resume` from any folder",
        seen: "0.39 prints another stream, without an id; 0.45 and all later ones tried do it",
        raise: |c| {
            c.resumable_sessions = true;
            c.headless_resume = true;
            c.resume_reach = ReachCapability::Anywhere;
        },
    },
    Claim {
        since: (0, 63, 0),
        what: "a branch that was made of a session's file is continued",
        seen: "0.63, 0.98, 0.130 and 0.171 see the turns that were kept, and no other",
        raise: |c| c.rewind = true,
    },
    Claim {
        since: (0, 80, 0),
        what: "the tokens go on over the resumes of a session, and into its forks",
        seen: "0.63 starts at zero, 0.80 does not; fixtures 0.98.0/resume and 0.171.0/fork",
        raise: |c| c.usage_scope = FigureScope::Session,
    },
    Claim {
        since: (0, 130, 0),
        what: "a prompt has at most 1,048,576 characters",
        seen: "0.98 takes one more, 0.130 and 0.171 do not",
        raise: |c| c.prompt_limit = Some(crate::command::PROMPT_LIMIT),
    },
    Claim {
        since: (0, 148, 0),
        what: "`exec fork`, which chooses the id",
        seen: "absent in 0.146, present in 0.148; fixture 0.171.0/fork",
        raise: |c| c.fork = ForkSupport::AgentChoosesId,
    },
];

/// The version in what the probe printed: `codex-cli 0.171.0` in all versions tried, with or without a banner of a
/// launcher around it.
pub(crate) fn version(printed: &str) -> Option<Version> {
    let worded = printed.lines().find_map(|line| Version::parse(line.trim().strip_prefix("codex-cli ")?));
    worded.or_else(|| Version::parse(printed))
}

/// What this version can do. Without a version, or for one that is newer than all verified ones, the newest
/// rules hold, as not verified.
pub(crate) fn of(version: Option<&Version>) -> AgentCapabilities {
    // Its `retention` stays as it is: nothing is ever deleted by age, as far as was seen (0.98 to 0.171).
    let mut capabilities = AgentCapabilities::NONE;
    capabilities.session_state_path = Some("sessions");
    capabilities.with_claims(CLAIMS, VERIFIED, version)
}

#[cfg(test)]
#[path = "capabilities_tests.rs"]
mod tests;
