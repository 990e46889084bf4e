//! A store in this process, and what can be wrong with it. A scratch is a world of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use session_contract::Scratch;
use session_contract::agent::Cannot;
use session_contract::store::Damage;
use session_core::error::{StoreError, StoreErrorKind};
use session_core::*;

use super::flaw::Flaw;
use super::parts::{error, pause};

type Result<T> = std::result::Result<T, StoreError>;

/// What the store holds.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) documents: BTreeMap<SessionKey, Stored>,
    /// What was removed or set aside.
    gone: BTreeMap<SessionKey, Stored>,
    pub(super) logs: BTreeMap<SessionKey, Vec<AuditEntry>>,
    pub(super) holders: BTreeMap<(SessionKey, usize), Holder>,
    pub(super) fences: BTreeMap<SessionKey, u64>,
    /// The keys that had a state dir.
    pub(super) states: BTreeSet<SessionKey>,
    /// The grants as far as a write is told of them.
    pub(super) granted: BTreeMap<SessionKey, u64>,
    pub(super) damaged: BTreeMap<SessionKey, StoreErrorKind>,
    revisions: u64,
    aside: usize,
    handles: usize,
    away: bool,
}

/// All worlds, by the folder of the scratch.
#[derive(Debug, Clone, Default)]
pub(super) struct Worlds(Arc<Mutex<BTreeMap<PathBuf, Arc<Mutex<World>>>>>);

impl Worlds {
    pub(super) fn open(&self, scratch: &Scratch, flaw: Flaw) -> Sample {
        let world = self.0.lock().unwrap().entry(scratch.dir().to_owned()).or_default().clone();
        let handle = {
            let mut world = world.lock().unwrap();
            if world.handles > 0 {
                world.reopen(flaw);
            }
            world.handles += 1;
            world.handles
        };
        Sample { flaw, world, handle, dir: scratch.dir().to_owned() }
    }

    pub(super) fn damage(&self, scratch: &Scratch, key: &SessionKey, damage: Damage) -> Cannots {
        let world = self.0.lock().unwrap()[scratch.dir()].clone();
        let mut world = world.lock().unwrap();
        match damage {
            Damage::Cut | Damage::Altered => {
                world.damaged.insert(key.clone(), StoreErrorKind::Corrupt);
            }
            Damage::Newer => {
                world.damaged.insert(key.clone(), StoreErrorKind::Newer);
            }
            Damage::Away => world.away = true,
            Damage::Back => world.away = false,
        }
        Ok(())
    }
}

type Cannots = std::result::Result<(), Cannot>;

impl World {
    fn reopen(&mut self, flaw: Flaw) {
        match flaw {
            Flaw::ForgetsOnReopen => self.documents.clear(),
            Flaw::BringsBackOnReopen => self.documents.append(&mut self.gone),
            Flaw::RestartsRevisions => self.revisions = 0,
            Flaw::RestartsNumbers => self.fences.clear(),
            Flaw::ForgetsGrants => self.granted.clear(),
            Flaw::RestartsLogs => self.logs.clear(),
            _ => {}
        }
    }

    pub(super) fn current(&self, key: &SessionKey) -> Option<Revision> {
        self.documents.get(key).map(|stored| stored.revision.clone())
    }

    pub(super) fn reach(&self, operation: &'static str) -> Result<()> {
        if self.away { Err(error(StoreErrorKind::Unavailable, operation)) } else { Ok(()) }
    }

    pub(super) fn readable(&self, operation: &'static str, key: &SessionKey) -> Result<()> {
        self.reach(operation)?;
        self.damaged.get(key).map_or(Ok(()), |kind| Err(error(*kind, operation)))
    }

    pub(super) fn write(&mut self, flaw: Flaw, key: &SessionKey, document: &Document) -> Revision {
        self.revisions += 1;
        let next = match self.current(key) {
            Some(revision) if flaw == Flaw::ReusesRevisions => revision.as_str().parse::<u64>().unwrap() + 1,
            None if flaw == Flaw::ReusesRevisions => 1,
            _ => self.revisions,
        };
        let revision = Revision::new(next.to_string());
        let bytes = document.as_bytes();
        let kept = match flaw {
            Flaw::KeepsTextOnly => String::from_utf8_lossy(bytes).into_owned().into_bytes(),
            Flaw::TearsLargeDocuments => bytes[..bytes.len().min(4 << 20)].to_vec(),
            Flaw::LeavesTheTail => {
                let old = self.documents.get(key).map(|stored| stored.document.as_bytes().to_vec());
                [bytes, old.unwrap_or_default().get(bytes.len()..).unwrap_or_default()].concat()
            }
            Flaw::LosesTheLastWrite if self.documents.contains_key(key) => return revision,
            _ => bytes.to_vec(),
        };
        let stored = Stored { document: Document::new(kept), revision: revision.clone() };
        self.documents.insert(key.clone(), stored);
        revision
    }
}

