//! Relocation: look twice, have the catalog do it, note it in the record and the audit log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::HistoryError;
use crate::history::{ListQuery, ListedSession, Scope, SessionsQuery};
use crate::relocation::{Foreseen, Refusal, RelocateOrder, Relocated, Relocation, RelocationOutcome, Way};
use crate::resolution::{Seek, Wanted};
use crate::{
    AgentId, AuditEvent, Folder, Installation, NativeId, PathText, Recorded, RunId, SessionCatalog,
    SessionKey, SessionQuery, SessionRecord,
};

use super::Lifecycle;
use super::kept::{Kept, NotKept};

/// Between two looks at a file: whoever works on a session writes more often.
const SETTLE: Duration = Duration::from_secs(1);

/// What is known of a session to be relocated, before anything is touched.
#[derive(Debug)]
struct Prepared<'a> {
    wish: &'a Relocation,
    catalog: &'a dyn SessionCatalog,
    installation: Installation,
    to: Folder,
    /// The folder that it is in.
    folder: Option<PathBuf>,
    way: Way,
    /// Whether a record may have to say that it is there.
    is_news: bool,
    bytes: u64,
}

impl Lifecycle {
    /// Has a session be found in another folder by the installed version of its agent: where that finds it from there anyhow,
    /// nothing is done to its file; else that is moved or copied with what belongs to it, read back, and undone where that fails.
    /// A session that anybody has open or writes to stays. If it is bound to a key, that goes with it, under its lease, and
    /// its audit log says so. The caller says yes to another project by calling this.
    ///
    /// # Errors
    /// [`HistoryError`]: no such agent or folder, or it failed; the session is then where it was.
    ///
    /// # Cancel safety
    /// A dropped future leaves the session at its old or its new place, whole. If it was to be noted in a record, the same
    /// call again does that.
    pub async fn relocate(&self, wish: &Relocation) -> Result<Relocated, HistoryError> {
        let prepared = self.prepare(wish).await?;
        if prepared.way != Way::Nothing {
            self.host.sleep(SETTLE).await;
        }
        self.relocate_prepared(prepared).await
    }

    /// As [`relocate`](Self::relocate), for all sessions of an agent that began in a folder, or were last in it, one after the
    /// other. One that stays stops no other. What belongs to the folder and to no session stays where it is.
    ///
    /// # Errors
    /// [`HistoryError`] when they could not be listed; nothing was changed.
    ///
    /// # Cancel safety
    /// As [`relocate`](Self::relocate), for each.
    pub async fn relocate_all(
        &self,
        agent: &AgentId,
        from: &Path,
        to: &Path,
    ) -> Result<Vec<RelocationOutcome>, HistoryError> {
        self.catalog_of(agent)?;
        let list =
            ListQuery { scope: Scope::Exact(from.to_owned()), with_empty: true, ..ListQuery::default() };
        let query = SessionsQuery { agents: vec![agent.clone()], list };
        let listing = self.list(&query).await.map_err(HistoryError::Store)?;
        let wishes: Vec<_> =
            listing.sessions.into_iter().map(|session| Relocation::new(session, to)).collect();
        let mut prepared = Vec::with_capacity(wishes.len());
        for wish in &wishes {
            prepared.push(self.prepare(wish).await);
        }
        if prepared.iter().flatten().any(|prepared| prepared.way != Way::Nothing) {
            self.host.sleep(SETTLE).await;
        }
        let mut outcomes = Vec::with_capacity(wishes.len());
        for (wish, prepared) in wishes.iter().zip(prepared) {
            let outcome = match prepared {
                Ok(prepared) => self.relocate_prepared(prepared).await,
                Err(error) => Err(error),
            };
            outcomes.push(RelocationOutcome { session: wish.session.clone(), outcome });
        }
        Ok(outcomes)
    }

    /// What [`relocate`](Self::relocate) would come to by now. Nothing is changed; the agent is asked for its version, and the
    /// file is looked at twice, as there.
    ///
    /// # Errors
    /// As [`relocate`](Self::relocate).
    ///
    /// # Cancel safety
    /// Nothing is written.
    pub async fn foresee(&self, wish: &Relocation) -> Result<Foreseen, HistoryError> {
        let prepared = self.prepare(wish).await?;
        let nothing = prepared.way == Way::Nothing;
        if nothing && !prepared.is_news {
            return Ok(Foreseen::NothingToDo);
        }
        if !nothing {
            self.host.sleep(SETTLE).await;
        }
        let session = &prepared.wish.session;
        let mut is_named = false;
        if let Some(key) = &session.key {
            // Given back at once.
            match self.hold_record(key, session).await? {
                Ok(held) => is_named = held.is_some(),
                Err(refusal) => return Ok(Foreseen::Refused(refusal)),
            }
        }
        if nothing {
            return Ok(if is_named { Foreseen::Noted } else { Foreseen::NothingToDo });
        }
        prepared.catalog.foresee(prepared.order()).await.map_err(HistoryError::Catalog)
    }

