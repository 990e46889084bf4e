//! Ending what is left: ask, wait, kill, and look again until nothing is there.

use std::time::{Duration, Instant};

use super::{Ask, Process, Tree};

/// A killed process that is still there after this is stuck in the kernel.
const KILL_WAIT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: no process of the run is left.
    Gone,
    /// Look again at this time, or as soon as something was heard.
    Wait(Instant),
    /// Nothing: some are left, and cannot be killed.
    GaveUp,
}

/// The end of a run's processes, as far as it has come.
#[derive(Debug)]
pub(crate) struct Ending {
    known: Vec<Process>,
    ask: Ask,
    until: Instant,
    pause: Duration,
    ended: u32,
}

impl Ending {
    /// Asks all processes of the run to end.
    pub(crate) fn begin(tree: &mut Tree, grace: Duration, now: Instant) -> Self {
        // A grace period without end would be a run without end.
        let until = now.checked_add(grace).unwrap_or(now);
        let mut ending = Self { known: Vec::new(), ask: Ask::End, until, pause: FIRST_PAUSE, ended: 0 };
        ending.look(tree);
        ending
    }

    /// How many there were, the agent's own process aside.
    pub(crate) const fn ended(&self) -> u32 {
        self.ended
    }

    /// Looks how far it has come, and goes on to killing when it is time.
    pub(crate) fn step(&mut self, tree: &mut Tree, now: Instant) -> Step {
        self.known.retain(Process::is_there);
        if self.known.is_empty() {
            // What they started meanwhile may be left.
            self.look(tree);
            if self.known.is_empty() {
                return Step::Gone;
            }
        }
        if now >= self.until {
            if self.ask == Ask::Kill {
                tracing::warn!(left = self.known.len(), "killed processes are still there");
                return Step::GaveUp;
            }
            self.ask = Ask::Kill;
            self.until = now + KILL_WAIT;
            self.pause = FIRST_PAUSE;
            self.look(tree);
            tracing::debug!(left = self.known.len(), "the grace period is over; killing");
            tree.signal(&self.known, Ask::Kill);
        }
        let next = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Step::Wait(next.min(self.until))
    }

    /// Finds processes that are not known yet, and asks them as the others were asked.
    fn look(&mut self, tree: &mut Tree) {
        let known = &self.known;
        let new: Vec<Process> =
            tree.members().into_iter().filter(|process| !known.iter().any(|k| k.is(process))).collect();
        self.ended += u32::try_from(new.iter().filter(|p| !p.is_leader()).count()).unwrap_or(u32::MAX);
        if !new.is_empty() {
            tree.signal(&new, self.ask);
        }
        self.known.extend(new);
    }
}

/// How long the remains of a dead run may take to end.
const REAP_GRACE: Duration = Duration::from_secs(1);

/// Ends every process that carries the mark of this run, and says how many there were.
pub(crate) async fn reap(run: session_core::RunId) -> u32 {
    let mut tree = Tree::of_run(run);
    let mut ending = Ending::begin(&mut tree, REAP_GRACE, Instant::now());
    while let Step::Wait(until) = ending.step(&mut tree, Instant::now()) {
        tokio::time::sleep_until(until.into()).await;
    }
    if ending.ended() > 0 {
        tracing::warn!(%run, ended = ending.ended(), "a run had left processes behind");
    }
    ending.ended()
}
