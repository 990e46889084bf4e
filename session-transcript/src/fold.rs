//! What is known of a session file so far: a fold over its lines, which goes on where it stopped.

mod blocks;
mod chain;
mod entry;
mod filled;
mod glance;
mod head;
mod marks;
mod notes;
mod part;
mod replies;
mod row;
mod threads;

use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use session_core::history::{HistoryBase, Notice, NoticeKind};
use session_core::{TranscriptFormat, Usage};

use self::blocks::{Block, Blocks};
use self::chain::{Chain, Place, Taken};
pub(crate) use self::filled::Filled;
pub(crate) use self::glance::{Buffers, FIRST};
use self::head::Inherited;
use self::marks::Marks;
use self::notes::Notes;
pub(crate) use self::notes::cut;
use self::part::{Part, Tail};
pub(crate) use self::replies::Replies;
pub(crate) use self::row::Row;
use crate::buffer;

/// How much is read at once.
const BLOCK: usize = 256 << 10;

/// How many notices are kept; of others, it is known how many there were.
const NOTICES: usize = 32;

/// What was read of a file, summed up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Digest {
    /// How many bytes were folded: up to the end of the last whole line, or of a record behind it that has no end yet.
    pub(crate) folded: u64,
    /// Whether all lines before `folded` were.
    pub(crate) whole: bool,
    /// How many bytes there were.
    pub(crate) bytes: u64,
    /// Lines, empty ones too, and one that is cut off.
    pub(crate) lines: u64,
    /// Lines that are records.
    pub(crate) records: u64,
    /// Lines that are no records.
    pub(crate) skipped: u64,
    /// Whether the last line is cut off.
    pub(crate) torn: bool,
    /// Whether the last line is whole, and has no end.
    pub(crate) open: bool,
    /// Prompts that were typed.
    pub(crate) turns: u64,
    /// Prompts of helpers.
    pub(crate) side_turns: u64,
    /// Messages that the model still sees, and prompts beside them that were typed while it was at work.
    pub(crate) messages: u64,
    pub(crate) queued: u64,
    /// Messages of the conversation, compactions bridged.
    pub(crate) all_messages: u64,
    pub(crate) compactions: u64,
    /// Replies, each once.
    pub(crate) replies: u64,
    /// Tokens, each reply once: with what a fork copied, without it, and those of helpers.
    pub(crate) usage: Usage,
    pub(crate) usage_new: Usage,
    pub(crate) usage_of_sidechains: Usage,
    /// What the agent itself counts since it last began to, and what it had counted before that.
    running: Option<Usage>,
    counted: Option<Usage>,
    /// What was folded before the file's beginning, of those that it goes on from.
    inherited: Option<Inherited>,
    pub(crate) notes: Notes,
    notices: Vec<(u64, NoticeKind)>,
    notices_left_out: u64,
    /// What is needed for going on, and not for a list.
    #[serde(skip)]
    memory: Memory,
    /// What a restore asks for, and no list.
    #[serde(skip)]
    pub(crate) marks: Marks,
}

/// What is remembered of single records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    chain: Chain,
    replies: Replies,
    /// Whether it is that of all that was folded.
    present: bool,
}

/// Whether a fold could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folded {
    /// All was folded.
    Done,
    /// What was added goes back further than is remembered: the file has to be folded anew, from its beginning.
    Anew,
}

impl Digest {
    /// Folds what comes after [`folded`](Self::folded) bytes; `input` begins there and ends where the file did when it was
    /// opened. After [`Folded::Anew`] or an error, it is of no use any more.
    pub(crate) fn fold(&mut self, format: &dyn TranscriptFormat, input: impl Read) -> io::Result<Folded> {
        if !self.begin() {
            return Ok(Folded::Anew);
        }
        let mut blocks = Blocks::new(input, self.folded, BLOCK);
        let mut buffer = buffer::take();
        while let Some(mut block) = blocks.next(std::mem::take(&mut buffer))? {
            if self.take_block(format, &mut block, None) == Folded::Anew {
                return Ok(Folded::Anew);
            }
            buffer = block.recycle();
            if blocks.is_ended() {
                break;
            }
        }
        buffer::keep(buffer);
        self.finish();
        Ok(Folded::Done)
    }

    /// Whether it can go on.
    fn begin(&mut self) -> bool {
        if self.folded == 0 && self.inherited.is_none() {
            *self = Self::default();
            self.memory.present = true;
        }
        self.lines -= u64::from(self.torn);
        self.torn = false;
        self.memory.present
    }

    /// Goes on with the beginning of another file, which goes on from the one that was folded till now.
    pub(crate) fn go_over(&mut self) {
        let id = self.notes.head.take().and_then(|head| head.id);
        self.inherited = Some(Inherited::new(id, self.running_total().unwrap_or_default()));
        (self.folded, self.bytes, self.lines, self.records, self.skipped) = (0, 0, 0, 0, 0);
        (self.torn, self.open) = (false, false);
        (self.notices, self.notices_left_out) = (Vec::new(), 0);
        self.marks.go_over();
        self.notes.main.lines = 0;
        self.notes.helpers.lines = 0;
    }

