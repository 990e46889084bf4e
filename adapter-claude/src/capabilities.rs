//! What each version can do: data, one row per change of behaviour.

use session_core::{
    AgentCapabilities, Claim, FigureScope, ForkSupport, IdOnResume, ReachCapability, Version,
};

/// The exact versions whose behaviour was verified on the real program.
pub const VERIFIED: &[&str] = &["2.0.14", "2.1.197", "2.1.332"];

/// Every change of behaviour, oldest first. A version has all claims up to its own number; an unknown or a
/// newer one has them all. Where the first version lies between two that were tried, the later one counts,
/// as the weaker claim does no harm.
pub const CLAIMS: &[Claim] = &[
    Claim {
        since: (0, 2, 93),
        what: "sessions are continued with --resume, under a new id and from their own folder",
        seen: "changelog of 0.2.93; each resume of 1.0.44 and 1.0.123 made a new id",
        raise: |c| {
            c.resumable_sessions = true;
            c.headless_resume = true;
            c.id_on_resume = IdOnResume::Replaced;
        },
    },
    Claim {
        since: (1, 0, 60),
        what: "--session-id",
        seen: "absent in 1.0.44, present in 1.0.60",
        raise: |c| c.caller_chosen_id = true,
    },
    Claim {
        since: (1, 0, 120),
        what: "--fork-session",
        seen: "absent in 1.0.116, present in 1.0.120",
        raise: |c| c.fork = ForkSupport::AgentChoosesId,
    },
    Claim {
        since: (1, 0, 124),
        what: "a resume keeps the id",
        seen: "1.0.123 changes it, 1.0.124 does not",
        raise: |c| c.id_on_resume = IdOnResume::Kept,
    },
    Claim {
        since: (2, 0, 14),
        what: "--append-system-prompt",
        seen: "what it says reaches the model in 2.0.14, 2.1.197 and 2.1.332; older ones were not tried",
        raise: |c| c.system_prompt = true,
    },
    Claim {
        since: (2, 0, 73),
        what: "--fork-session with --session-id",
        seen: "changelog of 2.0.73; refused by 2.0.14, done by 2.1.197",
        raise: |c| c.fork = ForkSupport::CallerChoosesId,
    },
    Claim {
        since: (2, 1, 50),
        what: "--rewind-files",
        seen: "unknown option in 2.0.14, done by 2.1.50",
        raise: |c| c.rewind = true,
    },
    Claim {
        since: (2, 1, 76),
        what: "--name",
        seen: "changelog of 2.1.76; done by 2.1.197",
        raise: |c| c.names = true,
    },
    Claim {
        since: (2, 1, 139),
        what: "sessions in the background",
        seen: "changelog of 2.1.139; done by 2.1.197",
        raise: |c| c.background = true,
    },
    Claim {
        since: (2, 1, 197),
        what: "a resume from every folder and work tree of the repository; stdin is limited to 10 MB",
        seen: "2.0.14 does neither, 2.1.197 does both; versions between were not tried",
        raise: |c| {
            c.resume_reach = ReachCapability::Repository;
            c.prompt_limit = Some(crate::command::STDIN_LIMIT);
        },
    },
    Claim {
        since: (2, 1, 197),
        what: "--tools",
        seen: "absent in 2.0.14; 2.1.197 offers the model these alone, 2.1.332 one of its own beside them, and none where none is named",
        raise: |c| c.tool_lists = true,
    },
    Claim {
        since: (2, 1, 238),
        what: "a resume from anywhere",
        seen: "absent in 2.1.220, present in 2.1.238",
        raise: |c| c.resume_reach = ReachCapability::Anywhere,
    },
    Claim {
        since: (2, 1, 282),
        what: "the cost goes on over the resumes of a session; tokens stay those of the run",
        seen: "2.1.276 starts at zero, 2.1.282 does not; fixtures 2.1.332/resume and 2.1.332/fork",
        raise: |c| c.cost_scope = FigureScope::Session,
    },
];

/// The version in what the probe printed: `2.1.332 (Claude Code)` in all versions tried, with or without a banner of a
/// launcher around it.
pub(crate) fn version(printed: &str) -> Option<Version> {
    let worded = printed.lines().find_map(|line| Version::parse(line.trim().strip_suffix("(Claude Code)")?));
    worded.or_else(|| Version::parse(printed))
}

/// What this version can do. Without a version, or for one that is newer than all verified ones, the newest
/// rules hold, as not verified.
pub(crate) fn of(version: Option<&Version>) -> AgentCapabilities {
    let mut capabilities = AgentCapabilities::NONE;
    capabilities.session_state_path = Some("projects");
    capabilities.with_claims(CLAIMS, VERIFIED, version)
}

#[cfg(test)]
#[path = "capabilities_tests.rs"]
mod tests;
