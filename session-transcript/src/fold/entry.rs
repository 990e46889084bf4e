//! What a list shows of a session.

use session_core::history::{
    Ancestor, Descent, FileKind, Resumability, SessionEntry, SessionFile, SessionKind, SessionSource, Title,
    TitleSource, Unresumable,
};
use session_core::{NativeId, Timestamp, Usage};

use super::Digest;

impl Digest {
    /// The title that counts: one that was given, else the agent's, else a summary.
    pub(crate) fn title(&self) -> Option<Title> {
        let notes = &self.notes;
        [
            (&notes.given, TitleSource::Given),
            (&notes.made_up, TitleSource::Agent),
            (&notes.summary, TitleSource::Summary),
        ]
        .into_iter()
        .find_map(|(title, source)| {
            let text = title.as_ref().filter(|text| !text.trim().is_empty())?.clone();
            Some(Title { text, source })
        })
    }

    /// What a list shows of it.
    pub(crate) fn entry(&self, file: &SessionFile, source: SessionSource) -> SessionEntry {
        let notes = &self.notes;
        let talk = notes.talk();
        let kind = match file.kind {
            FileKind::Sidechain => SessionKind::Sidechain,
            FileKind::Session => notes.kind(),
        };
        let sidechain = kind == SessionKind::Sidechain && notes.main.lines == 0;
        let turns = if sidechain { self.side_turns } else { self.turns };
        let usage = if sidechain { self.usage_of_sidechains } else { self.running(&file.id) };
        let mut entry = SessionEntry::new(file.id.clone(), source);
        entry.title = self.title();
        entry.first_prompt = talk.first_prompt.clone().or_else(|| talk.first_command.clone());
        entry.last_prompt = notes.last_noted.clone().or_else(|| talk.last_typed.clone());
        let head = notes.head.as_ref();
        entry.cwd = head.and_then(|head| head.cwd.clone()).or_else(|| talk.cwd.clone());
        entry.last_cwd = talk.last_cwd.clone().or_else(|| entry.cwd.clone());
        entry.branch = talk.branch.clone().or_else(|| head?.branch.clone());
        entry.began = notes.began.map(Timestamp::from_millis);
        entry.updated = notes.updated.map(Timestamp::from_millis);
        entry.turns = self.whole.then_some(turns);
        entry.bytes = Some(self.bytes);
        entry.parent = self.parent(&file.id);
        entry.kind = kind;
        entry.resumable = self.resumable(kind);
        entry.usage = self.whole.then_some(usage);
        entry.model.clone_from(&talk.model);
        entry.exact = self.whole;
        entry.skipped_lines = self.skipped;
        entry.torn_tail = self.torn;
        entry
    }

    /// What the agent itself counts, as far as it is the session's own.
    pub(crate) fn running(&self, own: &NativeId) -> Usage {
        match (self.running_total(), &self.inherited) {
            (Some(running), Some(inherited)) => inherited.own(own, running),
            (running, _) => running.unwrap_or(self.usage_new),
        }
    }

    fn parent(&self, own: &NativeId) -> Option<Ancestor> {
        let notes = &self.notes;
        let forked = |id: &String| Ancestor { id: NativeId::new(id.as_str()), descent: Descent::Forked };
        let parent = notes.head.as_ref().and_then(|head| head.parent(own));
        parent.or_else(|| notes.origin.as_ref().map(forked))
    }

    fn resumable(&self, kind: SessionKind) -> Resumability {
        if self.records == 0 && (self.skipped > 0 || self.torn) {
            Resumability::No(Unresumable::Damaged)
        } else if !self.notes.talk().said && self.whole && self.base().is_none() {
            Resumability::No(Unresumable::Empty)
        } else if kind == SessionKind::Sidechain && self.notes.head.is_none() {
            Resumability::No(Unresumable::Sidechain)
        } else {
            Resumability::Yes
        }
    }
}
