//! What versions can do, as data: a base, and rows that each add a change of behaviour.

use crate::{AgentCapabilities, Version};

/// A change of behaviour, and where it was seen.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// The first version that has it, as far as is known.
    pub since: (u64, u64, u64),
    /// What it is.
    pub what: &'static str,
    /// Where that is known from.
    pub seen: &'static str,
    /// Makes the change.
    pub raise: fn(&mut AgentCapabilities),
}

impl AgentCapabilities {
    /// What a version can do: what is here, and all claims up to its own number. An unknown version, and one that is newer
    /// than all verified ones, has them all, and is not verified.
    #[must_use]
    pub fn with_claims(mut self, claims: &[Claim], verified: &[&str], version: Option<&Version>) -> Self {
        for Claim { since: (major, minor, patch), raise, .. } in claims {
            if version.is_none_or(|version| version.at_least(*major, *minor, *patch)) {
                raise(&mut self);
            }
        }
        self.verified = version.is_some_and(|version| verified.contains(&version.text.as_str()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_the_claims_up_to_its_own_number() {
        const CLAIMS: &[Claim] = &[
            Claim { since: (1, 0, 0), what: "resume", seen: "1.0.0", raise: |c| c.resumable_sessions = true },
            Claim { since: (1, 2, 0), what: "a name", seen: "1.2.0", raise: |c| c.names = true },
        ];
        let of = |version: &str| {
            let version = Version::parse(version);
            let found = AgentCapabilities::NONE.with_claims(CLAIMS, &["1.2.0"], version.as_ref());
            (found.resumable_sessions, found.names, found.verified)
        };
        assert_eq!(of("0.9.0"), (false, false, false));
        assert_eq!(of("1.1.9"), (true, false, false));
        assert_eq!(of("1.2.0"), (true, true, true));
        assert_eq!(of("1.2.1"), (true, true, false));
        assert_eq!(of("no version"), (true, true, false));
    }
}
