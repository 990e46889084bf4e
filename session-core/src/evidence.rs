//! What is known of an attempt when its process has ended. Serialisable: a bug report is a fixture.

use serde::{Deserialize, Serialize};

use crate::decide::Activity;
use crate::{AgentEvent, Final, NativeId};

/// How much text of an answer is kept when the agent gives no final text, in bytes.
const PARTIAL_LIMIT: usize = 1 << 20;

/// The fold of an attempt's events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// The last conversation that the agent named in a field that can be trusted for it.
    pub session: Option<NativeId>,
    /// Whether the model was called, or may have been.
    pub model_called: bool,
    /// Whether a tool ran, or may have.
    pub acted: bool,
    /// The last whole block of text, or the pieces of an unfinished one.
    pub partial_text: String,
    /// The agent's own end of the run.
    pub end: Option<Final>,
    /// The last trouble reported: code and words.
    pub trouble: Option<(String, String)>,
    /// The last HTTP status reported.
    pub status: Option<u16>,
    /// Events seen.
    pub events: u64,
    /// Lines that were no event.
    pub noise: u64,
    /// The first such lines, as a failing agent may say there why.
    pub noise_head: String,
    #[serde(skip)]
    in_delta: bool,
}

impl Observation {
    /// Takes one event in.
    pub fn observe(&mut self, event: &AgentEvent<'_>) {
        self.events += 1;
        match *event {
            AgentEvent::Session { id } if self.session.as_ref().is_none_or(|known| known.as_str() != id) => {
                self.session = Some(NativeId::new(id));
            }
            AgentEvent::ModelCalled | AgentEvent::Retrying { .. } => self.model_called = true,
            AgentEvent::Retracted if self.is_silent() => {
                self.session = None;
                self.model_called = false;
            }
            AgentEvent::Text(text) => {
                self.model_called = true;
                self.in_delta = false;
                self.partial_text.clear();
                self.keep(text);
            }
            AgentEvent::TextDelta(text) => {
                self.model_called = true;
                if !self.in_delta {
                    self.in_delta = true;
                    self.partial_text.clear();
                }
                self.keep(text);
            }
            AgentEvent::ToolStarted { .. } | AgentEvent::ToolFinished { .. } => self.acted = true,
            AgentEvent::Trouble { code, status, text } => {
                self.trouble = Some((code.to_owned(), text.to_owned()));
                self.status = status.or(self.status);
            }
            AgentEvent::Finished(end) => {
                self.model_called |= end.usage.output_tokens > 0;
                self.status = end.api_status.or(self.status);
                self.end = Some(end.clone());
            }
            AgentEvent::Noise { line } => {
                self.noise += 1;
                if self.noise_head.len() < 4096 {
                    self.noise_head.push_str(line);
                    self.noise_head.push('\n');
                }
            }
            _ => {}
        }
        if let AgentEvent::Retrying { status, .. } = *event {
            self.status = status.or(self.status);
        }
    }

    /// Whether neither the model, nor a tool, nor trouble was heard.
    const fn is_silent(&self) -> bool {
        !self.acted && self.partial_text.is_empty() && self.trouble.is_none() && self.status.is_none()
    }

    fn keep(&mut self, text: &str) {
        let room = PARTIAL_LIMIT.saturating_sub(self.partial_text.len());
        self.partial_text.push_str(head(text, room));
    }

    /// How far the attempt got.
    #[must_use]
    pub const fn activity(&self) -> Activity {
        if self.acted {
            Activity::Acted
        } else if self.model_called {
            Activity::ModelCalled
        } else {
            Activity::None
        }
    }
}

/// The longest beginning of a text that has at most so many bytes.
pub(crate) fn head(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// The longest end of a text that has at most so many bytes.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    let start = (text.len().saturating_sub(bytes)..=text.len()).find(|start| text.is_char_boundary(*start));
    &text[start.unwrap_or(text.len())..]
}

/// How the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody could tell.
    Unknown,
}

/// Who ended the process, where it did not end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Nothing was heard within the start limit.
    StartLimit,
    /// Nothing was heard within the idle limit.
    IdleLimit,
    /// The total limit was reached.
    TotalLimit,
    /// The caller cancelled.
    Cancel,
    /// It went on after its own final event, past the linger limit. The result stands.
    Linger,
}

/// What was asked of the attempt, as far as a verdict needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// A new session, under this id where the caller chose it.
    Fresh(Option<NativeId>),
    /// To continue this session.
    Resume(NativeId),
    /// To branch off this session.
    Fork(NativeId),
}

/// Everything a verdict is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was asked.
    pub asked: Asked,
    /// The agent's version, where it is known.
    pub version: Option<String>,
    /// How the process ended.
    pub exit: Exit,
    /// Who ended it, where it did not end by itself.
    pub ended_by: Option<EndedBy>,
    /// The end of what it wrote to stderr, bounded.
    pub stderr_tail: String,
    /// The fold of its events.
    pub observation: Observation,
    /// Processes of the run that were still there at its end and were ended.
    #[serde(default)]
    pub leftovers_ended: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(events: &[AgentEvent<'_>]) -> Observation {
        let mut observation = Observation::default();
        events.iter().for_each(|event| observation.observe(event));
        observation
    }

    #[test]
    fn a_start_that_is_taken_back_leaves_nothing_unless_something_was_done() {
        let began = [AgentEvent::Session { id: "a" }, AgentEvent::ModelCalled];
        let taken_back = fold(&[began[0], began[1], AgentEvent::Retracted]);
        assert_eq!((taken_back.session.clone(), taken_back.activity()), (None, Activity::None));
        for deed in [AgentEvent::ToolStarted { id: "t", name: "Bash" }, AgentEvent::Text("hello")] {
            let done = fold(&[began[0], began[1], deed, AgentEvent::Retracted]);
            assert_ne!(done.activity(), Activity::None, "{deed:?}");
            assert!(done.session.is_some());
        }
    }

    #[test]
    fn pieces_of_text_make_a_whole_and_a_whole_takes_their_place() {
        let partial =
            fold(&[AgentEvent::Text("one"), AgentEvent::TextDelta("tw"), AgentEvent::TextDelta("o")]);
        assert_eq!(partial.partial_text, "two");
        // What the model said, it was called for, whether or not an event said so.
        assert_eq!(partial.activity(), Activity::ModelCalled);
        let whole = fold(&[AgentEvent::TextDelta("tw"), AgentEvent::Text("two!")]);
        assert_eq!(whole.partial_text, "two!");
        let long = "ä".repeat(PARTIAL_LIMIT);
        assert_eq!(fold(&[AgentEvent::Text(&long)]).partial_text.len(), PARTIAL_LIMIT);
    }
}
