//! One large file on several threads.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use session_core::TranscriptFormat;

use super::blocks::{Block, Blocks};
use super::part::Part;
use super::{Digest, Folded};

/// How much is read at once where threads wait for each other.
const BLOCK: usize = 512 << 10;
/// How many blocks may be read for each thread before the one that is next.
const AHEAD: usize = 2;

/// A file that several threads read in turn.
#[derive(Debug)]
struct Lines<R> {
    /// The blocks, and the number of the next one.
    blocks: Mutex<(Blocks<R>, u64)>,
    turn: Condvar,
    /// How many parts may wait for those before them.
    most: usize,
}

/// What the parts go into, in their order.
#[derive(Debug)]
struct Sink<'a> {
    digest: &'a mut Digest,
    /// The number of the part that is next.
    next: u64,
    /// Parts that were read before it; of the first block, lines.
    waiting: BTreeMap<u64, (Block, Option<Part>)>,
    /// Buffers of blocks that were taken.
    buffers: Vec<Vec<u8>>,
    /// How it ended; as long as it is `Done`, it goes on.
    folded: io::Result<Folded>,
}

/// A part that others wait for: should its reader panic, they do not wait for ever.
struct Awaited<'a, 'b> {
    turn: &'a Condvar,
    sink: &'a Mutex<Sink<'b>>,
}

impl Drop for Awaited<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            locked(self.sink).folded = Err(io::Error::other("a reader panicked"));
            self.turn.notify_all();
        }
    }
}

fn locked<'a, T>(of: &'a Mutex<T>) -> MutexGuard<'a, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink<'_> {
    const fn goes_on(&self) -> bool {
        matches!(self.folded, Ok(Folded::Done))
    }

    /// Takes all parts whose turn it is.
    fn take(&mut self, format: &dyn TranscriptFormat) {
        while self.goes_on()
            && let Some((mut block, part)) = self.waiting.remove(&self.next)
        {
            self.folded = Ok(self.digest.take_block(format, &mut block, part));
            self.next += 1;
            self.buffers.push(block.recycle());
        }
    }
}

impl<R: Read> Lines<R> {
    /// Reads blocks as long as there are some, and hands them on.
    fn fold(&self, format: &dyn TranscriptFormat, sink: &Mutex<Sink<'_>>) {
        let _awaited = Awaited { turn: &self.turn, sink };
        let mut buffer = Vec::new();
        loop {
            let (block, number) = {
                let mut blocks = locked(&self.blocks);
                let number = blocks.1;
                blocks.1 += 1;
                (blocks.0.next(buffer), number)
            };
            let read = match block {
                // Only the first block can begin with the end of a line that was there before.
                Ok(Some(block)) => {
                    let part = (number > 0).then(|| Part::read(format, &block));
                    Ok((block, part))
                }
                Ok(None) => return,
                Err(error) => Err(error),
            };
            let mut sink = locked(sink);
            match read {
                Ok(read) => drop(sink.waiting.insert(number, read)),
                // What came before it would not be all.
                Err(error) if sink.goes_on() => sink.folded = Err(error),
                Err(_) => {}
            }
            sink.take(format);
            self.turn.notify_all();
            // Whose part is next is none of those that wait.
            let too_many = |sink: &mut Sink<'_>| sink.goes_on() && sink.waiting.len() > self.most;
            let mut sink = self.turn.wait_while(sink, too_many).unwrap_or_else(PoisonError::into_inner);
            if !sink.goes_on() {
                return;
            }
            buffer = sink.buffers.pop().unwrap_or_default();
        }
    }
}

impl Digest {
    /// The same as [`fold`](Self::fold), on so many threads: blocks are read apart from each other, and taken in their order.
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
        let blocks = Mutex::new((Blocks::new(input, self.folded, BLOCK), 0));
        let lines = Lines { blocks, turn: Condvar::new(), most: AHEAD * threads };
        let sink = Mutex::new(Sink {
            digest: self,
            next: 0,
            waiting: BTreeMap::new(),
            buffers: Vec::new(),
            folded: Ok(Folded::Done),
        });
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| lines.fold(format, &sink));
            }
            lines.fold(format, &sink);
        });
        let Sink { digest, folded, .. } = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Ok(Folded::Done) = folded {
            digest.finish();
        }
        folded
    }
}
