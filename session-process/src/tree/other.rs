//! Other systems: the process group on Unix; on Windows the job object, which ends with its handle.

use session_core::RunId;

use super::Ask;

/// The group as a whole.
#[derive(Debug)]
pub(crate) struct Process {
    #[cfg(unix)]
    group: rustix::process::Pid,
}

impl Process {
    #[cfg(unix)]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.group == other.group
    }

    #[cfg(not(unix))]
    pub(crate) const fn is(&self, _: &Self) -> bool {
        true
    }

    /// Members cannot be told apart.
    pub(crate) const fn is_leader(&self) -> bool {
        false
    }

    #[cfg(unix)]
    pub(crate) fn is_there(&self) -> bool {
        rustix::process::test_kill_process_group(self.group).is_ok()
    }

    #[cfg(not(unix))]
    pub(crate) const fn is_there(&self) -> bool {
        false
    }
}

/// The processes of a run.
#[derive(Debug)]
pub(crate) struct Tree {
    child: Option<u32>,
}

impl Tree {
    pub(crate) fn of_child(_: RunId, child: u32, _: bool) -> Self {
        Self { child: Some(child) }
    }

    /// Nothing is known of an earlier run.
    pub(crate) fn of_run(_: RunId) -> Self {
        Self { child: None }
    }

    pub(crate) const fn leader_collected(&mut self) {}

    pub(crate) fn is_clear(&mut self) -> bool {
        self.members().is_empty()
    }

    #[cfg(unix)]
    pub(crate) fn members(&mut self) -> Vec<Process> {
        let pid = self.child.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 1);
        let group = pid.and_then(rustix::process::Pid::from_raw).map(|group| Process { group });
        group.into_iter().filter(Process::is_there).collect()
    }

    #[cfg(not(unix))]
    pub(crate) fn members(&mut self) -> Vec<Process> {
        let _ = self.child;
        Vec::new()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, processes: &[Process], ask: Ask) {
        use rustix::process::{Signal, kill_process_group};
        let signal = match ask {
            Ask::End => Signal::TERM,
            Ask::Kill => Signal::KILL,
        };
        for process in processes {
            // Gone is what it should be.
            let _ = kill_process_group(process.group, signal);
        }
    }

    #[cfg(not(unix))]
    pub(crate) const fn signal(&self, _: &[Process], _: Ask) {}

    pub(crate) fn kill_now(&mut self) -> usize {
        let found = self.members();
        self.signal(&found, Ask::Kill);
        found.len()
    }
}
