//! Ids as the agent makes them: the time, then random letters, so that later ones sort behind earlier ones.

use session_core::{NativeId, Seed};

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// So many fit into a millisecond.
const STEPS: u64 = 0x1000;

/// Of the time, so much is kept.
const MASK: u64 = (1 << 48) - 1;

#[derive(Debug)]
pub(super) struct Ids {
    next: u64,
    random: u64,
}

impl Ids {
    /// So many ids that all are older than what is made from now on.
    pub(super) fn before_now(seed: &Seed, count: u64) -> Self {
        let (high, low) = seed.random.as_u64_pair();
        Self { next: ticks(seed).saturating_sub(count), random: high ^ low.rotate_left(32) }
    }

    /// The next one: `msg_…`, `prt_…`.
    pub(super) fn next(&mut self, kind: &str) -> String {
        let id = format!("{kind}_{:012x}{}", self.next & MASK, self.letters());
        self.next += 1;
        id
    }

    fn letters(&mut self) -> String {
        let letter = |_| {
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.random;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let at = usize::try_from((mixed ^ (mixed >> 31)) % 62).unwrap_or_default();
            char::from(LETTERS[at])
        };
        (0..14).map(letter).collect()
    }
}

/// The id of a session: newer ones sort before older ones.
pub(in super::super) fn session(seed: &Seed) -> NativeId {
    let letters = Ids::before_now(seed, 0).letters();
    NativeId::new(format!("ses_{:012x}{letters}", !ticks(seed) & MASK))
}

fn ticks(seed: &Seed) -> u64 {
    u64::try_from(seed.now.as_millis()).unwrap_or_default().saturating_mul(STEPS)
}

#[cfg(test)]
mod tests {
    use session_core::Timestamp;

    use super::*;

    #[test]
    fn ids_have_the_agents_form_and_order() {
        // A message of 1.18.33 that was made then is `msg_227bb8709001…`, and a session `ses_dd8447967ffe…`.
        let at = |millis| Seed { random: uuid_of(7), now: Timestamp::from_millis(millis) };
        let mut ids = Ids::before_now(&at(1_795_962_930_953), 3);
        let made: Vec<_> = (0..3).map(|_| ids.next("msg")).collect();
        assert!(made.is_sorted() && made[2].starts_with("msg_227bb8708fff"), "{made:?}");
        assert!(made.iter().all(|id| id.len() == "msg_227bb8709001tgjfGRkMaTKq64".len()), "{made:?}");
        let (older, newer) = (session(&at(1_795_962_930_952)), session(&at(1_795_962_930_953)));
        assert!(newer.as_str() < older.as_str() && newer.as_str().starts_with("ses_dd84478f6fff"), "{newer}");
        assert!(crate::transcript::is_session_id(newer.as_str()));
        let other = Seed { random: uuid_of(8), ..at(1_795_962_930_953) };
        assert_ne!(session(&other), newer);
    }

    fn uuid_of(number: u128) -> uuid::Uuid {
        uuid::Uuid::from_u128(number)
    }
}
