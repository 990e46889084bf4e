//! What is said of a key to others: to people, to a sandbox, and to another agent.

use std::path::{Path, PathBuf};

use crate::error::{HandOverError, RequestError, RunError, StoreError};
use crate::{
    AuditEntry, AuditSeq, Binding, Explanation, HandOver, Installation, MountPlan, SessionCatalog,
    SessionKey, SessionQuery,
};

use super::Lifecycle;

/// A conversation that is to be read.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) catalog: &'a dyn SessionCatalog,
    pub(super) binding: Binding,
    installation: Installation,
    pub(super) state_dir: Option<PathBuf>,
}

impl Subject<'_> {
    /// The question for it.
    pub(super) fn query(&self) -> SessionQuery<'_> {
        SessionQuery {
            id: &self.binding.native_id,
            cwd: self.binding.folder().path.as_path().unwrap_or_else(|| Path::new("")),
            state_dir: self.state_dir.as_deref(),
            version: self.installation.version.as_ref(),
        }
    }
}

impl Lifecycle {
    /// Why the last run of a key went as it did, and what is bound now. Nothing is run.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not be asked.
    pub async fn explain(&self, key: &SessionKey) -> Result<Explanation, StoreError> {
        let (record, audit) = (self.record(key).await?, self.audit(key, None).await?);
        Ok(Explanation::of(key.clone(), record, audit))
    }

    /// What a sandbox around the runs of a key in this folder has to show: the mounts, and the environment. The key's state
    /// dir is made, where the store has one. Nothing is run but the agent's version probe.
    ///
    /// # Errors
    /// [`RunError`]: the agent is not registered or has no plan, the folder cannot be used, or would show what is of
    /// others, or the store has no state dir for the key.
    ///
    /// # Cancel safety
    /// A dropped future may leave an empty state dir.
    pub async fn mount_plan(&self, key: &SessionKey, cwd: &Path) -> Result<MountPlan, RunError> {
        let agent = self.registered(&key.agent).map_err(RunError::Request)?;
        let folder = self.host.folder(cwd).await;
        folder.map_err(|error| RunError::Request(RequestError::Folder(error)))?;
        let state_dir =
            if self.state_dirs { self.store.state_dir(key).await.map_err(RunError::Store)? } else { None };
        agent.adapter().mount_plan(cwd, state_dir.as_deref()).await.map_err(RunError::Agent)
    }

    /// The last of what was said in a key's conversation, as a text for another agent: at most about `bytes` of what was
    /// said, newest kept, with a word on what it leaves out. Nothing is run but the agent's version probe.
    ///
    /// # Errors
    /// [`HandOverError`]: nothing is bound to the key, or it cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn hand_over(&self, key: &SessionKey, bytes: usize) -> Result<HandOver, HandOverError> {
        let subject = self.subject(key).await?;
        let conversation =
            subject.catalog.last_said(subject.query(), bytes).await.map_err(HandOverError::Catalog)?;
        tracing::debug!(%key, messages = conversation.said.len(), left_out = conversation.left_out, "handed over");
        Ok(conversation.hand_over(&key.agent, bytes))
    }

    /// The conversation in force for a key, and who can look at it.
    pub(super) async fn subject(&self, key: &SessionKey) -> Result<Subject<'_>, HandOverError> {
        let agent = &key.agent;
        let registered = self.agents.get(agent);
        let agent = registered.ok_or_else(|| HandOverError::UnknownAgent { agent: agent.clone() })?;
        let catalog = agent.catalog().ok_or_else(|| HandOverError::NoCatalog { agent: key.agent.clone() })?;
        let no_session = || HandOverError::NoSession { key: key.clone() };
        let record = self.record(key).await.map_err(HandOverError::Store)?.ok_or_else(no_session)?;
        let binding = record.binding.ok_or_else(no_session)?;
        let adapter = agent.adapter();
        if !binding.native_id.is_argument_safe() || !adapter.accepts_id(&binding.native_id) {
            return Err(no_session());
        }
        let installation = match binding.folder().path.as_path() {
            Some(folder) => adapter.detect_in(folder).await,
            None => adapter.detect().await,
        };
        let installation = installation.map_err(HandOverError::Agent)?;
        let state_dir = if self.state_dirs {
            self.store.state_dir(key).await.map_err(HandOverError::Store)?
        } else {
            None
        };
        Ok(Subject { catalog, binding, installation, state_dir })
    }

    /// Reads the audit log of a key, oldest first, after the given number.
    ///
    /// # Errors
    /// [`StoreError`] when the store could not be asked.
    pub async fn audit(
        &self,
        key: &SessionKey,
        after: Option<AuditSeq>,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        self.store.audit(key, after).await
    }
}