    /// Takes the first prompt of the file that it goes on from.
    pub(crate) fn begins_with(&mut self, base: &Self) {
        if let Some(prompt) = &base.notes.main.first_prompt {
            self.notes.main.first_prompt = Some(prompt.clone());
        }
        self.notes.began = base.notes.began.or(self.notes.began);
    }

    /// What the agent itself counts; `None`: it does not.
    pub(crate) fn running_total(&self) -> Option<Usage> {
        let mut total = self.counted.or(self.running)?;
        if let (Some(_), Some(running)) = (self.counted, self.running) {
            total += running;
        }
        Some(total)
    }

    /// Whether somebody typed something in words.
    pub(crate) fn has_prompt(&self) -> bool {
        self.notes.talk().first_prompt.is_some()
    }

    /// The file that it goes on from.
    pub(crate) fn base(&self) -> Option<&HistoryBase> {
        self.notes.head.as_ref()?.base.as_ref()
    }

    fn take_block(&mut self, format: &dyn TranscriptFormat, block: &mut Block, part: Option<Part>) -> Folded {
        if self.open && !self.end_line(block) {
            return Folded::Anew;
        }
        let part = part.unwrap_or_else(|| Part::read(format, block));
        self.take(part, block.start + block.width(), block.too_long.is_some())
    }

    /// The last line was whole and had no end; now it has to end, or it was none.
    fn end_line(&mut self, block: &mut Block) -> bool {
        self.open = false;
        let end = match block.bytes() {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return false,
        };
        block.start_at(end);
        self.folded += end as u64;
        true
    }

    /// Takes what was read of the lines up to there. `too_long`: they are one line that was left out.
    fn take(&mut self, part: Part, end: u64, too_long: bool) -> Folded {
        self.bytes = end;
        self.folded += part.width;
        self.lines += part.lines;
        self.records += part.records;
        self.skipped += part.skipped;
        self.side_turns += part.side_turns;
        self.notes.append(part.notes);
        self.running = part.running.or(self.running);
        for running in part.anew {
            self.counted = self.running_total();
            self.running = running;
        }
        self.open = part.tail == Tail::Record;
        self.torn = part.tail == Tail::Torn;
        if self.torn && !too_long {
            self.lines += 1;
        }
        for (reply, spent) in part.spent {
            self.memory.replies.take(reply, spent);
        }
        for mark in part.marks {
            self.marks.take(mark);
        }
        for (offset, kind) in part.notices {
            self.note(offset, kind);
        }
        for step in part.steps {
            let turn = u64::from(step.place == Place::Prompt);
            match self.memory.chain.take(&step) {
                Taken::Unknown => return Folded::Anew,
                Taken::Again => continue,
                Taken::Bridged => self.note(step.offset, NoticeKind::LinkMissing),
                Taken::SameId => self.note(step.offset, NoticeKind::SameId),
                Taken::New => {}
            }
            match step.place {
                Place::Boundary => {
                    self.compactions += 1;
                    self.marks.boundary(step.offset, self.turns);
                }
                Place::RolledBack(turns) => self.turns = self.turns.saturating_sub(turns),
                _ => self.turns += turn,
            }
        }
        Folded::Done
    }

    fn note(&mut self, offset: u64, kind: NoticeKind) {
        if self.notices.len() < NOTICES {
            self.notices.push((offset, kind));
        } else {
            self.notices_left_out += 1;
        }
    }

    fn finish(&mut self) {
        self.whole = true;
        let replies = &self.memory.replies;
        self.replies = replies.count();
        self.usage = replies.sum(|spent| !spent.sidechain);
        self.usage_new = replies.sum(|spent| !spent.sidechain && !spent.copied);
        self.usage_of_sidechains = replies.sum(|spent| spent.sidechain);
        let tip = self.memory.chain.tip();
        (self.messages, self.queued, self.all_messages) =
            (tip.messages.into(), tip.queued.into(), tip.all.into());
        self.memory.chain.trim();
    }

    /// What was left out or put right: the first ones, and how many others there were.
    pub(crate) fn notices(&self, path: &Path) -> (Vec<Notice>, u64) {
        let torn = self.torn.then_some((self.folded, NoticeKind::TornTail));
        let all = self.notices.iter().cloned().chain(torn);
        let notices = all.map(|(offset, kind)| Notice { path: path.to_owned(), offset: Some(offset), kind });
        (notices.collect(), self.notices_left_out)
    }

    /// What has to be kept beside it, for going on and for totals over several files. It is of no use in a list.
    pub(crate) const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Gives back what was kept beside it. Without it, a fold begins anew.
    pub(crate) fn remember(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// What each reply cost, for a total over several files.
    pub(crate) const fn spent(&self) -> &Replies {
        &self.memory.replies
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
