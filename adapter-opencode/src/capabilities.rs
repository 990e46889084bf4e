//! What each version can do: data, one row per change of behaviour.

use session_core::{AgentCapabilities, Claim, ForkSupport, ReachCapability, Version};

use crate::state::Family;

/// The exact versions whose behaviour was verified on the real program.
pub const VERIFIED: &[&str] = &["1.1.65", "1.2.1", "1.15.13", "1.18.33"];

/// Every change of behaviour, oldest first. A version has all claims up to its own number; an unknown or a
/// newer one has them all. Where the first version lies between two that were tried, the weaker claim counts.
pub const CLAIMS: &[Claim] = &[
    Claim {
        since: (1, 0, 98),
        what: "sessions that another process continues, and --title",
        seen: "1.0.98; but an unknown id makes it wait for ever (1.0.98, 1.1.11), so nothing is resumed without a person",
        raise: |c| {
            c.resumable_sessions = true;
            c.names = true;
        },
    },
    Claim {
        since: (1, 1, 65),
        what: "an unknown session ends the process; --fork; a chosen id by `import`; from every folder of the repository",
        seen: "1.1.65 does all, 1.1.11 does not end and has no --fork; fixture 1.1.65/resume-unknown",
        raise: |c| {
            c.headless_resume = true;
            c.fork = ForkSupport::AgentChoosesId;
            c.caller_chosen_id = true;
            c.resume_reach = ReachCapability::Repository;
        },
    },
    Claim {
        since: (1, 1, 65),
        what: "a branch that was made of a session's rows or files in a state dir is continued",
        seen: "1.1.65, 1.2.1, 1.15.13 and 1.18.33 see the turns that were kept, and no other",
        raise: |c| c.rewind = true,
    },
    Claim {
        since: (1, 2, 0),
        what: "sessions in SQLite; `import` of a session without messages fails",
        seen: "1.2.1: FOREIGN KEY constraint failed; versions up to 1.15.13 were not tried",
        raise: |c| c.caller_chosen_id = false,
    },
    Claim {
        since: (1, 2, 1),
        what: "a resume from anywhere",
        seen: "1.2.1, 1.14.34: another repository, a folder without one",
        raise: |c| c.resume_reach = ReachCapability::Anywhere,
    },
    Claim {
        since: (1, 14, 35),
        what: "a resume from elsewhere works in the session's own folder, and prints nothing or never ends",
        seen: "1.15.13, 1.17.0 to 1.18.33 do so, 1.14.34 does not; versions between were not tried",
        raise: |c| c.resume_reach = ReachCapability::SameFolder,
    },
    Claim {
        since: (1, 15, 13),
        what: "a chosen id by `import`, and a database of the caller's choice",
        seen: "1.15.13, 1.18.33",
        raise: |c| c.caller_chosen_id = true,
    },
];

/// The major version that is another program of the same name: a server of the user's in the background, another
/// storage. It was not tried, so it is not run.
const ANOTHER_PROGRAM: u64 = 2;

/// Whether the version is not to be run at all.
pub(crate) fn is_refused(version: Option<&Version>) -> bool {
    version.is_some_and(|version| version.numbers[0] == ANOTHER_PROGRAM)
}

/// The version in what the probe printed: a line of its own, `1.18.33`, in all versions tried, with or without a banner of
/// a launcher around it. The program prints nothing after it.
pub(crate) fn version(printed: &str) -> Option<Version> {
    let alone = |line: &&str| {
        let line = line.trim();
        line.starts_with(|c: char| c.is_ascii_digit()) && !line.contains(char::is_whitespace)
    };
    let worded = printed.lines().rev().filter(alone).find_map(Version::parse);
    worded.or_else(|| Version::parse(printed))
}

/// What this version can do. Without a version, or for one that is newer than all verified ones, the newest
/// rules hold, as not verified.
pub(crate) fn of(version: Option<&Version>) -> AgentCapabilities {
    // Its `retention` stays as it is: no session is ever deleted by age (up to 1.15.13).
    let mut capabilities = AgentCapabilities::NONE;
    if is_refused(version) {
        return capabilities;
    }
    capabilities = capabilities.with_claims(CLAIMS, VERIFIED, version);
    // The id is brought in through `/dev/stdin`.
    capabilities.caller_chosen_id &= !cfg!(windows);
    capabilities.session_state_path = match Family::of(version) {
        Family::PerSession => Some("."),
        Family::Shared | Family::Files => Some("opencode"),
    };
    capabilities
}

#[cfg(test)]
#[path = "capabilities_tests.rs"]
mod tests;
