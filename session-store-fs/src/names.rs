//! Knowing a name of our making again: the other way of [`layout`](crate::layout). No I/O.

use crate::layout::{AGENT_SHOWN, HASH_DIGITS, MAILBOX_SHOWN, stands_for_itself};

/// Whether a name is one that a mailbox can have.
pub(crate) fn is_mailbox(name: &str) -> bool {
    is_segment(name, MAILBOX_SHOWN)
}

/// Whether a name is one that an agent can have.
pub(crate) fn is_agent(name: &str) -> bool {
    is_segment(name, AGENT_SHOWN)
}

/// The halves of a name that a key can have.
pub(crate) fn halves(name: &str) -> Option<(&str, &str)> {
    name.split_once('@').filter(|(mailbox, agent)| is_mailbox(mailbox) && is_agent(agent))
}

fn is_segment(name: &str, shown: usize) -> bool {
    let Some((part, hash)) = name.split_once('+') else {
        return name.len() <= shown + 1 + HASH_DIGITS && stands_for_itself(name);
    };
    let plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_');
    let whole = !part.is_empty() && !part.starts_with('-') && !part.ends_with('-') && !part.contains("--");
    whole && part.len() <= shown && part.chars().all(plain) && is_hash(hash)
}

/// Whether a text is what a hash, or a name that nobody can foresee, is written as.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_key_is_named_like_is_not_taken_for_one() {
        let hash = "436797b9622812c76d2aee1edf2a0697";
        for name in ["", ".", "..", ".gone-x", "A", "a b", "a@b", "aux", "-a", "a.", "ä", &"x".repeat(54)] {
            assert!(!is_mailbox(name), "{name:?}");
        }
        for part in ["", "-a", "a-", "a--b", "A", "a.b", &"x".repeat(21)] {
            assert!(!is_mailbox(&format!("{part}+{hash}")), "{part:?}");
        }
        for hash in ["", &hash[1..], &hash.to_uppercase(), &format!("{hash}0"), "+"] {
            assert!(!is_mailbox(&format!("a+{hash}")), "{hash:?}");
        }
        assert!(
            is_mailbox(&format!("_+{hash}"))
                && is_mailbox("issue-42")
                && is_agent(&format!("opencod+{hash}")[1..])
        );
        assert_eq!((halves("a"), halves("a@b@c"), halves("a@.b")), (None, None, None));
    }
}