    async fn prepare<'a>(&'a self, wish: &'a Relocation) -> Result<Prepared<'a>, HistoryError> {
        let session = &wish.session;
        let catalog = self.catalog_of(&session.agent)?;
        let registered = self.agents.get(&session.agent);
        let registered =
            registered.ok_or_else(|| HistoryError::UnknownAgent { agent: session.agent.clone() })?;
        let to = self.host.work_tree(&wish.to).await.map_err(HistoryError::Folder)?.folder;
        let installation = registered.adapter().detect_in(&wish.to).await.map_err(HistoryError::Agent)?;
        let seek = Seek::new(Wanted::Nothing, &wish.to);
        let mut search = self.begin(&seek).await;
        let whereabouts = self.whereabouts(&mut search, session).await;
        let is_found = whereabouts.is_found_by(installation.capabilities.resume_reach.into());
        let way = wish.way.unwrap_or(if is_found { Way::Nothing } else { Way::Move });
        let noted = search.known.homes.get(&(session.agent.clone(), session.entry.id.clone()));
        let is_news = session.key.is_some() && noted.is_none_or(|noted| noted.path != to.path);
        let folder = whereabouts.folder;
        let bytes = size(catalog, session, folder.as_deref().unwrap_or(&wish.to)).await;
        Ok(Prepared { wish, catalog, installation, to, folder, way, is_news, bytes })
    }

    async fn relocate_prepared(&self, prepared: Prepared<'_>) -> Result<Relocated, HistoryError> {
        if prepared.way == Way::Nothing && !prepared.is_news {
            return Ok(Relocated::NothingToDo);
        }
        let session = &prepared.wish.session;
        let held = match &session.key {
            // A record that cannot be read binds who knows which.
            Some(key) => match self.hold_record(key, session).await? {
                Ok(held) => held,
                Err(refusal) => return Ok(Relocated::Refused(refusal)),
            },
            None => None,
        };
        if prepared.way == Way::Nothing {
            let Some(held) = held else { return Ok(Relocated::NothingToDo) };
            let noted = self.note(&prepared, held, &Relocated::Noted).await?;
            return Ok(if noted { Relocated::Noted } else { Relocated::NothingToDo });
        }
        let done = prepared.catalog.relocate(prepared.order()).await.map_err(HistoryError::Catalog)?;
        if let (Some(held), false) = (held, matches!(done, Relocated::Refused(_))) {
            self.note(&prepared, held, &done).await?;
        }
        Ok(done)
    }

    /// The record that names the session, held; `None` where there is none, or it names others.
    async fn hold_record(
        &self,
        key: &SessionKey,
        session: &ListedSession,
    ) -> Result<Result<Option<Kept>, Refusal>, HistoryError> {
        let mut kept = match self.take_up(key).await {
            Ok(kept) => kept,
            Err(NotKept::Busy(_)) => return Ok(Err(Refusal::Busy)),
            Err(NotKept::Store(error)) => return Err(HistoryError::Store(error)),
            Err(NotKept::Newer(format)) => {
                let format = format.map(|format| format!(", in format {format}")).unwrap_or_default();
                return Ok(Err(Refusal::RecordUnreadable(format!("a newer version wrote it{format}"))));
            }
            Err(NotKept::Unreadable(why)) => return Ok(Err(Refusal::RecordUnreadable(why))),
        };
        // What a dead runner left may still run.
        if kept.record.in_flight.is_some() {
            return Ok(Err(Refusal::Busy));
        }
        let is_named = place_of(&mut kept.record, &session.entry.id).is_some();
        Ok(Ok(is_named.then_some(kept)))
    }

