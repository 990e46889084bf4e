//! One child from its start to its end: input in, lines out, limits kept, nothing left behind.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::task::Poll;
use std::time::{Duration, Instant};

use session_core::{Cancel, EndedBy, Exit, Limits, RunId};

use crate::launch::Child;
use crate::limits::Clock;
use crate::lines::Piece;
use crate::pipes::{Moved, Pipes};
use crate::tree::{Ending, Guard, Step, Tree};

/// How long a pipe that something still holds open may be silent after the child itself ended. Long enough for a process
/// behind a launcher on a loaded machine.
const DRAIN_SILENCE: Duration = Duration::from_secs(1);
/// How long such a pipe is read at all.
const DRAIN: Duration = Duration::from_secs(3);
/// How long to wait for the end of the pipes once no process of the run is left.
const LAST: Duration = Duration::from_millis(250);

/// A child and what it is to be given.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) run: RunId,
    pub(crate) input: Vec<u8>,
    pub(crate) max_line: usize,
    pub(crate) limits: &'a Limits,
    pub(crate) cancel: &'a Cancel,
}

/// How a child ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit: Exit,
    pub(crate) ended_by: Option<EndedBy>,
    pub(crate) stderr_tail: String,
    pub(crate) leftovers: u32,
}

/// Takes a piece of output, and says whether the agent is done as it says itself.
pub(crate) type Take<'a> = dyn FnMut(Piece<'_>) -> bool + Send + 'a;

#[derive(Debug)]
enum Stage {
    /// The child runs.
    Running,
    /// It ended, and what is in the pipes is read.
    Draining { since: Instant, heard: Instant },
    /// Processes are being ended.
    Ending(Ending, Instant),
    /// None is left; the end of the pipes is awaited.
    Last { until: Instant },
    /// Everything is over.
    Over,
}

#[derive(Debug, Default)]
struct News {
    moved: Moved,
    exit: Option<Exit>,
    cancelled: bool,
    alarm: bool,
    finished: bool,
}

/// Brings the child to its end.
///
/// # Cancel safety
/// Dropping the future kills every process of the run.
pub(crate) async fn pump(mut child: Child, job: Job<'_>, take: &mut Take<'_>) -> Outcome {
    let mut pipes = Pipes::new(&mut child, job.input, job.max_line);
    // Dropped in reverse: first the tree is killed, as long as the handle below keeps the number of its group
    // from being used again.
    let mut handle = child.handle;
    let guard = Guard::new(Tree::of_child(job.run, child.pid, child.is_launcher));
    let mut wait = leader_end(&mut handle);
    let mut cancelled = pin!(job.cancel.cancelled());
    let began = Instant::now();
    let mut course = Course {
        guard,
        clock: Clock::new(job.limits, began),
        limits: job.limits,
        stage: Stage::Running,
        exit: None,
        ended_by: None,
        leftovers: 0,
    };
    let mut armed = course.wake();
    let mut timer = pin!(tokio::time::sleep_until(armed.into()));
    while !matches!(course.stage, Stage::Over) {
        let news = poll_fn(|context| {
            let mut finished = false;
            let moved = pipes.poll(context, &mut |piece| finished |= take(piece));
            let mut news = News { moved, finished, ..News::default() };
            if course.exit.is_none()
                && let Poll::Ready(status) = wait.as_mut().poll(context)
            {
                news.exit = Some(status.map_or(Exit::Unknown, exit_of));
            }
            if course.is_running() && cancelled.as_mut().poll(context).is_ready() {
                news.cancelled = true;
            }
            news.alarm = timer.as_mut().poll(context).is_ready();
            let any = moved.heard || moved.closed || news.exit.is_some() || news.cancelled || news.alarm;
            if any { Poll::Ready(news) } else { Poll::Pending }
        });
        let news = news.await;
        let was_alarm = news.alarm;
        course.follow(&news, &mut pipes);
        // One timer, moved only when it has to be: a limit that lies later than it is looked at when it rings.
        let wake = course.wake();
        if was_alarm || wake < armed {
            armed = wake;
            timer.as_mut().reset(armed.into());
        }
    }
    course.guard.disarm();
    Outcome {
        exit: course.exit.unwrap_or(Exit::Unknown),
        ended_by: course.ended_by,
        stderr_tail: pipes.finish(&mut |piece| {
            take(piece);
        }),
        leftovers: course.leftovers,
    }
}

