//! What the fake model was asked.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::AtomicU16;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

/// One request as the fake model understood it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelRequest {
    /// The HTTP method.
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// Whether the model was asked to answer. Counting tokens and probing the server are no such requests.
    pub model_call: bool,
    /// The model asked for.
    pub model: Option<String>,
    /// Whether the answer is wanted as a stream.
    pub stream: bool,
    /// What the user wrote, one text per message, without the context that the agent adds.
    pub user_texts: Vec<String>,
    /// Whether the model is asked to go on after the result of a tool.
    pub last_is_tool_result: bool,
    /// What the agent says to the model before everything else, as it stands in the request.
    pub system: String,
    /// How many tools the agent offers. Side requests, such as those for a title, offer none.
    pub tools: usize,
    /// The whole of it as JSON: what the model saw, in whatever place. Not in the log file.
    #[serde(skip)]
    pub body: String,
}

impl ModelRequest {
    /// Whether this is a turn of the conversation, and no side request such as one for a title.
    #[must_use]
    pub const fn is_turn(&self) -> bool {
        self.model_call && self.tools > 0
    }
}

/// What the server and its owner share.
#[derive(Debug)]
pub(super) struct Shared {
    requests: Mutex<Vec<ModelRequest>>,
    pub(super) calls: watch::Sender<usize>,
    pub(super) released: watch::Sender<BTreeSet<String>>,
    /// The status with which every call is refused for now; 0 is none.
    pub(super) refusal: AtomicU16,
    /// The prompts that were refused once.
    refused: Mutex<HashSet<String>>,
    file: Option<Mutex<File>>,
}

/// A panic in one request says nothing about the list itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(file: Option<File>) -> Self {
        Self {
            requests: Mutex::default(),
            calls: watch::Sender::default(),
            released: watch::Sender::default(),
            refusal: AtomicU16::new(0),
            refused: Mutex::default(),
            file: file.map(Mutex::new),
        }
    }

    pub(super) fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.requests).clone()
    }

    pub(super) fn note(&self, request: ModelRequest) {
        if let Some(file) = &self.file {
            let mut line = serde_json::to_vec(&request).expect("strings and flags always serialize");
            line.push(b'\n');
            // The list in memory is what counts.
            let _ = lock(file).write_all(&line);
        }
        let counts = request.model_call;
        // The list first: whoever is woken by the count looks at it.
        lock(&self.requests).push(request);
        if counts {
            self.calls.send_modify(|calls| *calls += 1);
        }
    }

    /// Whether this prompt is refused for the first time.
    pub(super) fn refuses_first(&self, prompt: &str) -> bool {
        lock(&self.refused).insert(prompt.to_owned())
    }

    pub(super) fn clear(&self) {
        lock(&self.requests).clear();
        lock(&self.refused).clear();
        self.calls.send_replace(0);
        self.released.send_modify(BTreeSet::clear);
    }
}
