//! What the header of a session says.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use session_core::history::{Ancestor, Descent, HistoryBase, LineFacts, LineRole, SessionKind};
use session_core::{NativeId, Usage};

use super::notes::{cut, is_path};

/// The first header of a file. Those that follow were copied with what they stand before, and are another session's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) id: Option<String>,
    pub(crate) kind: SessionKind,
    parent: Option<Ancestor>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) branch: Option<String>,
    pub(crate) base: Option<HistoryBase>,
}

/// What a session had from the file that it goes on from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Inherited {
    /// The session of that file.
    id: Option<String>,
    /// What it had counted till then.
    running: Usage,
}

impl Head {
    /// `None`: the line is no header.
    pub(super) fn of(facts: &LineFacts<'_>, base: Option<HistoryBase>) -> Option<Self> {
        let LineRole::Header { id, parent, kind } = &facts.role else { return None };
        Some(Self {
            id: id.as_deref().map(str::to_owned),
            kind: *kind,
            parent: parent.clone(),
            cwd: facts.cwd.as_deref().filter(|cwd| is_path(cwd)).map(PathBuf::from),
            branch: facts.branch.as_deref().map(|branch| cut(branch).to_owned()),
            base,
        })
    }

    /// Takes what another header of the same session says besides.
    pub(super) fn fill(&mut self, other: Self) {
        // One that names no session is of the file's own.
        if self.id.is_none() || other.id.is_none() || self.id == other.id {
            self.id = self.id.take().or(other.id);
            self.cwd = self.cwd.take().or(other.cwd);
            self.branch = self.branch.take().or(other.branch);
            if self.kind == SessionKind::Main {
                self.kind = other.kind;
            }
        }
    }

    /// The session that a file of this name comes from: the name is its own, so another id is that of an older one.
    pub(crate) fn parent(&self, own: &NativeId) -> Option<Ancestor> {
        let other = self.id.as_deref().filter(|id| *id != own.as_str());
        let descent = if self.kind == SessionKind::Sidechain { Descent::Spawned } else { Descent::Forked };
        let parent = self.parent.clone().filter(|parent| parent.id != *own);
        parent.or_else(|| other.map(|id| Ancestor { id: NativeId::new(id), descent }))
    }
}

impl Inherited {
    pub(super) const fn new(id: Option<String>, running: Usage) -> Self {
        Self { id, running }
    }

    /// What of a running total is the session's own; where it goes on from itself, all.
    pub(super) fn own(&self, own: &NativeId, running: Usage) -> Usage {
        if self.id.as_deref() == Some(own.as_str()) {
            return running;
        }
        let before = self.running;
        Usage {
            input_tokens: running.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: running.output_tokens.saturating_sub(before.output_tokens),
            cache_read_tokens: running.cache_read_tokens.saturating_sub(before.cache_read_tokens),
            cache_write_tokens: running.cache_write_tokens.saturating_sub(before.cache_write_tokens),
        }
    }
}
