//! Where sessions lie, and what a record of them is.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use session_core::{EnvMap, RecordKind, SessionQuery};

use super::is_session_id;
use crate::state::{self, Family, data_dir, database_of};

/// Something that holds sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Store {
    /// A database.
    Database(PathBuf),
    /// The tree of JSON files of 1.1 and before.
    Tree(PathBuf),
}

/// Where a session may lie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Where the version looks, best first.
    pub(crate) here: Vec<Store>,
    /// Whether all sessions of the state dir lie there in one database: what ails that is in the way of a new one.
    pub(crate) is_shared: bool,
    /// A folder where builds of other channels keep databases of their own: nobody can tell which build it is.
    pub(crate) channels_in: Option<PathBuf>,
    /// Databases of the state dir that the version would read if they had the session's name.
    pub(crate) movable: Vec<PathBuf>,
    /// A folder whose other databases would be read, too.
    pub(crate) movable_in: Option<PathBuf>,
    /// Where the version does not look, though another one keeps sessions there.
    pub(crate) elsewhere: Vec<Store>,
    /// A folder of such databases.
    pub(crate) elsewhere_in: Option<PathBuf>,
}

/// Where the session may lie for this version.
pub(crate) fn places(env: &EnvMap, query: &SessionQuery<'_>) -> Places {
    if !is_session_id(query.id.as_str()) {
        return Places::default();
    }
    match query.state_dir {
        Some(state) => in_state_dir(state, query),
        None => at_home(env, query),
    }
}

fn in_state_dir(state: &Path, query: &SessionQuery<'_>) -> Places {
    let data = state.join("opencode");
    let (shared, tree) = (data.join("opencode.db"), Store::Tree(data.join("storage")));
    match Family::of(query.version) {
        Family::PerSession => {
            let own = Store::Database(database_of(state, query.id));
            let (here, elsewhere) =
                if migrates(query) { (vec![own, tree], Vec::new()) } else { (vec![own], vec![tree]) };
            Places {
                here,
                is_shared: false,
                channels_in: None,
                movable: vec![shared],
                movable_in: Some(state.to_owned()),
                elsewhere,
                elsewhere_in: None,
            }
        }
        Family::Shared => Places {
            here: vec![Store::Database(shared), tree],
            is_shared: true,
            channels_in: Some(data),
            elsewhere_in: Some(state.to_owned()),
            ..Places::default()
        },
        Family::Files => Places {
            here: vec![tree],
            elsewhere: vec![Store::Database(shared)],
            elsewhere_in: Some(state.to_owned()),
            ..Places::default()
        },
    }
}

fn at_home(env: &EnvMap, query: &SessionQuery<'_>) -> Places {
    let data = data_dir(env);
    let tree = data.as_ref().map(|data| Store::Tree(data.join("storage")));
    let own = state::at_home(data, env, query.version);
    let (Some(tree), Some(own)) = (tree, own) else { return Places::default() };
    if Family::of(query.version) == Family::Files {
        return Places { here: vec![tree], ..Places::default() };
    }
    let database = Store::Database(own);
    let is_chosen = Family::of(query.version) == Family::PerSession && env.get(state::DATABASE).is_some();
    let channels_in = data_dir(env).filter(|_| !is_chosen);
    match migrates(query) {
        true => Places { here: vec![database, tree], channels_in, ..Places::default() },
        false => Places { here: vec![database], channels_in, elsewhere: vec![tree], ..Places::default() },
    }
}

/// Whether the version reads the tree of JSON files into a database that it makes (1.2.1, 1.15.13; not 1.18.33).
fn migrates(query: &SessionQuery<'_>) -> bool {
    query.version.is_some_and(|version| !version.at_least(1, 18, 33))
}

/// One message, as far as an inspection needs it.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Message {
    pub(crate) role: Option<String>,
    #[serde(rename = "parentID")]
    pub(crate) parent: Option<String>,
    pub(crate) finish: Option<String>,
    pub(crate) time: Option<Times>,
    /// The agent's own summary of what was said before; of a prompt, it is an object.
    pub(crate) summary: Option<Summary>,
}

/// When a message was made, and done.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Times {
    pub(crate) created: Option<serde_json::Number>,
}

/// What stands in the place of a summary.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Summary {
    /// Whether the message is one.
    Is(bool),
    /// What changed in the turn.
    Changes(serde::de::IgnoredAny),
}

impl Message {
    /// Reads one. `None`: it is none. Total over all bytes.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        serde_json::from_slice(data).ok()
    }

    /// What it is in the conversation. `None`: the agent could not tell, either.
    pub(crate) fn kind(&self) -> Option<RecordKind> {
        match self.role.as_deref() {
            Some("user") => Some(RecordKind::Prompt),
            Some("assistant") => Some(RecordKind::Answer),
            _ => None,
        }
    }

    /// Whether it has what 1.18.33 cannot do without; older ones can (1.1.65, 1.2.1, 1.15.13).
    pub(crate) fn is_whole(&self) -> bool {
        self.kind().is_some() && self.time.as_ref().is_some_and(|time| time.created.is_some())
    }

    /// Whether it is a finished summary: nothing before it reaches the model any more.
    pub(crate) fn is_summary(&self) -> bool {
        self.summary == Some(Summary::Is(true)) && self.finish.is_some()
    }
}

/// One part of a message, as far as its words go.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Part {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
    synthetic: Option<bool>,
    ignored: Option<bool>,
}

impl Part {
    /// The words that were said. `None`: none, or not by the user or the model.
    pub(crate) fn words(data: &[u8]) -> Option<String> {
        let part: Self = serde_json::from_slice(data).ok()?;
        let said = part.kind.as_deref() == Some("text")
            && part.synthetic != Some(true)
            && part.ignored != Some(true);
        part.text.filter(|text| said && !text.is_empty())
    }
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
