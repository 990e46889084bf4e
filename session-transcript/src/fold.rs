//! What is known of a session file so far: a fold over its lines, which goes on where it stopped.

mod blocks;
mod chain;
mod glance;
mod marks;
mod notes;
mod part;
mod replies;
mod shown;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use session_core::history::{Notice, NoticeKind};
use session_core::{TranscriptFormat, Usage};

use self::blocks::{Block, Blocks};
use self::chain::{Chain, Place, Taken};
pub(crate) use self::glance::{Buffers, FIRST};
use self::marks::Marks;
use self::notes::Notes;
use self::part::{Part, Tail};
pub(crate) use self::replies::Replies;

/// How much is read at once.
const BLOCK: usize = 256 << 10;

/// The same where threads wait for each other.
const WIDE: usize = 1 << 20;

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
    /// What the agent itself counts.
    pub(crate) running: Option<Usage>,
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

/// A file that several threads read in turn.
#[derive(Debug)]
struct Lines<R> {
    /// The blocks, and the number of the next one.
    blocks: Mutex<(Blocks<R>, u64)>,
    turn: Condvar,
}

/// What the parts go into, the number of the part that is next, and how it ended.
type Sink<'a> = Mutex<(&'a mut Digest, u64, io::Result<Folded>)>;

/// A part that others wait for: should its reader panic, they do not wait for ever.
struct Awaited<'a, 'b> {
    turn: &'a Condvar,
    sink: &'a Sink<'b>,
}

impl Drop for Awaited<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
            (sink.1, sink.2) = (u64::MAX, Err(io::Error::other("a reader panicked")));
            self.turn.notify_all();
        }
    }
}

impl<R: Read> Lines<R> {
    /// Reads blocks as long as there are some, and hands on each when it is its turn.
    fn fold(&self, format: &dyn TranscriptFormat, sink: &Sink<'_>) {
        let mut buffer = Vec::new();
        loop {
            let (block, number) = {
                let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
                let number = blocks.1;
                blocks.1 += 1;
                (blocks.0.next(buffer), number)
            };
            let guard = Awaited { turn: &self.turn, sink };
            let read = match block {
                Ok(Some(block)) => {
                    // Only the first block can begin with the end of a line that was there before.
                    let part = (number > 0).then(|| Part::read(format, &block));
                    Ok(Some((block, part)))
                }
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            let sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
            let mut sink =
                self.turn.wait_while(sink, |sink| sink.1 < number).unwrap_or_else(PoisonError::into_inner);
            drop(guard);
            sink.1 = sink.1.saturating_add(1);
            self.turn.notify_all();
            match (&sink.2, read) {
                (Ok(Folded::Done), Ok(Some((mut block, part)))) => {
                    if sink.0.take_block(format, &mut block, part) == Folded::Anew {
                        sink.2 = Ok(Folded::Anew);
                        return;
                    }
                    buffer = block.recycle();
                }
                (Ok(Folded::Done), Err(error)) => {
                    sink.2 = Err(error);
                    return;
                }
                _ => return,
            }
        }
    }
}

impl Digest {
    /// Folds what comes after [`folded`](Self::folded) bytes; `input` begins there and ends where the file did when it was
    /// opened. After [`Folded::Anew`] or an error, it is of no use any more.
    pub(crate) fn fold(&mut self, format: &dyn TranscriptFormat, input: impl Read) -> io::Result<Folded> {
        let mut blocks = Blocks::new(input, self.folded, BLOCK);
        let mut buffer = Vec::new();
        if !self.begin() {
            return Ok(Folded::Anew);
        }
        while let Some(mut block) = blocks.next(buffer)? {
            if self.take_block(format, &mut block, None) == Folded::Anew {
                return Ok(Folded::Anew);
            }
            buffer = block.recycle();
        }
        self.finish();
        Ok(Folded::Done)
    }

    /// The same on so many threads: blocks are read apart from each other, and taken in their order.
    pub(crate) fn fold_on(
        &mut self,
        threads: usize,
        format: &dyn TranscriptFormat,
        input: impl Read + Send,
    ) -> io::Result<Folded> {
        if threads < 2 {
            return self.fold(format, input);
        }
        if !self.begin() {
            return Ok(Folded::Anew);
        }
        let lines =
            Lines { blocks: Mutex::new((Blocks::new(input, self.folded, WIDE), 0)), turn: Condvar::new() };
        let sink = Mutex::new((self, 0, Ok(Folded::Done)));
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| lines.fold(format, &sink));
            }
            lines.fold(format, &sink);
        });
        let (digest, _, folded) = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Ok(Folded::Done) = folded {
            digest.finish();
        }
        folded
    }

    /// Whether it can go on.
    fn begin(&mut self) -> bool {
        if self.folded == 0 {
            *self = Self::default();
            self.memory.present = true;
        }
        self.lines -= u64::from(self.torn);
        self.torn = false;
        self.memory.present
    }

    fn take_block(&mut self, format: &dyn TranscriptFormat, block: &mut Block, part: Option<Part>) -> Folded {
        if self.open && !self.end_line(block) {
            return Folded::Anew;
        }
        let part = part.unwrap_or_else(|| Part::read(format, block));
        self.take(part, block)
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

    fn take(&mut self, part: Part, block: &Block) -> Folded {
        self.bytes = block.start + block.width();
        self.folded += part.width;
        self.lines += part.lines;
        self.records += part.records;
        self.skipped += part.skipped;
        self.side_turns += part.side_turns;
        self.notes.append(part.notes);
        self.running = part.running.or(self.running);
        self.open = part.tail == Tail::Record;
        self.torn = part.tail == Tail::Torn;
        if self.torn && block.too_long.is_none() {
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

    /// Folds the beginning and the end of a file alone, where the rest is not worth the time.
    pub(crate) fn glance(format: &dyn TranscriptFormat, head: &[u8], tail: &[u8]) -> Self {
        let mut digest = Self::default();
        let whole_lines = |bytes: &[u8]| memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        let first_line = memchr::memchr(b'\n', tail).map_or(tail.len(), |end| end + 1);
        for bytes in [&head[..whole_lines(head)], &tail[first_line..]] {
            let block = Block::of(bytes);
            let part = Part::read(format, &block);
            digest.take(part, &block);
        }
        digest.memory = Memory::default();
        (digest.folded, digest.notices, digest.notices_left_out) = (0, Vec::new(), 0);
        digest
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

    /// The folders that it names, for a list of one folder.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        let talk = self.notes.talk();
        talk.cwd.iter().chain(talk.last_cwd.iter().filter(|last| Some(*last) != talk.cwd.as_ref()))
    }
}
