//! The three pipes of a child, moved together so that none can block another.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::launch::Child;
use crate::lines::{Lines, Piece};
use crate::tail::Tail;

const STDERR_CHUNK: usize = 16 * 1024;
/// A read of this size means that the child is faster than we are; a larger pipe then saves switches between
/// the two. Not from the start: the system grants each user a limited sum.
const BUSY: usize = 60 * 1024;

/// What a look at the pipes brought.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Moved {
    /// There was output.
    pub(crate) heard: bool,
    /// A pipe came to its end.
    pub(crate) closed: bool,
}

/// The pipes, and what is under way in them.
#[derive(Debug)]
pub(crate) struct Pipes {
    stdin: Option<(ChildStdin, Vec<u8>, usize)>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    lines: Lines,
    tail: Tail,
    chunk: Vec<u8>,
    enlarged: bool,
}

impl Pipes {
    pub(crate) fn new(child: &mut Child, input: Vec<u8>, max_line: usize) -> Self {
        Self {
            stdin: child.handle.stdin().take().map(|pipe| (pipe, input, 0)),
            stdout: child.handle.stdout().take(),
            stderr: child.handle.stderr().take(),
            lines: Lines::new(max_line),
            tail: Tail::default(),
            chunk: vec![0; STDERR_CHUNK],
            enlarged: false,
        }
    }

    /// Whether all that the child can say was read.
    pub(crate) const fn at_end(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Nothing more is written.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Ends the reading: an unfinished line is given out, and the end of stderr handed over.
    pub(crate) fn finish(mut self, each: &mut dyn FnMut(Piece<'_>)) -> String {
        if self.stdout.take().is_some() {
            self.lines.finish(each);
        }
        self.tail.into_text()
    }

    /// Moves what can be moved now.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, each: &mut dyn FnMut(Piece<'_>)) -> Moved {
        let mut moved = Moved::default();
        self.poll_stdin(context);
        self.poll_stdout(context, &mut moved, each);
        self.poll_stderr(context, &mut moved);
        moved
    }

    fn poll_stdin(&mut self, context: &mut Context<'_>) {
        while let Some((pipe, input, at)) = &mut self.stdin {
            match Pin::new(pipe).poll_write(context, &input[*at..]) {
                Poll::Pending => return,
                Poll::Ready(Ok(count)) if count > 0 && *at + count < input.len() => *at += count,
                // Written, or not wanted: an agent may end without reading. Dropping it closes it.
                Poll::Ready(_) => self.stdin = None,
            }
        }
    }

    fn poll_stdout(&mut self, context: &mut Context<'_>, moved: &mut Moved, each: &mut dyn FnMut(Piece<'_>)) {
        let Some(pipe) = &mut self.stdout else { return };
        let mut buffer = ReadBuf::new(self.lines.room());
        let read = Pin::new(&mut *pipe).poll_read(context, &mut buffer);
        let count = buffer.filled().len();
        match read {
            Poll::Pending => {}
            Poll::Ready(Ok(())) if count > 0 => {
                moved.heard = true;
                if count >= BUSY && !self.enlarged {
                    enlarge(pipe);
                    self.enlarged = true;
                }
                self.lines.filled(count, each);
            }
            Poll::Ready(end) => {
                if let Err(error) = end {
                    tracing::debug!(%error, "stdout cannot be read any more");
                }
                moved.closed = true;
                self.stdout = None;
                self.lines.finish(each);
            }
        }
    }

    fn poll_stderr(&mut self, context: &mut Context<'_>, moved: &mut Moved) {
        let Some(pipe) = &mut self.stderr else { return };
        let mut buffer = ReadBuf::new(&mut self.chunk);
        match Pin::new(pipe).poll_read(context, &mut buffer) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                moved.heard = true;
                self.tail.push(buffer.filled());
            }
            Poll::Ready(_) => {
                moved.closed = true;
                self.stderr = None;
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn enlarge(pipe: &ChildStdout) {
    // It stays as it is where the user's sum is used up.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1024 * 1024);
}

#[cfg(not(target_os = "linux"))]
const fn enlarge(_: &ChildStdout) {}
