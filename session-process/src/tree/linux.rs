//! Linux: found in `/proc`, signalled by process file descriptor.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
    test_kill_process_group, waitpid,
};
use session_core::RunId;

use super::procfs::{self, Environs, Stat};
use super::{Ask, MARK};

/// As long as a run is younger than this, process numbers cannot have gone round since its start.
const YOUNG: Duration = Duration::from_secs(1);
/// So many numbers are faster looked at one by one than by listing all processes.
const FEW: i32 = 128;

/// So often is looked again when something moves.
const ROUNDS: u32 = 64;

/// A process that cannot be taken for a later one of the same number.
#[derive(Debug)]
pub(crate) struct Process {
    pid: i32,
    began: u64,
    descriptor: Option<OwnedFd>,
    leader: bool,
}

impl Process {
    fn open(stat: &Stat, leader: bool) -> Option<Self> {
        let pid = Pid::from_raw(stat.pid)?;
        // Without a descriptor (an old kernel, too many open files) the number has to do.
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok();
        let process = Self { pid: stat.pid, began: stat.began, descriptor, leader };
        // Only now is it certain that the descriptor is of the process that was looked at.
        process.is_there().then_some(process)
    }

    pub(crate) const fn is(&self, other: &Self) -> bool {
        self.pid == other.pid && self.began == other.began
    }

    pub(crate) const fn is_leader(&self) -> bool {
        self.leader
    }

    /// Whether it still runs.
    pub(crate) fn is_there(&self) -> bool {
        let Some(stat) = Stat::of(self.pid).filter(|stat| stat.began == self.began) else { return false };
        if stat.ended && !self.leader && stat.parent == 1 && own_pid() == 1 {
            // Orphans come to the container's first process; where that is us, nobody else collects them. The
            // leader is not ours to collect: its handle does.
            let _ = waitpid(Pid::from_raw(self.pid), WaitOptions::NOHANG);
        }
        !stat.ended
    }

    fn signal(&self, signal: Signal) {
        let sent = match (&self.descriptor, Pid::from_raw(self.pid)) {
            (Some(descriptor), _) => pidfd_send_signal(descriptor, signal),
            (None, Some(pid)) if self.is_there() => kill_process(pid, signal),
            (None, _) => return,
        };
        if let Err(error) = sent
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(pid = self.pid, %error, "a process of the run cannot be signalled");
        }
    }
}

/// The processes of a run.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The variable that marks its processes, as it stands in their environments.
    mark: Vec<u8>,
    /// Since when there may be any.
    since: Instant,
    leader: Option<Stat>,
    /// The leader was collected: its number, and its group's once that is empty, may be used again.
    collected: bool,
    group: Option<Pid>,
    /// The leader is no agent but what keeps one in a sandbox, and what runs inside dies with it.
    is_launcher: bool,
}

impl Tree {
    /// The tree of a process that was just started as the leader of its own group.
    pub(crate) fn of_child(run: RunId, child: u32, is_launcher: bool) -> Self {
        let pid = i32::try_from(child).ok().filter(|pid| *pid > 1);
        let leader = pid.map(|pid| {
            Stat::of(pid).unwrap_or(Stat { pid, parent: own_pid(), group: pid, began: 0, ended: false })
        });
        Self {
            mark: mark(run),
            since: Instant::now(),
            leader,
            collected: false,
            group: pid.and_then(Pid::from_raw),
            is_launcher,
        }
    }

    /// The tree of an earlier run, of which only the mark is known.
    pub(crate) fn of_run(run: RunId) -> Self {
        Self {
            mark: mark(run),
            since: Instant::now(),
            leader: None,
            collected: true,
            group: None,
            is_launcher: false,
        }
    }

    /// The started process has ended and was collected.
    pub(crate) const fn leader_collected(&mut self) {
        self.collected = true;
    }

    /// Whether nothing is left, once the started process was collected. Fast where it can be: most runs leave
    /// nothing.
    pub(crate) fn is_clear(&mut self) -> bool {
        if self.group.is_some_and(|group| test_kill_process_group(group) != Err(rustix::io::Errno::SRCH)) {
            return self.members().is_empty();
        }
        self.group = None;
        if let Some(clear) = self.none_among_few() { clear } else { self.members().is_empty() }
    }

    /// Everything that the run started has a number between its leader's and the newest one. `None`: it is not
    /// that simple.
    fn none_among_few(&self) -> Option<bool> {
        let first = self.leader?.pid;
        let me = own_pid();
        let mut environs = Environs::new(&self.mark);
        let mut seen = first;
        loop {
            let newest = procfs::newest()?;
            let few = (seen..first.saturating_add(FEW)).contains(&newest);
            if self.since.elapsed() >= YOUNG || !few {
                return None;
            }
            if newest == seen {
                return Some(true);
            }
            // One that is found ends the short way: then all have to be looked at.
            if (seen + 1..=newest).any(|pid| pid != me && environs.has(pid)) {
                return None;
            }
            // One that ended before we looked may have started another one meanwhile: look on.
            seen = newest;
        }
    }

