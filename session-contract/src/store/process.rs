//! Another process, which is killed: the program of the tests once more, with one test of it.
//!
//! That test asserts `a_lease_ends_with_its_process`; a variable tells it that it is the other process, and where the store
//! lies. It writes, takes the lease, says so, and then waits for the end of its input, so that it outlives nobody.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::Subject;
use super::stage::{Needs, Stage, answer, event, holder, key, put, take, take_soon};
use crate::Scratch;

/// Tells a process that it is the other one, and the folder of its scratch.
const FOLDER: &str = "REJOIN_CONTRACT_PROCESS";
/// What it says when everything is done, on a line of its own.
const READY: &str = "the other process is ready";

/// A process that is killed when it is dropped.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Other {
    /// Starts the process, and waits until it has written and holds the lease of `a`.
    fn start(test: &str, scratch: &Scratch) -> Self {
        let program = std::env::current_exe().unwrap_or_else(|error| panic!("no program: {error}"));
        let child = Command::new(program)
            .args([test, "--exact", "--nocapture"])
            .env(FOLDER, scratch.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.unwrap_or_else(|error| panic!("no other process: {error}"));
        let output = child.stdout.take();
        let other = Self(child);
        let lines = output.map(BufReader::new).into_iter().flat_map(BufRead::lines);
        let ready = lines.map_while(Result::ok).any(|line| line == READY);
        assert!(ready, "the other process came to an end before it was ready: is there a test {test}?");
        other
    }
}

/// Plays the other process, where this is it.
fn play(subject: &Subject) -> bool {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return false };
    Subject::runtime().block_on(async {
        let at = subject.stage(Scratch::of_another_process(folder)).await;
        put(&**at.store(), &key("a"), b"of the other process").await;
        answer(at.store().append_audit(&key("a"), &event("of the other process")).await);
        let _lease = at.take_soon(&key("a"), 4711).await;
        // This is the other process talking to the one that started it.
        let mut out = std::io::stdout();
        let said = writeln!(out, "\n{READY}").and_then(|()| out.flush());
        said.unwrap_or_else(|error| panic!("nobody listens: {error}"));
        drop(std::io::stdin().read(&mut [0]));
    });
    true
}

/// Runs a case with another process, where the store claims to reach that far.
fn with_another(subject: &Subject, killed: impl AsyncFnOnce(Stage<'_>, Other)) {
    subject.needing(
        Needs::Handles,
        async |at| {
            let Some(test) = &subject.process else {
                // Nobody said how; that a handle ends is the nearest thing.
                let other = at.another().await;
                drop(take_soon(&*other, &key("a"), 4711, at.patience()).await);
                drop(other);
                drop(at.take_soon(&key("a"), 1).await);
                return;
            };
            let other = Other::start(test, at.scratch());
            killed(at, other).await;
        },
        async |at| {
            // It says that it reaches no further than this process. Here, a lease ends with who held it.
            let (store, key, patience) = (at.store().clone(), key("a"), at.patience());
            let task = tokio::spawn(async move {
                let _lease = take_soon(&*store, &key, 1, patience).await;
                std::future::pending::<()>().await;
            });
            tokio::task::yield_now().await;
            task.abort();
            drop(task.await);
            drop(at.take_soon(&super::stage::key("a"), 2).await);
        },
    );
}

/// Contract 7: a lease ends with its holder, however that ends.
pub(super) fn a_lease_ends_with_its_process(subject: &Subject) {
    if play(subject) {
        return;
    }
    with_another(subject, async |at, other| {
        let names = at.claims(Needs::HolderNames);
        let refused = take(&**at.store(), &key("a"), 1).await;
        let fences = refused.map(|lease| lease.fence());
        assert_eq!(fences, Err(names.then(|| holder(4711))), "while the other process lives");
        drop(other);
        drop(at.take_soon(&key("a"), 1).await);
    });
}

/// Contract 6, as far as a process can be killed: what was acknowledged is there.
pub(super) fn what_a_killed_process_wrote_is_there(subject: &Subject) {
    with_another(subject, async |at, other| {
        drop(other);
        assert_eq!(at.get(&key("a")).await.as_deref(), Some("of the other process"));
        let log = answer(at.store().audit(&key("a"), None).await);
        assert_eq!(
            log.into_iter().map(|entry| entry.event).collect::<Vec<_>>(),
            [event("of the other process")]
        );
        // And nothing of it stands in the way.
        at.put(&key("a"), "of this one").await;
        assert_eq!(at.get(&key("a")).await.as_deref(), Some("of this one"));
    });
}
