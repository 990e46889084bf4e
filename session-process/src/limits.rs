//! How long a run may go on, from what was heard of it.

use std::time::{Duration, Instant};

use session_core::{EndedBy, Limits};

/// What counts as never.
const NEVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// A time after another one, also where the limit is "as long as it takes".
pub(crate) fn after(base: Instant, duration: Duration) -> Instant {
    base + duration.min(NEVER)
}

/// The clock of one run.
#[derive(Debug)]
pub(crate) struct Clock<'a> {
    limits: &'a Limits,
    began: Instant,
    heard: Option<Instant>,
    finished: Option<Instant>,
}

impl<'a> Clock<'a> {
    pub(crate) const fn new(limits: &'a Limits, began: Instant) -> Self {
        Self { limits, began, heard: None, finished: None }
    }

    /// Some output came.
    pub(crate) const fn heard(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// The agent said that it is done.
    pub(crate) const fn finished(&mut self, now: Instant) {
        self.finished = Some(now);
    }

    /// The next limit, and when it is reached if nothing is heard until then.
    pub(crate) fn next(&self) -> (Instant, EndedBy) {
        let silence = match (self.finished, self.heard) {
            (Some(finished), _) => (after(finished, self.limits.linger), EndedBy::Linger),
            (None, Some(heard)) => (after(heard, self.limits.idle), EndedBy::IdleLimit),
            (None, None) => (after(self.began, self.limits.start), EndedBy::StartLimit),
        };
        let total = after(self.began, self.limits.total);
        if total < silence.0 { (total, EndedBy::TotalLimit) } else { silence }
    }

    /// The limit that is reached.
    pub(crate) fn due(&self, now: Instant) -> Option<EndedBy> {
        let (at, by) = self.next();
        (now >= at).then_some(by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_its_time() {
        let second = Duration::from_secs(1);
        let mut limits = Limits::default();
        (limits.start, limits.idle, limits.total, limits.linger) =
            (2 * second, 5 * second, 12 * second, second);
        let began = Instant::now();
        let mut clock = Clock::new(&limits, began);
        assert_eq!(clock.next(), (began + 2 * second, EndedBy::StartLimit));
        assert_eq!(clock.due(began + second), None);
        clock.heard(began + second);
        assert_eq!(clock.next(), (began + 6 * second, EndedBy::IdleLimit));
        assert_eq!(clock.due(began + 6 * second), Some(EndedBy::IdleLimit));
        clock.heard(began + 9 * second);
        assert_eq!(clock.next(), (began + 12 * second, EndedBy::TotalLimit));
        clock.finished(began + 10 * second);
        clock.heard(began + 10 * second);
        assert_eq!(clock.next(), (began + 11 * second, EndedBy::Linger));
        limits.total = Duration::MAX;
        limits.idle = Duration::MAX;
        let mut clock = Clock::new(&limits, began);
        clock.heard(began);
        assert!(clock.next().0 > began + 1_000_000 * second);
    }
}