    /// Every process of the run that is there now.
    pub(crate) fn members(&mut self) -> Vec<Process> {
        for _ in 0..ROUNDS {
            let (found, vanished) = self.look();
            // One that vanished under our eyes may have started another one.
            if !found.is_empty() || !vanished {
                return found;
            }
        }
        Vec::new()
    }

    /// The processes of the run, and whether one of them ended while they were looked for.
    fn look(&mut self) -> (Vec<Process>, bool) {
        let mark = std::mem::take(&mut self.mark);
        let mut environs = Environs::new(&mark);
        let began = self.leader.map_or(0, |leader| leader.began);
        let mut all = Vec::new();
        let mut members = HashSet::new();
        let mut in_group = 0;
        for stat in procfs::processes() {
            all.push(stat);
            // What is older than the leader is none of the run's.
            if stat.began < began {
                continue;
            }
            let grouped = self.group.is_some_and(|group| group.as_raw_pid() == stat.group);
            in_group += u32::from(grouped);
            // In the same step, as the process may be gone in the next one.
            if !stat.ended && (grouped || self.is_leader(&stat) || environs.has(stat.pid)) {
                members.insert(stat.pid);
            }
        }
        self.mark = mark;
        if self.collected && in_group == 0 {
            self.group = None;
        }
        let above = ancestors(&all, own_pid());
        let may_end =
            |stat: &&Stat| stat.began >= began && !stat.ended && stat.pid > 1 && !above.contains(&stat.pid);
        members.retain(|pid| !above.contains(pid));
        // Descendants: those whose environment was scrubbed.
        loop {
            let before = members.len();
            let children = all.iter().filter(may_end).filter(|stat| members.contains(&stat.parent));
            let children: Vec<i32> = children.map(|stat| stat.pid).collect();
            members.extend(children);
            if members.len() == before {
                break;
            }
        }
        let there = all.iter().filter(may_end).filter(|stat| members.contains(&stat.pid));
        let opened: Vec<_> = there.map(|stat| Process::open(stat, self.is_leader(stat))).collect();
        let vanished = opened.iter().any(Option::is_none);
        (opened.into_iter().flatten().collect(), vanished)
    }

    fn is_leader(&self, stat: &Stat) -> bool {
        self.leader.is_some_and(|leader| {
            stat.pid == leader.pid && (stat.began == leader.began || (leader.began == 0 && !self.collected))
        })
    }

    /// Signals these processes.
    pub(crate) fn signal(&self, processes: &[Process], ask: Ask) {
        let signal = match ask {
            Ask::End => Signal::TERM,
            Ask::Kill => Signal::KILL,
        };
        // A launcher that is asked would take the agent down before that has ended in order; it ends with the agent.
        let spared =
            self.is_launcher && ask == Ask::End && processes.iter().any(|process| !process.is_leader());
        // As long as the leader was not collected, the group's number is its own; one call then reaches those
        // too that were started since we looked.
        let group =
            self.group.filter(|_| !spared && !self.collected && processes.iter().any(Process::is_leader));
        let mut reached = HashSet::new();
        if let Some(group) = group {
            let members = processes
                .iter()
                .filter(|process| Stat::of(process.pid).is_some_and(|stat| stat.group == group.as_raw_pid()));
            reached.extend(members.map(|process| process.pid));
            if kill_process_group(group, signal).is_err() {
                reached.clear();
            }
        }
        let asked = processes.iter().filter(|process| !(spared && process.is_leader()));
        for process in asked.filter(|process| !reached.contains(&process.pid)) {
            process.signal(signal);
        }
    }

    /// Kills everything, without waiting: for the end of a future that was dropped.
    pub(crate) fn kill_now(&mut self) -> usize {
        let mut killed: HashSet<(i32, u64)> = HashSet::new();
        // Until no new one is found: a process may start another one while it is being looked for.
        for _ in 0..ROUNDS {
            let (found, vanished) = self.look();
            let before = killed.len();
            killed.extend(found.iter().map(|process| (process.pid, process.began)));
            if killed.len() == before && !vanished {
                break;
            }
            self.signal(&found, Ask::Kill);
        }
        killed.len()
    }
}

fn mark(run: RunId) -> Vec<u8> {
    format!("{MARK}={run}").into_bytes()
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

/// This process and those that it runs in: never to be ended, whatever they carry.
fn ancestors(all: &[Stat], me: i32) -> HashSet<i32> {
    let mut above = HashSet::from([me]);
    let mut at = me;
    while let Some(stat) = all.iter().find(|stat| stat.pid == at) {
        if !above.insert(stat.parent) {
            break;
        }
        at = stat.parent;
    }
    above
}