    /// Notes where the session is now, unless that is known. Where it cannot be noted, a run would look at the old place: it
    /// goes back there.
    async fn note(
        &self,
        prepared: &Prepared<'_>,
        mut held: Kept,
        done: &Relocated,
    ) -> Result<bool, HistoryError> {
        let now = self.host.now();
        let Some((was, lives_in)) = place_of(&mut held.record, &prepared.wish.session.entry.id) else {
            return Ok(false);
        };
        if was.as_ref() == Some(&prepared.to.path) {
            return Ok(false);
        }
        *lives_in = Some(prepared.to.clone());
        let was = was.or_else(|| prepared.folder.as_deref().map(PathText::new));
        let was = was.unwrap_or_else(|| PathText::new(Path::new("")));
        held.record.updated_at = now;
        held.changed = true;
        let key = held.record.key.clone();
        let error = match self.write(&mut held).await {
            Recorded::Saved => None,
            Recorded::Failed(error) => Some(HistoryError::Store(error)),
            Recorded::Withheld(_) | Recorded::LostRace | Recorded::LostLease => {
                Some(HistoryError::Busy { key: key.clone() })
            }
        };
        if let Some(error) = error {
            prepared.put_back(done, was.as_path()).await;
            return Err(error);
        }
        let id = prepared.wish.session.entry.id.clone();
        let mut event = AuditEvent::new(now, RunId::new(self.host.random_id()), "session_relocated");
        (event.before, event.after) = (Some(id.clone()), Some(id));
        event.agent_version = prepared.installation.version.as_ref().map(|version| version.text.clone());
        let how = if prepared.way == Way::Copy { "copied" } else { "moved" };
        let to = &prepared.to.path;
        event.detail = Some(match done {
            Relocated::Done { from, to: file, .. } if from == file => {
                format!("from {was} to {to}; noted in {}", file.display())
            }
            Relocated::Done { from, to: file, .. } => {
                format!("from {was} to {to}; {how} from {} to {}", from.display(), file.display())
            }
            Relocated::Noted => format!("from {was} to {to}; its agent finds it there anyhow"),
            _ => format!("from {was} to {to}; its file was there already"),
        });
        // It is done, whether or not the log takes it: that is told to an operator.
        self.append(&key, &event).await.ok();
        Ok(true)
    }
}

/// The folder that a session is in by a record, if that is known, and where the record says where it was relocated to. `None`: it
/// does not name the session.
fn place_of<'a>(
    record: &'a mut SessionRecord,
    id: &NativeId,
) -> Option<(Option<PathText>, &'a mut Option<Folder>)> {
    let SessionRecord { binding, candidate, past, .. } = record;
    let bindings = binding.iter_mut().chain(candidate.iter_mut().map(|candidate| &mut candidate.binding));
    if let Some(binding) = bindings.into_iter().find(|binding| binding.native_id == *id) {
        return Some((Some(binding.folder().path.clone()), &mut binding.lives_in));
    }
    let former = past.iter_mut().rev().find(|former| former.native_id == *id)?;
    Some((former.folder().map(|folder| folder.path.clone()), &mut former.lives_in))
}

impl Prepared<'_> {
    fn query<'a>(&'a self, cwd: &'a Path) -> SessionQuery<'a> {
        let entry = &self.wish.session.entry;
        SessionQuery {
            id: &entry.id,
            cwd,
            state_dir: entry.source.state_dir.as_deref(),
            version: self.installation.version.as_ref(),
        }
    }

    fn order(&self) -> RelocateOrder<'_> {
        let query = self.query(self.to.path.as_path().unwrap_or(&self.wish.to));
        let from = &self.wish.session.entry.source.path;
        RelocateOrder { query, from, bytes: self.bytes, way: self.way }
    }

    /// Has a file that was moved be where the record looks for it, which need not be the folder that it was last in.
    async fn put_back(&self, done: &Relocated, recorded: Option<&Path>) {
        let folder = recorded.or(self.folder.as_deref());
        let (Relocated::Done { to, way: Way::Move, .. }, Some(folder)) = (done, folder) else { return };
        let order = RelocateOrder { query: self.query(folder), from: to, bytes: self.bytes, way: Way::Move };
        match self.catalog.put_back(order).await {
            Ok(Relocated::Done { .. }) => {}
            back => tracing::error!(path = %to.display(), ?back, "a relocated session could not be put back"),
        }
    }
}

/// The size of a session's file, at a first look. Zero: nobody can tell, and then it is not relocated unless it is empty.
async fn size(catalog: &dyn SessionCatalog, session: &ListedSession, cwd: &Path) -> u64 {
    let (entry, source) = (&session.entry, &session.entry.source);
    let found = catalog.find(&entry.id, source.state_dir.as_deref()).await;
    let found = found.ok().and_then(|all| all.into_iter().find(|one| one.source == *source)?.bytes);
    if let Some(bytes) = found {
        return bytes;
    }
    let query = SessionQuery { id: &entry.id, cwd, state_dir: source.state_dir.as_deref(), version: None };
    match catalog.inspect(query).await {
        Ok(look) if look.path.as_ref() == Some(&source.path) => look.bytes,
        _ => entry.bytes.unwrap_or(0),
    }
}
