//! What no record leads to: listing it, and removing what is proved to be ours.
//!
//! Proved means: it bears a name that the store gives, in the place where it gives it; it is what the store makes there, a
//! folder or a file and no link; it belongs to our user; and it is reached from the base through no link. All else is only
//! told of.

mod removal;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use session_core::error::{StoreError, StoreErrorKind};
use session_core::{Leftover, LeftoverKind, LeftoverOptions, ListOptions, SessionKey, StateSize, Timestamp};

use crate::disk::{Disk, Kind};
use crate::error::{At, Finding};
use crate::layout::{self, Layout};
use crate::records::Records;
use crate::tree::{self, Dir, Entry};
use crate::{atomic, names, state, usage};

const LIST: &str = "leftovers";
const LOG_SUFFIX: &str = ".jsonl";

/// Where to look, and for whom.
pub(crate) struct Sweeper<'a> {
    pub(crate) base: &'a Path,
    pub(crate) records: &'a Records,
}

/// What a listing needs to know.
struct Survey {
    /// The names of live mailboxes; `None`: all.
    live: Option<BTreeSet<String>>,
    /// The names of keys in whose place something stands.
    taken: BTreeSet<String>,
    found: Vec<Leftover>,
}

impl Survey {
    fn add(&mut self, kind: LeftoverKind, name: String, entry: &Entry) -> &mut Leftover {
        let mut leftover = Leftover::new(kind, name);
        if kind.is_removable() {
            leftover.last_used = Some(entry.changed_at);
            leftover.size = StateSize::new(entry.bytes, Some(entry.changed_at));
        }
        let last = self.found.len();
        self.found.push(leftover);
        &mut self.found[last]
    }

    fn is_live(&self, mailbox: &str) -> bool {
        self.live.as_ref().is_none_or(|live| live.contains(mailbox))
    }
}

