//! One large file on several threads.

use std::io::{self, Read};
use std::sync::{Condvar, Mutex, PoisonError};

use session_core::TranscriptFormat;

use super::blocks::Blocks;
use super::part::Part;
use super::{Digest, Folded};

/// How much is read at once where threads wait for each other.
const BLOCK: usize = 1 << 20;

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
        let lines =
            Lines { blocks: Mutex::new((Blocks::new(input, self.folded, BLOCK), 0)), turn: Condvar::new() };
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
}