#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) flaw: Flaw,
    pub(super) world: Arc<Mutex<World>>,
    pub(super) handle: usize,
    pub(super) dir: PathBuf,
}

impl Sample {
    pub(super) fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Where the documents of a key lie.
    fn place(&self, key: &SessionKey) -> SessionKey {
        let (mailbox, agent) = (key.mailbox.as_str(), key.agent.as_str());
        let mailbox = match self.flaw {
            Flaw::FoldsCase => mailbox.to_lowercase(),
            Flaw::FoldsForms => mailbox.replace("e\u{301}", "\u{e9}"),
            Flaw::CutsLongNames => mailbox.chars().take(255).collect(),
            Flaw::MakesSlugs => mailbox.replace('/', "-"),
            Flaw::TrimsNames => mailbox.trim().to_owned(),
            Flaw::IgnoresTheAgent => return SessionKey::new(mailbox, "any").unwrap(),
            _ => return key.clone(),
        };
        SessionKey::new(mailbox, agent).unwrap()
    }

    pub(super) fn admits(&self, guard: &Guard, current: Option<&Revision>) -> bool {
        match self.flaw {
            Flaw::IgnoresGuards => true,
            Flaw::TakesAbsentForAny if *guard == Guard::Absent => true,
            Flaw::IgnoresRevisions if matches!(guard, Guard::Revision(_)) => current.is_some(),
            _ => guard.admits(current),
        }
    }

    fn take_out(&self, world: &mut World, key: &SessionKey) {
        if let Some(stored) = world.documents.remove(key) {
            world.gone.insert(key.clone(), stored);
        }
        if self.is(Flaw::LosesTheLogWithTheDocument) {
            world.logs.remove(key);
        }
        if self.is(Flaw::RemovesStateWithTheDocument) {
            drop(std::fs::remove_dir_all(self.state_path(key)));
        }
    }
}

