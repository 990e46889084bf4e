//! The text that waits to go before the next prompt, where the conversation goes back: what waited at the target waits again.

use crate::{Checkpoint, Preamble, Warning};

use super::super::ledger::COMPACTED;
use super::{Course, Kept};

/// What waits after a rewind, and what waited at its target and finds the place taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    text: Option<Preamble>,
    lost: Option<Preamble>,
}

/// By what waits now, what waited at the target, and the checkpoints before that. What was handed over since still waits. What had
/// waited before the target and did not any more there does not, nor a summary that was made since: it tells of what is taken back.
fn waits_after(now: Option<&Preamble>, then: Option<&Preamble>, before: &[Checkpoint]) -> Waits {
    let is_then = |text: &Preamble| then.is_some_and(|then| then.is_same(text));
    let was_passed_on = |text: &Preamble| {
        let mut waited = before.iter().filter_map(|earlier| earlier.label.waits.as_ref());
        waited.any(|waited| waited.is_same(text))
    };
    let still = now.filter(|now| is_then(now) || (now.why != COMPACTED && !was_passed_on(now)));
    Waits {
        text: still.or(then).cloned(),
        lost: then.filter(|_| still.is_some_and(|still| !is_then(still))).cloned(),
    }
}

impl Course<'_> {
    /// What waits afterwards; `None`: the conversation was not asked to go back.
    pub(super) fn waits(&self) -> Option<Waits> {
        let (now, then) = (self.kept.record.preamble.as_ref(), self.target.label.waits.as_ref());
        let before = self.trail.before(self.target.id);
        self.wish.mode.takes_conversation().then(|| waits_after(now, then, before))
    }
}

/// Has it wait, and says what cannot.
pub(super) fn put_to_wait(kept: &mut Kept, waits: Option<Waits>) -> Option<Warning> {
    let Waits { text, lost } = waits?;
    if kept.record.preamble != text {
        kept.record.preamble = text;
        kept.changed = true;
    }
    lost.map(|lost| Warning::PreambleLost(lost.why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckpointId, Label, Moment, NativeId, PathText, RunId, SessionKey, Timestamp};

    fn text(why: &str, at: i64) -> Preamble {
        let key = SessionKey::new("issue-42", "claude").expect("it is a key");
        Preamble {
            text: "what was said".to_owned(),
            why: why.to_owned(),
            from: key,
            session: NativeId::new("s"),
            at: Timestamp::from_millis(at),
            given: Vec::new(),
            extra: serde_json::Map::new(),
        }
    }

    fn prompt(waits: Option<Preamble>) -> Checkpoint {
        let key = SessionKey::new("issue-42", "claude").expect("it is a key");
        let step = RunId::new(uuid::Uuid::nil());
        let label = Label { waits, ..Label::new(key, step, Moment::BeforeRun) };
        let root = PathText::new(std::path::Path::new("/w"));
        Checkpoint::new(CheckpointId::new(uuid::Uuid::nil()), label, Timestamp::EPOCH, root)
    }

    #[test]
    fn it_is_as_at_the_target_but_for_what_others_handed_over_since() {
        let (summary, earlier, later) = (text(COMPACTED, 1), text("handed_over", 2), text("handed_over", 3));
        let (told, plain) = ([prompt(None), prompt(Some(earlier.clone()))], [prompt(None)]);
        let after = |now: Option<&Preamble>, then: Option<&Preamble>, before: &[Checkpoint]| {
            let Waits { text, lost } = waits_after(now, then, before);
            (text.map(|text| text.at), lost.map(|lost| lost.at))
        };
        let (one, two, three) = (Some(summary.at), Some(earlier.at), Some(later.at));
        // What was passed on in what is taken back waits again; also where it waits still.
        assert_eq!(after(None, Some(&earlier), &plain), (two, None));
        assert_eq!(after(Some(&earlier), Some(&earlier), &plain), (two, None));
        assert_eq!(after(Some(&summary), Some(&summary), &[]), (one, None));
        // What had been passed on by then does not.
        assert_eq!(after(Some(&earlier), None, &told), (None, None));
        assert_eq!(after(Some(&earlier), Some(&summary), &told), (one, None));
        // What came since stays, unless it tells of what is taken back.
        assert_eq!(after(Some(&later), None, &told), (three, None));
        assert_eq!(after(Some(&summary), None, &told), (None, None));
        assert_eq!(after(Some(&summary), Some(&earlier), &[]), (two, None));
        // There is one place: who came last has it.
        assert_eq!(after(Some(&later), Some(&earlier), &[]), (three, two));
    }
}
