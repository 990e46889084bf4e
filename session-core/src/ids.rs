//! Words that name things: mailbox, agent, native id, session name, key, run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name that does not satisfy the rules of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// The name is empty, or holds only white space.
    #[error("{kind} is empty")]
    Empty {
        /// Which name.
        kind: &'static str,
    },
    /// The name is longer than the kind allows.
    #[error("{kind} has {length} bytes, {limit} are allowed; use a shorter, stable id")]
    TooLong {
        /// Which name.
        kind: &'static str,
        /// Length found, in bytes.
        length: usize,
        /// Longest allowed length, in bytes.
        limit: usize,
    },
    /// A character that the kind does not allow.
    #[error("{kind} holds {character:?} at byte {at}, which is not allowed there")]
    Character {
        /// Which name.
        kind: &'static str,
        /// The offending character.
        character: char,
        /// Its byte position.
        at: usize,
    },
}

fn check(kind: &'static str, text: &str, limit: usize, ok: fn(char) -> bool) -> Result<(), InvalidName> {
    if text.trim().is_empty() {
        return Err(InvalidName::Empty { kind });
    }
    if text.len() > limit {
        return Err(InvalidName::TooLong { kind, length: text.len(), limit });
    }
    match text.char_indices().find(|(_, c)| !ok(*c)) {
        Some((at, character)) => Err(InvalidName::Character { kind, character, at }),
        None => Ok(()),
    }
}

fn printable(c: char) -> bool {
    !c.is_control()
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $limit:expr, $ok:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// Longest allowed length, in bytes.
            pub const MAX_BYTES: usize = $limit;

            /// Checks and wraps the text.
            ///
            /// # Errors
            /// [`InvalidName`] says which rule the text breaks.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
                let text = text.into();
                check($kind, &text, Self::MAX_BYTES, $ok)?;
                Ok(Self(text.into()))
            }

            /// The text as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }
    };
}

name_type! {
    /// The unit of work that owns a conversation: an issue, a card, a thread.
    ///
    /// Any printable text up to 1,024 bytes; compared byte for byte, so letter case and Unicode form count.
    MailboxId, "mailbox", 1024, printable
}

name_type! {
    /// A coding-agent CLI by its stable id: `claude`, `codex`, `opencode`.
    ///
    /// ASCII lower-case letters, digits, `-`, `_` and `.`, up to 64 bytes.
    AgentId, "agent id", 64, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.')
}

name_type! {
    /// A label for people, by default the branch. An alias, never an identity.
    ///
    /// Any printable text up to 1,024 bytes. It is fixed at the first run of a key.
    SessionName, "session name", 1024, printable
}

/// The agent's own id for a conversation.
///
/// Opaque to the core. It is deserialised as it stands, because a malformed id in a record has a reason of
/// its own (`id_malformed`) and does not make the record unreadable; what a well-formed id looks like, the
/// adapter says ([`AgentAdapter::accepts_id`](crate::AgentAdapter::accepts_id)).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NativeId(Box<str>);

impl NativeId {
    /// Wraps an id without a check.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// The id as the agent wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the id can be one argument of a command line at all: not empty, at most 256 bytes, no control
    /// character or white space, no leading `-`.
    #[must_use]
    pub fn is_argument_safe(&self) -> bool {
        let text = self.as_str();
        !text.is_empty()
            && text.len() <= 256
            && !text.starts_with('-')
            && text.chars().all(|c| !c.is_control() && !c.is_whitespace())
    }
}

impl fmt::Display for NativeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NativeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

/// Mailbox × agent: the identity of a conversation slot. Never a title, never a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SessionKey {
    /// The unit of work.
    pub mailbox: MailboxId,
    /// The agent that works on it.
    pub agent: AgentId,
}

impl SessionKey {
    /// Checks both halves and joins them.
    ///
    /// # Errors
    /// [`InvalidName`] of the half that is not valid.
    pub fn new(mailbox: impl Into<String>, agent: impl Into<String>) -> Result<Self, InvalidName> {
        Ok(Self { mailbox: MailboxId::new(mailbox)?, agent: AgentId::new(agent)? })
    }
}

impl SessionKey {
    /// What the mailboxes of copies begin with, which are made for a moment and shown by no list.
    const RESERVED: &str = "rejoin:copy-of:";

    /// The key of the copy that is made of this key's conversation for a moment. One for each, so that what a crash left is
    /// found again.
    pub(crate) fn for_a_copy(&self) -> Self {
        let text = format!("{}{}", Self::RESERVED, self.mailbox);
        let text = crate::evidence::head(&text, MailboxId::MAX_BYTES);
        Self { mailbox: MailboxId(text.into()), agent: self.agent.clone() }
    }

    /// Whether it is the key of such a copy.
    pub(crate) fn is_reserved(&self) -> bool {
        self.mailbox.as_str().starts_with(Self::RESERVED)
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.mailbox, self.agent)
    }
}

/// One call of `run`, by an id that also marks every process which the run starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(uuid::Uuid);

impl RunId {
    /// Wraps a random id.
    #[must_use]
    pub const fn new(id: uuid::Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_every_byte_and_refuse_what_cannot_be_shown() {
        for text in ["feature/foo", "..", "über/1", "e\u{301}", "😀", "A", "a", " a ", "a.lock"] {
            assert_eq!(MailboxId::new(text).unwrap().as_str(), text);
        }
        assert_eq!(MailboxId::new(""), Err(InvalidName::Empty { kind: "mailbox" }));
        assert_eq!(MailboxId::new(" \u{2003}"), Err(InvalidName::Empty { kind: "mailbox" }));
        assert!(matches!(MailboxId::new("a\nb"), Err(InvalidName::Character { character: '\n', at: 1, .. })));
        assert!(matches!(MailboxId::new("a\0"), Err(InvalidName::Character { character: '\0', .. })));
        assert!(matches!(
            MailboxId::new("x".repeat(10_000)),
            Err(InvalidName::TooLong { length: 10_000, .. })
        ));
        assert!(matches!(AgentId::new("Claude"), Err(InvalidName::Character { character: 'C', .. })));
    }

    #[test]
    fn an_id_that_could_be_read_as_a_flag_is_not_argument_safe() {
        for bad in ["", "-x", "a b", "a\nb", "--resume"] {
            assert!(!NativeId::new(bad).is_argument_safe(), "{bad:?}");
        }
        assert!(NativeId::new("ses_1").is_argument_safe());
    }
}