#[derive(Debug)]
struct Course<'a> {
    guard: Guard,
    clock: Clock<'a>,
    limits: &'a Limits,
    stage: Stage,
    exit: Option<Exit>,
    ended_by: Option<EndedBy>,
    leftovers: u32,
}

impl Course<'_> {
    /// Only what still runs can be cancelled; the rest is bounded without it.
    const fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running)
    }

    /// When to look again if nothing is heard until then.
    fn wake(&self) -> Instant {
        match &self.stage {
            Stage::Running => self.clock.next().0,
            Stage::Draining { since, heard } => (*heard + DRAIN_SILENCE).min(*since + DRAIN),
            Stage::Ending(_, next) => *next,
            Stage::Last { until } => *until,
            Stage::Over => Instant::now(),
        }
    }

    fn follow(&mut self, news: &News, pipes: &mut Pipes) {
        let now = Instant::now();
        if let Some(exit) = news.exit {
            self.exit = Some(exit);
            self.guard.tree.leader_collected();
        }
        if news.moved.heard {
            self.clock.heard(now);
        }
        if news.finished {
            self.clock.finished(now);
        }
        match &mut self.stage {
            Stage::Running if self.exit.is_some() => {
                if pipes.at_end() {
                    self.look_for_leftovers(now);
                } else {
                    self.stage = Stage::Draining { since: now, heard: now };
                }
            }
            Stage::Running => {
                let due = if news.cancelled { Some(EndedBy::Cancel) } else { self.clock.due(now) };
                if let Some(by) = due {
                    match by {
                        EndedBy::Cancel => tracing::debug!("cancelled; the agent is ended"),
                        _ => tracing::warn!(?by, "a time limit is reached; the agent is ended"),
                    }
                    self.ended_by = Some(by);
                    pipes.close_stdin();
                    self.end_all(now);
                }
            }
            Stage::Draining { since, heard } => {
                if news.moved.heard {
                    *heard = now;
                }
                if pipes.at_end() || now >= *heard + DRAIN_SILENCE || now >= *since + DRAIN {
                    self.look_for_leftovers(now);
                }
            }
            Stage::Ending(ending, next) => {
                if now >= *next || news.exit.is_some() || news.moved.closed {
                    match ending.step(&mut self.guard.tree, now) {
                        Step::Wait(until) => *next = until,
                        Step::Gone | Step::GaveUp => {
                            self.leftovers = ending.ended();
                            self.stage = Stage::Last { until: now + LAST };
                        }
                    }
                }
            }
            Stage::Last { .. } | Stage::Over => {}
        }
        if let Stage::Last { until } = self.stage
            && ((pipes.at_end() && self.exit.is_some()) || now >= until)
        {
            self.stage = Stage::Over;
        }
    }

    /// The child ended: is anything left of what it started?
    fn look_for_leftovers(&mut self, now: Instant) {
        if self.guard.tree.is_clear() {
            self.stage = Stage::Over;
            return;
        }
        self.end_all(now);
        if let Stage::Ending(ending, _) = &self.stage {
            tracing::warn!(left = ending.ended(), "the agent left processes behind; they are ended");
        }
    }

    fn end_all(&mut self, now: Instant) {
        let grace = self.limits.grace;
        let ending = Ending::begin(&mut self.guard.tree, grace, now);
        self.stage = Stage::Ending(ending, now);
    }
}

type End<'a> = Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + 'a>>;

/// The end of the child itself. The group's end, which the outer handle would wait for, is not awaited: that
/// would hang on a leftover.
#[cfg(unix)]
fn leader_end(handle: &mut Box<dyn process_wrap::tokio::ChildWrapper>) -> End<'_> {
    handle.inner_mut().wait()
}

#[cfg(not(unix))]
fn leader_end(handle: &mut Box<dyn process_wrap::tokio::ChildWrapper>) -> End<'_> {
    handle.wait()
}

#[cfg(unix)]
fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

#[cfg(not(unix))]
fn exit_of(status: ExitStatus) -> Exit {
    status.code().map_or(Exit::Unknown, Exit::Code)
}
