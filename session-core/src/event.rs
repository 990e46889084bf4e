//! What an agent says while it runs, in one vocabulary for all agents.

use serde::{Deserialize, Serialize};

use crate::decide::{Attempt, Why};
use crate::{Holder, Usage};

/// One thing that happened in a run. Borrowed: copy what you keep.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// An attempt begins.
    Started {
        /// Which one.
        attempt: Attempt,
    },
    /// The agent named its conversation in a field that can be trusted for it.
    Session {
        /// The native id.
        id: &'a str,
    },
    /// The model is called, or may be from now on.
    ModelCalled,
    /// The attempt turned out to have failed before it began: what [`Session`](Self::Session) and
    /// [`ModelCalled`](Self::ModelCalled) said of it does not hold. Without effect once the model or a tool was heard.
    Retracted,
    /// A whole block of text from the model.
    Text(&'a str),
    /// A piece of text from the model; the whole block follows as [`Text`](Self::Text).
    TextDelta(&'a str),
    /// A tool is about to run.
    ToolStarted {
        /// The call's id.
        id: &'a str,
        /// The tool's name.
        name: &'a str,
    },
    /// A tool ended.
    ToolFinished {
        /// The call's id.
        id: &'a str,
        /// Whether it failed.
        is_error: bool,
    },
    /// The agent tries a model call again.
    Retrying {
        /// The agent's count of attempts.
        attempt: u64,
        /// The HTTP status that made it try again.
        status: Option<u16>,
    },
    /// The agent reports trouble that is not yet the end of the run.
    Trouble {
        /// The agent's code for it, such as `authentication_failed`.
        code: &'a str,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// The agent's words.
        text: &'a str,
    },
    /// The agent's own end of the run.
    Finished(&'a Final),
    /// An event of a kind that has no meaning here; the kind is passed on.
    Other {
        /// The agent's name for the kind.
        kind: &'a str,
    },
    /// A line of output that is no event.
    Noise {
        /// The line, with bytes that are not UTF-8 replaced, and cut where it is long.
        line: &'a str,
    },
    /// The resume could not be had; one fresh attempt follows.
    FellBack {
        /// The reason.
        why: Why,
    },
    /// Another runner works on the key; the run waits for it, as long as [`Limits::lease`](crate::Limits::lease) says. Told
    /// once.
    Queued {
        /// Who works on it, where the store can tell.
        by: Option<&'a Holder>,
    },
    /// Another process uses the session; the resume is tried again after a while.
    Waiting {
        /// The reason.
        why: Why,
    },
}

/// The agent's own end of the run, as it reports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Final {
    /// The agent's name for the outcome, such as `success` or `error_max_turns`.
    pub kind: String,
    /// Whether the agent calls it an error.
    pub is_error: bool,
    /// The answer.
    pub text: String,
    /// The agent's error texts.
    pub errors: Vec<String>,
    /// The HTTP status of a failed model call.
    pub api_status: Option<u16>,
    /// The agent's count of turns, where it gives one.
    pub turns: Option<u64>,
    /// Tokens; what they count is a capability of the version.
    pub usage: Usage,
    /// The agent's cost figure, in US dollars; what it counts is a capability of the version.
    pub cost_usd: Option<f64>,
}

/// Receives the events of a run, in order.
///
/// Called from the task that runs the agent: return quickly, or hand the event on through a channel.
pub trait EventSink: Send {
    /// Takes one event.
    fn event(&mut self, event: &AgentEvent<'_>);
}

/// A sink that drops everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl EventSink for NoSink {
    fn event(&mut self, _: &AgentEvent<'_>) {}
}

impl<F: FnMut(&AgentEvent<'_>) + Send> EventSink for F {
    fn event(&mut self, event: &AgentEvent<'_>) {
        self(event);
    }
}
