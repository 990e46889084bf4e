//! A store of your own: a compare-and-swap map of opaque documents, an audit log, and a lease per key.
//!
//! This one keeps its documents as rows of one map behind a lock, as a runtime might keep them in the database it
//! has anyway; the lease is the store's too. It never parses a document.
//!
//! ```text
//! cargo run --example custom_store
//! ```

#![expect(clippy::print_stdout, reason = "printing is what the example is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::{
    Disposed, Document, Guard, Holder, Lease, LeaseOutcome, Leftover, LeftoverOptions, ListOptions, Page,
    Program, Removed, Revision, Saved, StateSize, StoreCapabilities, Stored, Tombstone, async_trait,
};
use rejoin::error::StoreError;
use rejoin::process::Environment;
use rejoin::{AuditEntry, AuditEvent, AuditSeq, LlmRequest, SessionKey, SessionRef, SessionStore, Sessions};
use rejoin_test_support::{ScriptedAgent, fake_agent};

/// One row a key. A removed document leaves its row, so that a revision is never used twice.
#[derive(Debug, Default)]
struct Row {
    document: Option<Document>,
    revision: u64,
    log: Vec<AuditEntry>,
    holder: Option<Holder>,
    grants: u64,
}

#[derive(Debug, Clone, Default)]
struct Rows(Arc<Mutex<BTreeMap<SessionKey, Row>>>);

impl Rows {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    fn current(&self) -> Option<Revision> {
        self.document.as_ref().map(|_| Revision::new(self.revision.to_string()))
    }
}

/// Ends the lease when it is dropped.
struct Grant(Rows, SessionKey);

impl Drop for Grant {
    fn drop(&mut self) {
        self.0.lock().entry(self.1.clone()).or_default().holder = None;
    }
}

#[async_trait]
impl SessionStore for Rows {
    fn capabilities(&self) -> StoreCapabilities {
        // Say what is true: the orchestration and the contract suite hold you to it.
        StoreCapabilities::VOLATILE
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>, StoreError> {
        Ok(self
            .lock()
            .get(key)
            .and_then(|row| Some(Stored { document: row.document.clone()?, revision: row.current()? })))
    }

    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved, StoreError> {
        let mut rows = self.lock();
        let row = rows.entry(key.clone()).or_default();
        // Who lost the lease writes nothing over its successor.
        if lease.is_some_and(|lease| lease.fence() < row.grants) {
            return Ok(Saved::Fenced { latest: row.grants });
        }
        if !guard.admits(row.current().as_ref()) {
            return Ok(Saved::Refused { current: row.current() });
        }
        row.revision += 1;
        row.document = Some(document.clone());
        Ok(Saved::Done(Revision::new(row.revision.to_string())))
    }

    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed, StoreError> {
        let mut rows = self.lock();
        let row = rows.entry(key.clone()).or_default();
        let Some(current) = row.current() else { return Ok(Removed::NothingThere) };
        if !guard.admits(Some(&current)) {
            return Ok(Removed::Refused { current });
        }
        row.document = None;
        Ok(Removed::Done)
    }

    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>, StoreError> {
        let mut rows = self.lock();
        let row = rows.entry(key.clone()).or_default();
        if !guard.admits(row.current().as_ref()) {
            return Ok(None);
        }
        let taken = row.document.take();
        // A real store keeps the bytes for a person to look at.
        Ok(taken.map(|document| format!("{} unreadable bytes", document.as_bytes().len())))
    }

    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>, StoreError> {
        let rows = self.lock();
        let mut keys = rows
            .iter()
            .filter(|(key, row)| {
                row.document.is_some() && options.after.as_ref().is_none_or(|after| *key > after)
            })
            .map(|(key, _)| key.clone());
        let items = keys.by_ref().take(options.limit.unwrap_or(usize::MAX)).collect();
        Ok(Page { items, more: keys.next().is_some() })
    }

    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq, StoreError> {
        let mut rows = self.lock();
        let log = &mut rows.entry(key.clone()).or_default().log;
        let seq = AuditSeq(log.len() as u64 + 1);
        log.push(AuditEntry { seq, event: event.clone() });
        Ok(seq)
    }

    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = self.lock();
        let log = rows.get(key).map(|row| row.log.as_slice()).unwrap_or_default();
        Ok(log.iter().filter(|entry| Some(entry.seq) > after).cloned().collect())
    }

    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome, StoreError> {
        let mut rows = self.lock();
        let row = rows.entry(key.clone()).or_default();
        if let Some(by) = &row.holder {
            return Ok(LeaseOutcome::Busy { by: Some(by.clone()) });
        }
        row.holder = Some(holder.clone());
        row.grants += 1;
        Ok(LeaseOutcome::Held(Lease::new(row.grants, Grant(self.clone(), key.clone()))))
    }

    async fn state_dir(&self, _: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        // No place for session files: the agent keeps them at its own place.
        Ok(None)
    }

    async fn remove_state(&self, _: &SessionKey, _: &Lease) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn state_size(&self, _: &SessionKey) -> Result<Option<StateSize>, StoreError> {
        Ok(None)
    }

    async fn leftovers(&self, _: &LeftoverOptions) -> Result<Vec<Leftover>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove_leftover(&self, _: &Leftover, _: &Tombstone) -> Result<Disposed, StoreError> {
        Ok(Disposed::NothingThere)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    // The scripted agent is this program once more.
    if let Some(code) = fake_agent::become_agent_if_asked() {
        return Ok(code);
    }
    let folder = tempfile::tempdir()?;
    let scripted = ScriptedAgent::claude(folder.path(), "Prompt {{turns}} of this conversation.")?;
    let program =
        scripted.leading_args.iter().fold(Program::new(&scripted.program), |p, arg| p.leading_arg(arg));
    let agent = claude()
        .options(ClaudeOptions::default().program(program))
        .environment(Environment::bare().pass(&["PATH"]).set("HOME", folder.path()));

    let store = Rows::default();
    let sessions = Sessions::builder(store.clone()).agent(agent).build();
    for prompt in ["Make a plan", "Go on with the plan"] {
        let request = LlmRequest::new(prompt)
            .cwd(std::env::current_dir()?)
            .session(SessionRef::new("issue-7", "claude").named("agent/issue-7"));
        let result = sessions.run(request).await?;
        println!("{:<10} {}", result.route.code(), result.text);
    }
    for key in store.list(&ListOptions::default()).await?.items {
        println!("stored     {key}, {} audit events", store.audit(&key, None).await?.len());
    }
    Ok(ExitCode::SUCCESS)
}
