//! Errors of those who read sessions.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::{AgentError, BoxError, FolderError, StoreError};
use crate::{AgentId, SessionKey};

/// A session file that nobody can look at.
#[derive(Debug, thiserror::Error)]
#[error("cannot look at {}", place(path))]
pub struct CatalogError {
    /// What was looked at; empty: the agent's own place, wherever that is.
    pub path: PathBuf,
    /// Why it failed.
    pub source: BoxError,
}

fn place(path: &Path) -> Cow<'_, str> {
    if path.as_os_str().is_empty() { "the agent's sessions".into() } else { path.to_string_lossy() }
}

impl CatalogError {
    /// This catalog cannot do that.
    pub(crate) fn unsupported(path: Option<&Path>, what: &str) -> Self {
        let source = io::Error::new(io::ErrorKind::Unsupported, format!("it does not {what}"));
        Self { path: path.unwrap_or_else(|| Path::new("")).to_owned(), source: source.into() }
    }
}

/// A conversation that could not be handed over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// Nothing is bound to the key, or nothing that this version can read.
    #[error("{key} has no session to tell of")]
    NoSession {
        /// The key.
        key: SessionKey,
    },
    /// The agent is not registered.
    #[error("no agent {agent} is registered")]
    UnknownAgent {
        /// The agent.
        agent: AgentId,
    },
    /// Nobody can look into the agent's sessions.
    #[error("{agent} has no catalog of its sessions")]
    NoCatalog {
        /// The agent.
        agent: AgentId,
    },
    /// The agent could not be asked for its version.
    #[error("the agent could not be asked")]
    Agent(#[source] AgentError),
    /// The store could not be asked.
    #[error("the store could not be asked")]
    Store(#[source] StoreError),
    /// The session could not be read.
    #[error("the session could not be read")]
    Catalog(#[source] CatalogError),
}

/// A session that could not be listed, found or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The agent is not registered.
    #[error("no agent {agent} is registered")]
    UnknownAgent {
        /// The agent.
        agent: AgentId,
    },
    /// Nobody can look into the agent's sessions.
    #[error("{agent} has no catalog of its sessions")]
    NoCatalog {
        /// The agent.
        agent: AgentId,
    },
    /// The store could not be asked.
    #[error("the store could not be asked")]
    Store(#[source] StoreError),
    /// The session could not be read.
    #[error("the session could not be read")]
    Catalog(#[source] CatalogError),
    /// The agent could not be asked for its version.
    #[error("the agent could not be asked")]
    Agent(#[source] AgentError),
    /// The folder to relocate to cannot be used.
    #[error("the folder cannot be used")]
    Folder(#[source] FolderError),
    /// The record of the session's key changed meanwhile.
    #[error("another runner works on {key}")]
    Busy {
        /// The key.
        key: SessionKey,
    },
}
