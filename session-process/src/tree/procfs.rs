//! What `/proc` says about a process.

use std::fs::File;
use std::io::{self, Read};

/// More than any environment that a process can be started with.
const ENVIRON_LIMIT: u64 = 8 * 1024 * 1024;

/// A process, as its `stat` file shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// When it began, in clock ticks since boot. Together with the number, this is a process for good.
    pub(crate) began: u64,
    /// Whether it has ended, and only waits to be collected.
    pub(crate) ended: bool,
}

impl Stat {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let mut buffer = [0; 1024];
        let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
        let count = file.read(&mut buffer).ok()?;
        Self::parse(pid, &buffer[..count])
    }

    /// The second field is the program's name in parentheses, and may hold anything, parentheses included.
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let after = memchr::memrchr(b')', stat)?;
        let text = std::str::from_utf8(stat.get(after + 1..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let began = fields.nth(16)?.parse().ok()?;
        Some(Self { pid, parent, group, began, ended: matches!(state, "Z" | "X" | "x") })
    }

    /// Whether it is a thread of the kernel, or what starts them.
    const fn is_kernel(&self) -> bool {
        self.parent == 0 || self.parent == 2
    }
}

/// Every process, in the order of their numbers, each as it is when it is come to.
pub(crate) fn processes() -> impl Iterator<Item = Stat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| Stat::of(entry.ok()?.file_name().to_str()?.parse().ok()?))
}

/// The number given to the newest process.
pub(crate) fn newest() -> Option<i32> {
    let mut buffer = [0; 128];
    let count = File::open("/proc/loadavg").ok()?.read(&mut buffer).ok()?;
    std::str::from_utf8(&buffer[..count]).ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Looks for a variable in the environments that processes were started with.
#[derive(Debug)]
pub(crate) struct Environs<'a> {
    wanted: &'a [u8],
    buffer: Vec<u8>,
}

impl<'a> Environs<'a> {
    pub(crate) const fn new(wanted: &'a [u8]) -> Self {
        Self { wanted, buffer: Vec::new() }
    }

    /// Whether the process was started with the variable. One that may not be looked at was not.
    pub(crate) fn has(&mut self, pid: i32) -> bool {
        // A process in the middle of its exec shows nothing for a moment.
        for _ in 0..8 {
            if self.read(pid).is_err() {
                return false;
            }
            if !self.buffer.is_empty() {
                return self.buffer.split(|byte| *byte == 0).any(|variable| variable == self.wanted);
            }
            if Stat::of(pid).is_none_or(|stat| stat.ended || stat.is_kernel()) {
                return false;
            }
            std::thread::yield_now();
        }
        false
    }

    fn read(&mut self, pid: i32) -> io::Result<()> {
        self.buffer.clear();
        File::open(format!("/proc/{pid}/environ"))?.take(ENVIRON_LIMIT).read_to_end(&mut self.buffer)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_is_read_over() {
        let stat = b"42 (a) Z) 1 2 (b) S 7 41 41 0 -1 4194560 1 0 0 0 3 1 0 0 20 0 1 0 123456 2 3 ";
        let parsed = Stat::parse(42, stat).unwrap();
        assert_eq!(parsed, Stat { pid: 42, parent: 7, group: 41, began: 123_456, ended: false });
        assert_eq!(Stat::parse(42, b"42 (x"), None);
        assert_eq!(Stat::parse(42, b"42 (x) S 1"), None);
    }

    #[test]
    fn this_process_is_found() {
        let me = Stat::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(!me.ended && me.began > 0);
        assert!(processes().any(|process| process == me));
        assert!(newest().is_some());
    }
}
