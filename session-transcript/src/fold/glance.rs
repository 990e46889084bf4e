//! The beginning and the end of a file, where the rest is not worth the time: no more of both than tells what a list shows.

use std::io;

use session_core::TranscriptFormat;
use session_core::history::{LineFacts, LineRole, RawTime};

use super::filled::Filled;
use super::notes::{Notes, is_path};
use super::part::Part;
use super::{Digest, Memory};

/// How much of the beginning and of the end is read first.
pub(crate) const FIRST: u64 = 8 << 10;
/// How much of both is looked through for a title.
const WINDOW: u64 = 64 << 10;
/// How much of the beginning is read at the most, where the first prompt is longer.
const LONGEST_HEAD: u64 = 16 << 20;
/// How much of the end is read at the most, where the last record is longer.
const LONGEST_TAIL: u64 = 4 << 20;

/// Reads so many bytes from there on, as far as they are there, behind what the buffer holds.
pub(crate) type ReadAt<'a> = dyn FnMut(u64, u64, &mut Filled) -> io::Result<()> + 'a;

/// Buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    head: Filled,
    tail: Filled,
    before: Filled,
}

impl Digest {
    /// Looks at both ends of a file of that size.
    pub(crate) fn of_ends(
        format: &dyn TranscriptFormat,
        size: u64,
        read: &mut ReadAt<'_>,
        buffers: &mut Buffers,
    ) -> io::Result<Self> {
        let head = &mut buffers.head;
        head.clear();
        let mut parts = Parts { format, digest: Self::default() };
        let mut begun = 0;
        let mut window = FIRST;
        loop {
            let more = window.min(size).saturating_sub(head.len() as u64);
            read(head.len() as u64, more, head)?;
            let lines = memchr::memrchr(b'\n', &head[begun..]).map_or(0, |end| end + 1);
            begun += parts.begin(&head[begun..begun + lines]);
            let talk = parts.digest.notes.talk();
            let enough = talk.first_prompt.is_some() || (window >= WINDOW && talk.said);
            if enough || window >= LONGEST_HEAD.min(size) {
                break;
            }
            window = wider(window);
        }
        parts.end(size, begun as u64, read, buffers)?;
        let mut digest = parts.digest;
        digest.memory = Memory::default();
        (digest.folded, digest.notices, digest.notices_left_out) = (0, Vec::new(), 0);
        Ok(digest)
    }
}

/// From the first piece over one of three to a whole window, and from there on in larger steps.
const fn wider(window: u64) -> u64 {
    if window < WINDOW / 4 {
        window * 3
    } else if window < WINDOW {
        WINDOW
    } else {
        window * 4
    }
}

/// Room for what so many bytes say in short.
fn brief(width: usize) -> Part {
    Part { brief: true, width: width as u64, ..Part::default() }
}

/// What the end of a file has still to tell: of each, the last word counts.
#[derive(Debug, Clone, Copy)]
struct Left {
    time: bool,
    cwd: bool,
    branch: bool,
    model: bool,
    prompt: bool,
}

impl Left {
    const ALL: Self = Self { time: true, cwd: true, branch: true, model: true, prompt: true };

    const fn is_any(self) -> bool {
        self.time || self.cwd || self.branch || self.model || self.prompt
    }

    fn take(&mut self, facts: &LineFacts<'_>) {
        self.time &= facts.time.as_ref().and_then(RawTime::read).is_none();
        self.prompt &= !matches!(facts.role, LineRole::LastPrompt(_));
        if facts.sidechain || matches!(facts.role, LineRole::Header { .. }) {
            return;
        }
        self.cwd &= !facts.cwd.as_ref().is_some_and(|cwd| is_path(cwd));
        self.branch &= facts.branch.is_none();
        match &facts.role {
            LineRole::Model(_) | LineRole::Reply { model: Some(_), .. } => self.model = false,
            LineRole::Prompt { text, command: false, queued: false } if !facts.meta => {
                self.prompt &= text.trim().is_empty();
            }
            _ => {}
        }
    }
}

/// What was read so far, in the order of the file.
struct Parts<'a> {
    format: &'a dyn TranscriptFormat,
    digest: Digest,
}

