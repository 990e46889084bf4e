//! The processes of a run: all of them, wherever they went.
//!
//! Agents start tools in sessions of their own, and launchers hide the real process, so that neither the
//! process nor its group is the run. A process belongs to the run when it is the one that was started, is in
//! its group, carries the run's mark in its environment, or descends from one that does.

mod ending;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
mod procfs;

pub(crate) use ending::{Ending, Step, reap};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Process, Tree};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{Process, Tree};

/// The variable that marks every process of a run.
pub(crate) const MARK: &str = "REJOIN_RUN";

/// How hard to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// To end.
    End,
    /// Not to ask: to kill.
    Kill,
}

/// Kills the run's processes when the run is given up half-way.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) tree: Tree,
    armed: bool,
}

impl Guard {
    pub(crate) const fn new(tree: Tree) -> Self {
        Self { tree, armed: true }
    }

    /// Nothing is left: there is nothing to do any more.
    pub(crate) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed {
            let killed = self.tree.kill_now();
            tracing::debug!(killed, "the run was dropped; its processes were killed");
        }
    }
}
