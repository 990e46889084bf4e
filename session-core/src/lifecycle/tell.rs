//! What is said of a key to others: to people, to a sandbox, and to another agent.

use std::path::Path;

use crate::error::{HandOverError, RequestError, RunError, StoreError};
use crate::{AuditEntry, AuditSeq, Explanation, HandOver, MountPlan, SessionKey, SessionQuery};

use super::Lifecycle;

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
        let agent = &key.agent;
        let registered = self.agents.get(agent);
        let registered = registered.ok_or_else(|| HandOverError::UnknownAgent { agent: agent.clone() })?;
        let catalog =
            registered.catalog().ok_or_else(|| HandOverError::NoCatalog { agent: agent.clone() })?;
        let no_session = || HandOverError::NoSession { key: key.clone() };
        let record = self.record(key).await.map_err(HandOverError::Store)?.ok_or_else(no_session)?;
        let binding = record.binding.ok_or_else(no_session)?;
        let adapter = registered.adapter();
        if !binding.native_id.is_argument_safe() || !adapter.accepts_id(&binding.native_id) {
            return Err(no_session());
        }
        let began_in = binding.folder().path.as_path();
        let installation = match began_in {
            Some(folder) => adapter.detect_in(folder).await,
            None => adapter.detect().await,
        };
        let installation = installation.map_err(HandOverError::Agent)?;
        let state_dir = if self.state_dirs {
            self.store.state_dir(key).await.map_err(HandOverError::Store)?
        } else {
            None
        };
        let query = SessionQuery {
            id: &binding.native_id,
            cwd: began_in.unwrap_or_else(|| Path::new("")),
            state_dir: state_dir.as_deref(),
            version: installation.version.as_ref(),
        };
        let conversation = catalog.last_said(query, bytes).await.map_err(HandOverError::Catalog)?;
        tracing::debug!(%key, messages = conversation.said.len(), left_out = conversation.left_out, "handed over");
        Ok(conversation.hand_over(agent, bytes))
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