impl Sweeper<'_> {
    fn disk(&self) -> &dyn Disk {
        &*self.records.disk
    }

    const fn layout(&self) -> &Layout {
        &self.records.layout
    }

    /// How much a key's state dir takes.
    pub(crate) fn size(&self, key: &SessionKey) -> Result<Option<StateSize>, StoreError> {
        let (mailbox, agent) = (layout::mailbox_segment(key), layout::agent_segment(key));
        let path = self.layout().states().join(&mailbox).join(&agent);
        let at = At::new("state_size", &path);
        let names = [layout::ROOT, layout::STATE, &mailbox, &agent];
        if let Some(dir) = tree::below(self.base, &names).map_err(|error| at.io(error))? {
            return usage::measure(dir).map(Some).map_err(|error| at.io(error));
        }
        // Nothing, or something else at one of the two levels.
        for level in [path.parent().unwrap_or(&path), &path] {
            match self.disk().look(level) {
                Ok(meta) if meta.kind != Kind::Folder => {
                    let finding = Finding::NotADirectory(meta.kind.describe());
                    return Err(At::new("state_size", level).error(StoreErrorKind::Other, finding));
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok(None)
    }

    pub(crate) fn list(&self, options: &LeftoverOptions) -> Result<Vec<Leftover>, StoreError> {
        let live = options.live.mailboxes().map(|mailboxes| mailboxes.map(layout::name_of).collect());
        let mut survey = Survey { live, taken: BTreeSet::new(), found: Vec::new() };
        self.list_records(&mut survey)?;
        self.list_states(&mut survey)?;
        if options.aside {
            self.each(layout::QUARANTINE, |_, name, entry, path| {
                let is_one = entry.is_ours && name.is_some_and(is_aside);
                let kind = if is_one { LeftoverKind::Aside } else { LeftoverKind::Foreign };
                let leftover = survey.add(kind, path, entry);
                leftover.last_used = leftover.last_used.map(|_| set_aside_at(entry));
            })?;
        }
        if options.logs {
            self.list_logs(&mut survey)?;
        }
        Ok(survey.found)
    }

    /// Calls with each entry of a folder of the store: its name, where that is Unicode, and its path below the store.
    fn each(
        &self,
        folder: &str,
        mut call: impl FnMut(&Dir, Option<&str>, &Entry, String),
    ) -> Result<(), StoreError> {
        let path = self.layout().root().join(folder);
        let at = At::new(LIST, &path);
        let names: Vec<&str> = [layout::ROOT, folder].into_iter().filter(|name| !name.is_empty()).collect();
        let dir =
            tree::below(self.base, &names).map_err(|error| at.io(error))?.ok_or_else(|| at.gone(&path))?;
        for name in dir.names().map_err(|error| at.io(error))? {
            let name = name.map_err(|error| at.io(error))?;
            let Some(entry) = dir.look(&name).map_err(|error| at.io(error))? else { continue };
            let shown = name.to_string_lossy();
            let place = if folder.is_empty() { shown.into_owned() } else { format!("{folder}/{shown}") };
            call(&dir, name.to_str(), &entry, place);
        }
        Ok(())
    }

    fn list_records(&self, survey: &mut Survey) -> Result<(), StoreError> {
        let readable = self.records.list(&ListOptions::default())?.items;
        let readable: BTreeSet<String> = readable.iter().map(layout::key_segment).collect();
        self.each(layout::RECORDS, |_, name, entry, path| {
            let key = name.and_then(|name| name.strip_suffix(layout::RECORD_SUFFIX));
            match key.filter(|key| names::halves(key).is_some()) {
                Some(key) => {
                    survey.taken.insert(key.to_owned());
                    if !readable.contains(key) {
                        survey.add(LeftoverKind::Unreadable, path, entry);
                    }
                }
                None => note_temporary(survey, name, entry, path),
            }
        })?;
        // The files of the store itself are written in its root.
        self.each("", |_, name, entry, path| {
            if name.is_some_and(atomic::is_temporary) {
                note_temporary(survey, name, entry, path);
            }
        })
    }

    fn list_states(&self, survey: &mut Survey) -> Result<(), StoreError> {
        self.each(layout::STATE, |states, name, entry, path| {
            let own = name.filter(|_| entry.is_ours);
            match own {
                Some(name) if state::is_gone(name) => {
                    let size = measured(states, name);
                    survey.add(LeftoverKind::Removal, path, entry).size = size.unwrap_or_default();
                }
                Some(mailbox) if entry.is_dir && names::is_mailbox(mailbox) => {
                    match states.enter(mailbox.as_ref()) {
                        Ok(Some(dir)) => list_mailbox(survey, &dir, (mailbox, entry), &path),
                        Ok(None) => {}
                        // Closed to us, and with it all that is in it.
                        Err(_) => drop(survey.add(LeftoverKind::Unreadable, path, entry)),
                    }
                }
                _ => drop(survey.add(LeftoverKind::Foreign, path, entry)),
            }
        })
    }

    fn list_logs(&self, survey: &mut Survey) -> Result<(), StoreError> {
        self.each(layout::AUDIT, |_, name, entry, path| {
            let key = name.filter(|_| entry.is_file && entry.is_ours);
            let key = key.and_then(|name| name.strip_suffix(LOG_SUFFIX));
            let Some((key, (mailbox, _))) = key.and_then(|key| Some((key, names::halves(key)?))) else {
                survey.add(LeftoverKind::Foreign, path, entry);
                return;
            };
            if survey.taken.contains(key) || self.has_state(key) {
                return;
            }
            let live = survey.is_live(mailbox);
            let leftover = survey.add(LeftoverKind::Log, path, entry);
            (leftover.live, leftover.key) = (live, layout::key_of(key));
        })
    }

    /// Whether anything stands in the place of a state dir.
    fn has_state(&self, key: &str) -> bool {
        let path = |(mailbox, agent)| self.layout().states().join(mailbox).join(agent);
        let Some(path) = names::halves(key).map(path) else { return false };
        // What cannot be looked at is not called missing.
        !matches!(tree::look(&path), Ok(None))
    }
}

fn list_mailbox(survey: &mut Survey, dir: &Dir, (mailbox, entry): (&str, &Entry), path: &str) {
    let live = survey.is_live(mailbox);
    let Ok(names) = dir.names() else {
        survey.add(LeftoverKind::Unreadable, path.to_owned(), entry);
        return;
    };
    let mut empty = true;
    for name in names.flatten() {
        empty = false;
        let path = format!("{path}/{}", name.to_string_lossy());
        let Ok(Some(inner)) = dir.look(&name) else { continue };
        let agent = name.to_str().filter(|name| inner.is_dir && inner.is_ours && names::is_agent(name));
        let Some(agent) = agent else {
            survey.add(LeftoverKind::Foreign, path, &inner);
            continue;
        };
        let key = format!("{mailbox}@{agent}");
        if survey.taken.contains(&key) {
            continue;
        }
        let Some(size) = measured(dir, agent) else { continue };
        if size.changed_at.is_none() {
            survey.add(LeftoverKind::Unreadable, path, &inner);
            continue;
        }
        let leftover = survey.add(LeftoverKind::State, path, &inner);
        (leftover.size, leftover.last_used) = (size, size.changed_at);
        (leftover.live, leftover.key) = (live, layout::key_of(&key));
    }
    if empty {
        survey.add(LeftoverKind::Folder, path.to_owned(), entry).live = live;
    }
}

/// How much a folder takes, or what stands in its place. Where looking into it failed, it has no age.
fn measured(above: &Dir, name: &str) -> Option<StateSize> {
    let entry = above.look(name.as_ref()).ok()??;
    let alone = StateSize::new(entry.bytes, Some(entry.changed_at));
    let unknown = StateSize::new(entry.bytes, None).at_least();
    match above.enter(name.as_ref()) {
        Ok(Some(dir)) => Some(usage::measure(dir).unwrap_or(unknown)),
        Ok(None) => Some(alone),
        // Closed to us.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(alone.at_least()),
        Err(_) => Some(unknown),
    }
}

fn note_temporary(survey: &mut Survey, name: Option<&str>, entry: &Entry, path: String) {
    if !name.is_some_and(atomic::is_temporary) || !entry.is_file || !entry.is_ours {
        survey.add(LeftoverKind::Foreign, path, entry);
    } else if is_stale(entry) {
        survey.add(LeftoverKind::Temporary, path, entry);
    }
}

/// Whether nobody writes a temporary file any more.
fn is_stale(entry: &Entry) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH.plus(now).since(entry.changed_at) > atomic::STALE
}

/// When something was set aside, at the earliest: it keeps the time of its last write, which may be long before.
fn set_aside_at(entry: &Entry) -> Timestamp {
    entry.changed_at.max(entry.touched_at)
}

/// Whether a name is one that is given to what is set aside.
fn is_aside(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(key, nonce)| names::halves(key).is_some() && names::is_hash(nonce))
}