#[async_trait]
impl SessionStore for Sample {
    fn capabilities(&self) -> StoreCapabilities {
        let mut claims = StoreCapabilities::durable(StoreReach::Host).with_state_dirs();
        claims.durable = !(self.is(Flaw::ClaimsSomethingElse) && self.world().revisions > 0);
        if self.is(Flaw::ClaimsNoNamesAndNames) { claims.without_holder_names() } else { claims }
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Stored>> {
        let (key, world) = (self.place(key), self.world());
        match world.readable("load", &key) {
            Err(error) if error.kind() == StoreErrorKind::Corrupt && self.is(Flaw::CorruptIsAbsent) => {
                return Ok(None);
            }
            Err(_) if world.away && self.is(Flaw::AwayIsEmpty) => return Ok(None),
            read => read?,
        }
        let mut stored = world.documents.get(&key).cloned();
        if self.is(Flaw::NothingIsEmpty) {
            let empty = Stored { document: Document::new(Vec::new()), revision: Revision::new("0") };
            stored.get_or_insert(empty);
        }
        if let (Some(stored), Flaw::TellsAnotherRevision) = (&mut stored, self.flaw) {
            stored.revision = Revision::new(format!("{}-loaded", stored.revision.as_str()));
        }
        Ok(stored)
    }

    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Result<Saved> {
        self.write_under(&self.place(key), document, guard, lease).await
    }

    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Result<Removed> {
        let key = &self.place(key);
        self.world().readable("remove", key)?;
        let Some(current) = self.world().current(key) else { return Ok(Removed::NothingThere) };
        if self.is(Flaw::ChecksThenRemoves) {
            pause().await;
            self.take_out(&mut self.world(), key);
            return Ok(Removed::Done);
        }
        // Nobody comes in between: what follows is one step.
        let mut world = self.world();
        let Some(present) = world.current(key) else { return Ok(Removed::NothingThere) };
        if !self.admits(guard, Some(&present)) && !self.is(Flaw::RemovesWhateverTheGuard) {
            return Ok(Removed::Refused { current });
        }
        if !self.is(Flaw::KeepsWhatItRemoved) {
            self.take_out(&mut world, key);
        }
        Ok(Removed::Done)
    }

    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Result<Option<String>> {
        let key = &self.place(key);
        let mut world = self.world();
        world.reach("set_aside")?;
        let damaged = world.damaged.get(key).copied();
        match damaged {
            Some(StoreErrorKind::Newer) if !self.is(Flaw::SetsNewerAside) => {
                return Err(error(StoreErrorKind::Newer, "set_aside"));
            }
            Some(_) if self.is(Flaw::CannotSetDamageAside) => {
                return Err(error(StoreErrorKind::Corrupt, "set_aside"));
            }
            Some(_) if *guard != Guard::Any => return Ok(None),
            _ => {}
        }
        let Some(stored) = world.documents.get(key).cloned() else { return Ok(None) };
        let admits = damaged.is_some() || self.admits(guard, Some(&stored.revision));
        if !admits && !self.is(Flaw::SetsAsideWhateverTheGuard) {
            return Ok(None);
        }
        world.aside += usize::from(!self.is(Flaw::KeepsTheLastOneAside));
        let place = self.dir.join(format!("aside-{}", world.aside));
        if !self.is(Flaw::SetsAsideByRemoving) {
            std::fs::write(&place, stored.document.as_bytes()).unwrap();
        }
        world.damaged.remove(key);
        if !self.is(Flaw::CopiesAside) {
            self.take_out(&mut world, key);
        }
        Ok(Some(place.display().to_string()))
    }

    async fn list(&self, options: &ListOptions) -> Result<Page<SessionKey>> {
        let world = self.world();
        world.reach("list")?;
        if let (Some(kind), Flaw::FailsForOne) = (world.damaged.values().next(), self.flaw) {
            return Err(error(*kind, "list"));
        }
        let mut keys: Vec<_> = world.documents.keys().cloned().collect();
        match self.flaw {
            Flaw::ListsRemovedKeys => keys.extend(world.gone.keys().cloned()),
            Flaw::ListsKeysWithALog => keys.extend(world.logs.keys().cloned()),
            _ => {}
        }
        keys.sort();
        keys.dedup();
        if self.is(Flaw::ListsByTime) {
            keys.sort_by_key(|key| world.current(key).map(|revision| revision.as_str().parse::<u64>().ok()));
        }
        let start = options.after.as_ref().map_or(0, |after| {
            let found = keys.iter().position(|key| key == after);
            match found {
                Some(at) => at + usize::from(!self.is(Flaw::RepeatsAKey)),
                None if self.is(Flaw::BeginsAnew) => 0,
                None => keys.iter().filter(|key| *key < after).count(),
            }
        });
        let limit = options.limit.filter(|_| !self.is(Flaw::IgnoresTheLimit)).unwrap_or(usize::MAX);
        let rest = &keys[start..];
        let more = rest.len() > limit && !self.is(Flaw::NeverSaysMore);
        Ok(Page { items: rest[..limit.min(rest.len())].to_vec(), more })
    }

    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Result<AuditSeq> {
        self.append(key, event).await
    }

    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Result<Vec<AuditEntry>> {
        self.read_log(key, after)
    }

    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Result<LeaseOutcome> {
        self.take(key, holder).await
    }

    async fn state_dir(&self, key: &SessionKey) -> Result<Option<PathBuf>> {
        self.world().reach("state_dir")?;
        self.make_state_dir(key).map(Some)
    }

    async fn remove_state(&self, key: &SessionKey, _: &Lease) -> Result<bool> {
        self.world().reach("remove_state")?;
        let path = self.state_path(key);
        let (whole, empties) = (self.is(Flaw::RemovesTheMailboxsState), self.is(Flaw::EmptiesState));
        let path = if whole { path.parent().unwrap().to_owned() } else { path };
        if path.symlink_metadata().is_err() {
            return Ok(false);
        }
        match self.flaw {
            Flaw::KeepsState => {}
            Flaw::RemovesThroughLinks if path.is_symlink() => {
                std::fs::remove_dir_all(path.canonicalize().unwrap()).unwrap();
                std::fs::remove_file(&path).unwrap();
            }
            _ => std::fs::remove_dir_all(&path).unwrap(),
        }
        if empties {
            std::fs::create_dir_all(&path).unwrap();
        }
        Ok(!self.is(Flaw::NeverHadState))
    }

    async fn state_size(&self, key: &SessionKey) -> Result<Option<StateSize>> {
        self.measure(key)
    }

    async fn leftovers(&self, options: &LeftoverOptions) -> Result<Vec<Leftover>> {
        self.list_leftovers(options)
    }

    async fn remove_leftover(&self, leftover: &Leftover, tombstone: &Tombstone) -> Result<Disposed> {
        self.dispose(leftover, tombstone).await
    }
}
