//! Some lines of a file, read without knowing those before them: what takes the time. Parts are put together in their order.

use session_core::history::{HistoryBase, LineFacts, LineRole, NoticeKind, RecordId};
use session_core::{TranscriptFormat, Usage};

use super::blocks::Block;
use super::chain::{Place, Step};
use super::marks::Mark;
use super::notes::{Notes, is_talk};
use super::replies::Spent;
use crate::lines::glued;

/// What lines say.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) notes: Notes,
    /// Whether notes are all that is wanted, as of a file that is read in part: nothing is counted, and nothing linked.
    pub(super) brief: bool,
    pub(super) steps: Vec<Step>,
    pub(super) spent: Vec<(RecordId, Spent)>,
    pub(super) notices: Vec<(u64, NoticeKind)>,
    pub(super) marks: Vec<Mark>,
    /// The last total that the agent tells, and the last of each time that it began to count anew.
    pub(super) running: Option<Usage>,
    pub(super) anew: Vec<Option<Usage>>,
    /// Prompts of helpers.
    pub(super) side_turns: u64,
    pub(super) lines: u64,
    pub(super) records: u64,
    pub(super) skipped: u64,
    /// How many bytes were read that need not be read again.
    pub(super) width: u64,
    pub(super) tail: Tail,
}

/// What stands behind the last newline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tail {
    #[default]
    Nothing,
    /// A whole record, which was taken.
    Record,
    /// Something else.
    Torn,
}

/// What a line says.
type Facts<'f, 'a> = dyn Fn(&'a [u8]) -> Option<LineFacts<'a>> + 'f;

impl Part {
    /// Reads some lines. `last`: whether the file ends with them.
    pub(super) fn read(format: &dyn TranscriptFormat, block: &Block) -> Self {
        let mut part = Self { width: block.width(), ..Self::default() };
        if let Some((length, ended)) = block.too_long {
            part.lines = 1;
            if ended {
                part.skip(block.start, NoticeKind::LineTooLong);
            } else {
                (part.tail, part.width) = (Tail::Torn, 0);
            }
            debug_assert!(length > 0, "it holds a line");
            return part;
        }
        let facts = |line| format.facts(line);
        part.lines(format, block.bytes(), block.start, &facts, |_| false);
        part
    }

    /// Reads lines until it is enough, and says how many bytes they have.
    pub(super) fn lines<'a>(
        &mut self,
        format: &dyn TranscriptFormat,
        bytes: &'a [u8],
        start: u64,
        facts: &Facts<'_, 'a>,
        enough: impl Fn(&Self) -> bool,
    ) -> usize {
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let line = &bytes[begin..end];
            self.line(format, line, start + begin as u64, facts(line).as_ref());
            begin = end + 1;
            if enough(self) {
                return begin;
            }
        }
        if begin < bytes.len() {
            let line = &bytes[begin..];
            self.end(format, line, start + begin as u64, facts(line).as_ref());
        }
        bytes.len()
    }

    /// A line that ended.
    pub(super) fn line(
        &mut self,
        format: &dyn TranscriptFormat,
        line: &[u8],
        offset: u64,
        facts: Option<&LineFacts<'_>>,
    ) {
        self.lines += 1;
        if let Some(facts) = facts {
            self.take(facts, offset, || format.base(line));
        } else if !line.trim_ascii().is_empty() {
            match recovered(format, line) {
                Some(facts) => {
                    self.skip(offset, NoticeKind::Recovered);
                    self.take(&facts, offset, || None);
                }
                None => self.skip(offset, NoticeKind::SkippedLine),
            }
        }
    }

    /// What stands behind the last newline.
    pub(super) fn end(
        &mut self,
        format: &dyn TranscriptFormat,
        line: &[u8],
        offset: u64,
        facts: Option<&LineFacts<'_>>,
    ) {
        self.tail = Tail::Record;
        if let Some(facts) = facts {
            self.lines += 1;
            self.take(facts, offset, || format.base(line));
        } else if let Some(facts) = recovered(format, line) {
            self.lines += 1;
            self.skip(offset, NoticeKind::Recovered);
            self.take(&facts, offset, || None);
        } else {
            // It is read again when there is more.
            self.width -= line.len() as u64;
            self.tail = if line.trim_ascii().is_empty() { Tail::Nothing } else { Tail::Torn };
        }
    }

    fn skip(&mut self, offset: u64, kind: NoticeKind) {
        self.skipped += 1;
        self.notices.push((offset, kind));
    }

    fn take(&mut self, facts: &LineFacts<'_>, offset: u64, base: impl FnOnce() -> Option<HistoryBase>) {
        self.records += 1;
        let time = self.notes.take(facts, base);
        if self.brief {
            return;
        }
        self.marks.extend(Mark::of(facts, offset));
        if let LineRole::Reply { reply: Some(reply), usage, .. } = &facts.role {
            self.spend(
                *reply,
                Spent { usage: usage.unwrap_or_default(), copied: facts.copied, sidechain: facts.sidechain },
            );
        }
        match &facts.role {
            LineRole::RunningTotal(total) => {
                *self.anew.last_mut().unwrap_or(&mut self.running) = Some(*total);
            }
            LineRole::CountsAnew => self.anew.push(None),
            _ => {}
        }
        if facts.sidechain {
            let turn = matches!(facts.role, LineRole::Prompt { queued: false, .. });
            self.side_turns += u64::from(turn);
        } else if is_talk(facts) || matches!(facts.role, LineRole::RolledBack(_)) {
            self.step(facts, time, offset);
        }
    }

    /// Lines of one reply mostly follow each other.
    fn spend(&mut self, reply: RecordId, spent: Spent) {
        match self.spent.last_mut() {
            Some((last, known)) if *last == reply => known.follow(spent),
            _ => self.spent.push((reply, spent)),
        }
    }

    fn step(&mut self, facts: &LineFacts<'_>, time: Option<i64>, offset: u64) {
        let place = match &facts.role {
            LineRole::Prompt { queued: true, .. } => Place::Queued,
            LineRole::Prompt { .. } => Place::Prompt,
            LineRole::Reply { reply, .. } => Place::Reply(*reply),
            LineRole::Returned => Place::Returned,
            LineRole::CompactSummary => Place::Message,
            LineRole::Boundary => Place::Boundary,
            LineRole::RolledBack(turns) => Place::RolledBack(*turns),
            _ => Place::Other,
        };
        let message = matches!(place, Place::Prompt | Place::Reply(_) | Place::Returned | Place::Message);
        self.steps.push(Step {
            place,
            id: facts.id,
            parent: facts.parent,
            logical_parent: facts.logical_parent,
            counts: message && !facts.meta,
            print: facts.print.filter(|_| message),
            time,
            offset,
        });
    }
}

/// The record at the end of a line that begins with something else. A record that says nothing is left: it could be a part of
/// the torn half.
fn recovered<'a>(format: &dyn TranscriptFormat, line: &'a [u8]) -> Option<LineFacts<'a>> {
    glued(line, |rest| format.facts(rest).filter(|facts| facts.id.is_some() || facts.role != LineRole::Other))
}
