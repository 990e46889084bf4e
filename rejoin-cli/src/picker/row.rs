//! A session as a row of the picker.

use std::path::Path;
use std::sync::Arc;

use nucleo_matcher::Utf32String;
use rejoin::history::ListedSession;

use crate::plain;
use crate::target::is_offered;

/// A session, with everything that is drawn of it made ready, so that a frame costs no more than what it shows.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) listed: ListedSession,
    /// Title, first prompt or id, on one line.
    pub(crate) label: String,
    /// The folder that it was last in.
    pub(crate) folder: String,
    /// What is searched.
    pub(crate) haystack: Utf32String,
}

impl Row {
    pub(crate) fn new(listed: ListedSession, home: Option<&Path>) -> Self {
        let entry = &listed.entry;
        let folder = entry.last_cwd.as_deref().or(entry.cwd.as_deref());
        let folder = folder.map(|folder| plain::path(folder, home)).unwrap_or_default();
        let mut label = plain::line(entry.label());
        if let Some(key) = &listed.key {
            label = format!("[{}] {label}", key.mailbox);
        }
        let prompt = entry.first_prompt.as_deref().filter(|_| entry.title.is_some()).unwrap_or_default();
        let branch = entry.branch.as_deref().unwrap_or_default();
        let (agent, id) = (&listed.agent, &entry.id);
        let haystack = plain::line(&format!("{label} {prompt} {branch} {folder} {agent} {id}"));
        Self { label, folder, haystack: haystack.into(), listed }
    }

    /// The rows of those that a person would go on with; not the one that is open now.
    pub(crate) fn of(
        sessions: Vec<ListedSession>,
        current: Option<&str>,
        home: Option<&Path>,
    ) -> Vec<Arc<Self>> {
        let is_current = |listed: &ListedSession| Some(listed.entry.id.as_str()) == current;
        let offered = sessions.into_iter().filter(|listed| is_offered(listed) && !is_current(listed));
        offered.map(|listed| Arc::new(Self::new(listed, home))).collect()
    }

    /// Whether both are the same session, read at two times.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.listed.agent == other.listed.agent
            && self.listed.entry.id == other.listed.entry.id
            && self.listed.entry.source == other.listed.entry.source
    }
}
