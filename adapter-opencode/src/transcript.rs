//! The stored sessions: ids, where sessions lie, and what a record of them is. The records are rows of a database from
//! 1.2 on, and files before; their JSON is the same.

#[cfg(feature = "catalog")]
mod stored;

use session_core::NativeId;

#[cfg(feature = "catalog")]
pub(crate) use stored::{Message, Part, Places, Store, Summary, places};

/// The longest id that is taken. The agent's own have 30 bytes.
const LONGEST: usize = 128;

/// Whether the text is an id of a session. All that the agent asks of one is that it begins with `ses`.
pub(crate) fn is_session_id(text: &str) -> bool {
    let rest = text.strip_prefix("ses");
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && text.len() <= LONGEST
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    })
}

/// An id for a new session.
pub(crate) fn new_id(random: &str) -> NativeId {
    NativeId::new(format!("ses_{}", random.replace('-', "")))
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
