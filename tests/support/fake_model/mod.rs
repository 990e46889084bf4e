//! A model server on the loopback interface, for real agent CLIs that must run offline.
//!
//! It speaks Anthropic's Messages (`POST /v1/messages`), OpenAI's Responses (`POST /v1/responses`) and OpenAI's Chat
//! Completions (`POST /v1/chat/completions`), each plain or streamed, and knows `/v1/messages/count_tokens` and
//! `GET /v1/models`; what else is posted gets an empty object. Give an agent [`FakeModel::url`], with `/v1` at its end
//! where it wants that. It is started by a test, or as the program `fake-model [--port N] [--log FILE]`.
//!
//! The answer is a [`ContextReply`](crate::ContextReply) over the texts of the user, unless the last of them
//! asks for something else. Only a turn does so: side requests, which offer no tools, are always answered.
//!
//! | directive | effect |
//! |---|---|
//! | `[[tool NAME {"a": 1}]]` | uses the tool once; its result is answered with text |
//! | `[[status 529]]`, `[[status 529 once]]` | refuses every request with this prompt, or the first one |
//! | `[[delay 2000]]` | waits so many milliseconds first, at most 60 s |
//! | `[[hold NAME]]` | waits for [`FakeModel::release`], at most 60 s |
//! | `[[say TEXT]]` | answers with this text |
//! | `[[drop]]` | breaks the connection after the start of a stream; a plain answer is complete |
//! | `[[cut]]` | ends a stream in order after its start, without the rest; a plain answer is complete |
//! | `[[usage 1 2 3 4]]` | reports this input, output, cache writing and cache reading |
//!
//! Without a directive an answer reports 100 tokens of fresh input, 20 of output and 3 read from the cache, in
//! Messages also 7 written to it. OpenAI's formats count those of the cache into the input, so they say 103.
//!
//! The server has a thread of its own, so a test may block while an agent talks to it.

mod answer;
mod anthropic;
mod chat;
mod conversation;
mod directives;
mod log;
mod responses;
mod server;
mod stream;
mod wire;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

pub use log::ModelRequest;
use log::Shared;

/// How a [`FakeModel`] is started.
#[derive(Debug, Default, Clone)]
pub struct FakeModelOptions {
    /// The port on the loopback interface; 0 is any free one.
    pub port: u16,
    /// A file to which every request is appended as one JSON line.
    pub log: Option<PathBuf>,
}

/// A running model server, which stops when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeModel {
    /// Starts a server on a free port. It never waits, so it is for asynchronous and blocking tests alike.
    ///
    /// # Panics
    ///
    /// When the machine has no free port on its loopback interface.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&FakeModelOptions::default()).expect("a free loopback port can be bound")
    }

    /// Starts a server.
    ///
    /// # Errors
    ///
    /// When the port is taken, the log cannot be opened, or there are no more threads.
    pub fn start_with(options: &FakeModelOptions) -> io::Result<Self> {
        let file = options.log.as_ref().map(|path| OpenOptions::new().create(true).append(true).open(path));
        let shared = Arc::new(Shared::new(file.transpose()?));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let for_server = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("fake-model".to_owned())
            .spawn(move || run(&runtime, listener, for_server, stopped))?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The base URL, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.requests()
    }

    /// How often the model was asked to answer.
    #[must_use]
    pub fn model_calls(&self) -> usize {
        *self.shared.calls.borrow()
    }

    /// Forgets all requests, releases and first refusals. Answers that are held stay held.
    pub fn clear(&self) {
        self.shared.clear();
    }

    /// Lets the answers go that `[[hold name]]` holds, and all later ones of this name.
    pub fn release(&self, name: &str) {
        self.shared.released.send_modify(|names: &mut BTreeSet<String>| {
            names.insert(name.to_owned());
        });
    }

    /// Refuses every call with this HTTP status from here on, or no longer. Unlike the directive, this does not
    /// stay in the conversation.
    pub fn refuse(&self, status: Option<u16>) {
        self.shared.refusal.store(status.unwrap_or(0), Ordering::SeqCst);
    }

    /// Waits until the model was asked so often. The request that completes the count may still be
    /// unanswered, which is the moment to do something during a call.
    ///
    /// # Errors
    ///
    /// When it takes longer than this.
    pub async fn wait_for_calls(&self, calls: usize, patience: Duration) -> Result<(), TooFewCalls> {
        let mut count = self.shared.calls.subscribe();
        let waited = tokio::time::timeout(patience, count.wait_for(|seen| *seen >= calls)).await;
        match waited {
            Ok(Ok(_)) => Ok(()),
            _ => Err(TooFewCalls { wanted: calls, seen: self.model_calls() }),
        }
    }

    /// [`wait_for_calls`](Self::wait_for_calls) for tests without a runtime.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// When it is called inside a runtime.
    pub fn wait_for_calls_blocking(&self, calls: usize, patience: Duration) -> Result<(), TooFewCalls> {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime
            .expect("a runtime without input and output needs nothing")
            .block_on(async { self.wait_for_calls(calls, patience).await })
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server was printed by its thread.
            let _ = thread.join();
        }
    }
}

/// Runs the server until its owner is dropped; open connections end with the runtime.
fn run(runtime: &Runtime, listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the listener does not block");
        tokio::select! {
            served = server::serve(listener, shared) => served.expect("the server only ends when dropped"),
            _ = stopped => {}
        }
    });
}

/// The model was asked less often than a test waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooFewCalls {
    /// How many calls were waited for.
    pub wanted: usize,
    /// How many there were in the end.
    pub seen: usize,
}

impl fmt::Display for TooFewCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the model was called {} times, not {}", self.seen, self.wanted)
    }
}

impl std::error::Error for TooFewCalls {}