impl Parts<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.take_until(bytes, |_| false);
    }

    fn take_until(&mut self, bytes: &[u8], enough: impl Fn(&Part) -> bool) -> usize {
        if bytes.is_empty() {
            return 0;
        }
        let mut part = brief(bytes.len());
        let taken = part.lines(self.format, bytes, 0, &|line| self.format.glance(line), enough);
        self.digest.take(part, 0, false);
        taken
    }

    /// Whether some lines can be left out without missing a title: titles are looked for by their mark, or are elsewhere.
    fn leaves_out(&self) -> bool {
        self.format.title_mark().is_some() || !self.format.has_title_lines()
    }

    /// Takes lines of the beginning up to the first prompt, and says how many bytes they have: where some can be left out,
    /// the others tell nothing that the end does not.
    fn begin(&mut self, bytes: &[u8]) -> usize {
        let leaves_out = self.leaves_out();
        self.take_until(bytes, |part| {
            let talk = &part.notes.main;
            leaves_out && talk.first_prompt.is_some() && talk.cwd.is_some()
        })
    }

    /// Reads lines from the last one back until they tell everything, and says how many bytes before them were not read. Parts
    /// are added in the order in which they were read.
    fn back(&self, bytes: &[u8], left: &mut Left, parts: &mut Vec<Part>) -> usize {
        let mut begin = bytes.len();
        let mut lines = Vec::new();
        if self.digest.notes.main.said && self.leaves_out() {
            while begin > 0 && left.is_any() {
                let end = begin;
                begin = memchr::memrchr(b'\n', &bytes[..end - 1]).map_or(0, |end| end + 1);
                let line = &bytes[begin..end];
                let facts = self.format.glance(line.strip_suffix(b"\n").unwrap_or(line));
                facts.iter().for_each(|facts| left.take(facts));
                lines.push((line, facts));
            }
        } else {
            begin = 0;
        }
        let mut part = brief(bytes.len() - begin);
        if lines.is_empty() {
            part.lines(self.format, &bytes[begin..], 0, &|line| self.format.glance(line), |_| false);
        }
        for (line, facts) in lines.into_iter().rev() {
            match line.strip_suffix(b"\n") {
                Some(line) => part.line(self.format, line, 0, facts.as_ref()),
                None => part.end(self.format, line, 0, facts.as_ref()),
            }
        }
        parts.push(part);
        begin
    }

    /// Reads the end, but nothing of the first `begun` bytes: back to a whole record, and a title, if one is near.
    fn end(
        &mut self,
        size: u64,
        begun: u64,
        read: &mut ReadAt<'_>,
        Buffers { head, tail, before }: &mut Buffers,
    ) -> io::Result<()> {
        let mut window = FIRST;
        // Where the lines begin that were read.
        let mut lines = size;
        // A header that tells the branch is the only line that does.
        let branch = self.digest.notes.head.as_ref().is_none_or(|head| head.branch.is_none());
        let (mut parts, mut left) = (Vec::new(), Left { branch, ..Left::ALL });
        let mut held = size;
        tail.clear();
        loop {
            let start = size.saturating_sub(window).max(begun);
            before.clear();
            read(start, held - start, before)?;
            // Where the file was cut off meanwhile, what was read before is not there any more.
            if before.len() as u64 == held - start {
                before.room(tail.len()).copy_from_slice(tail);
                before.grow(tail.len());
            }
            std::mem::swap(before, tail);
            held = start;
            // Where it does not begin with what was read before, the first line may be half of one.
            let whole = if start == begun {
                0
            } else {
                memchr::memchr(b'\n', tail).map_or(tail.len(), |end| end + 1)
            };
            // A wider window ends with what was read before.
            let end = usize::try_from(lines - start).map_or(tail.len(), |end| end.min(tail.len()));
            let unread = self.back(&tail[whole.min(end)..end], &mut left, &mut parts);
            lines = start + (whole + unread) as u64;
            let has_time = parts.iter().any(|part| part.notes.updated.is_some());
            let has_place = self.digest.notes.talk().cwd.is_none()
                || parts.iter().any(|part| part.notes.talk().cwd.is_some());
            if start == begun || (has_time && (has_place || window > FIRST)) || window >= LONGEST_TAIL {
                break;
            }
            window = wider(window);
        }
        let is_told =
            |told: fn(&Notes) -> &Option<String>| parts.iter().any(|part| told(&part.notes).is_some());
        if let Some(mark) = self.format.title_mark()
            && !is_told(|notes| &notes.given)
        {
            let finder = memchr::memmem::Finder::new(mark);
            let from = size.saturating_sub(WINDOW).max(begun).min(lines);
            tail.clear();
            read(from, lines - from, tail)?;
            let titled = marked(&finder, tail);
            let notes = &self.digest.notes;
            let untitled = titled.is_empty()
                && !is_told(|notes| &notes.made_up)
                && notes.made_up.is_none()
                && notes.given.is_none();
            // More of the beginning is looked through only where there is no title at all.
            if untitled {
                let until = WINDOW.min(from).max(head.len() as u64);
                read(head.len() as u64, until - head.len() as u64, head)?;
            }
            // What both hold is taken twice: the last title counts, whichever way.
            for line in marked(&finder, &head[begun as usize..]).into_iter().chain(titled) {
                self.take(line);
            }
        }
        for part in parts.into_iter().rev() {
            self.digest.take(part, size, false);
        }
        Ok(())
    }
}

/// The lines that hold the mark, each with its end.
fn marked<'a>(finder: &memchr::memmem::Finder<'_>, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut lines = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&bytes[from..]).map(|at| from + at) {
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        // Half a line at the end is none.
        let Some(end) = memchr::memchr(b'\n', &bytes[at..]).map(|end| at + end + 1) else { break };
        lines.push(&bytes[start..end]);
        from = end;
    }
    lines
}
