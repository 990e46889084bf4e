//! The library, as this command uses it: the agents of this machine over the store of this place.

use std::path::Path;

use rejoin::adapters::{
    ClaudeDialect, ClaudeOptions, ClaudeTranscripts, CodexDialect, CodexTranscripts, OpencodeDialect, claude,
    codex, opencode,
};
use rejoin::core::CliDialect;
use rejoin::error::{Chain, StoreError};
use rejoin::history::{
    Cursor, Depth, ListQuery, ListedSession, Notice, NoticeKind, PageQuery, SessionsListing, SessionsQuery,
    TranscriptPage,
};
use rejoin::process::Environment;
use rejoin::stores::{FsStore, MemoryStore};
use rejoin::transcript::{FileCatalog, Follow};
use rejoin::{Agent, AgentId, RESUME_SETTING, ResumeSetting, Sessions, SessionsBuilder};

use crate::exit::{Exit, Failure};
use crate::place::{FoundBy, Place, Surroundings};

/// What a command needs of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// What is there; none is made.
    Look,
    /// One has to be there.
    Have,
    /// One is made where there is none.
    Make,
}

/// How runs are made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running {
    pub(crate) permission_mode: Option<String>,
    pub(crate) own_place: bool,
    pub(crate) no_checkpoints: bool,
}

/// Agents and store.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) around: Surroundings,
    pub(crate) place: Option<Place>,
    /// Why the store that is there, or may be, is not read.
    pub(crate) unread_store: Option<String>,
    pub(crate) sessions: Sessions,
    pub(crate) agents: Vec<Agent>,
}

impl World {
    pub(crate) fn open(
        around: Surroundings,
        store: Option<&Path>,
        need: Need,
        running: &Running,
    ) -> Result<Self, Failure> {
        let place = match around.store(store) {
            Ok(place) => Some(place),
            // Without a home there is nothing at it.
            Err(_) if need == Need::Look => None,
            Err(failure) => return Err(failure),
        };
        let mut unread_store = None;
        let builder = match &place {
            Some(place) if place.exists || need == Need::Make => match open(place) {
                Ok(store) => Sessions::builder(store),
                // What lies in the agents' own places is there all the same.
                Err(error) if need == Need::Look => {
                    unread_store = Some(Chain(&error).to_string());
                    Sessions::builder(MemoryStore::new())
                }
                Err(error) => return Err(Failure::failed(&error)),
            },
            Some(Place { unknown: Some(why), base, .. }) => {
                if need == Need::Have {
                    let message = format!("the store in {} cannot be looked at: {why}", base.display());
                    return Err(Failure::new(Exit::Failed, message));
                }
                unread_store = Some(why.clone());
                Sessions::builder(MemoryStore::new())
            }
            Some(place) if need == Need::Have || store.is_some() => {
                let message = format!("there is no store in {}", place.base.display());
                return Err(Failure::new(Exit::NotFound, message));
            }
            _ => Sessions::builder(MemoryStore::new()),
        };
        let agents = agents(&around.environment, around.cache(), running)?;
        let setting = around.environment.map().get(RESUME_SETTING).and_then(|value| value.to_str());
        let setting = ResumeSetting::parse(setting.unwrap_or_default())
            .map_err(|error| Failure::usage(format!("{RESUME_SETTING}: {error}")))?;
        let builder =
            builder.resume_setting(ResumeSetting::new().organisation(setting)).state_dirs(!running.own_place);
        let builder = agents.iter().cloned().fold(builder, SessionsBuilder::agent);
        let sessions = match &place {
            Some(place) if !running.no_checkpoints => with_checkpoints(builder, place, &around).build(),
            _ => builder.build(),
        };
        Ok(Self { around, place, unread_store, sessions, agents })
    }

    /// The store that cannot be read, or that the environment names and that is not there: sessions of mailboxes are missing
    /// from what is told.
    pub(crate) fn missing_store(&self) -> Option<Notice> {
        let place = self.place.as_ref()?;
        let named = place.by == FoundBy::Variable && !place.exists;
        let why = match &self.unread_store {
            Some(why) => format!("the store in it: {why}"),
            None if named => "REJOIN_STORE names this folder, and there is no store in it".to_owned(),
            None => return None,
        };
        Some(Notice { path: place.base.clone(), offset: None, kind: NoticeKind::Unreadable(why) })
    }

    /// The sessions that are asked for.
    pub(crate) async fn list(&self, query: &SessionsQuery) -> Result<SessionsListing, Failure> {
        let mut listing = match self.sessions.list(query).await {
            Ok(listing) => listing,
            // It could be opened, and not be read.
            Err(error) => {
                let mut listing =
                    self.without_store().list(query).await.map_err(|error| Failure::failed(&error))?;
                let path = self.place.as_ref().map(|place| place.base.clone()).unwrap_or_default();
                let kind = NoticeKind::Unreadable(format!("the store in it: {}", Chain(&error)));
                listing.notices.push(Notice { path, offset: None, kind });
                listing
            }
        };
        listing.notices.extend(self.missing_store());
        Ok(listing)
    }

    /// What lies in the agents' own places.
    fn without_store(&self) -> Sessions {
        let builder = Sessions::builder(MemoryStore::new());
        self.agents.iter().cloned().fold(builder, SessionsBuilder::agent).build()
    }

    /// Every session of every kind, also those without a turn.
    pub(crate) async fn everything(&self, depth: Depth) -> Result<SessionsListing, Failure> {
        use rejoin::history::SessionKind::{Headless, Main, Sidechain};
        let kinds = vec![Main, Headless, Sidechain];
        let list = ListQuery { kinds, with_empty: true, depth, ..ListQuery::default() };
        self.list(&SessionsQuery { list, ..SessionsQuery::default() }).await
    }

    /// A part of a transcript.
    pub(crate) async fn page(
        &self,
        session: &ListedSession,
        query: &PageQuery,
    ) -> Result<TranscriptPage, Failure> {
        self.sessions.page(session, query).await.map_err(|error| Failure::failed(&error))
    }

    /// The agents by their words on the command line.
    pub(crate) fn agent_ids(&self, words: &[String]) -> Result<Vec<AgentId>, Failure> {
        let known = || self.agents.iter().map(|agent| agent.adapter().id());
        let find = |word: &String| {
            known().find(|id| id.as_str() == word).cloned().ok_or_else(|| {
                let names: Vec<_> = known().map(AgentId::as_str).collect();
                Failure::usage(format!("{word:?} is no agent; known are {}", names.join(", ")))
            })
        };
        words.iter().map(find).collect()
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.around.home.as_deref()
    }
}

/// Checkpoints lie beside the records.
fn with_checkpoints(builder: SessionsBuilder, place: &Place, around: &Surroundings) -> SessionsBuilder {
    #[cfg(unix)]
    {
        let mut checkpoints = rejoin::checkpoint::FsCheckpoints::new(&place.base);
        if let Some(home) = &around.home {
            checkpoints = checkpoints.home(home);
        }
        builder.checkpointer(checkpoints)
    }
    #[cfg(not(unix))]
    {
        let _ = (place, around);
        builder
    }
}

fn open(place: &Place) -> Result<FsStore, StoreError> {
    if place.by == FoundBy::Home {
        // The user's own place is made; one that was named has to be there, so that a typing error makes none.
        let _ = std::fs::create_dir_all(&place.base);
    }
    FsStore::open(&place.base)
}

fn agents(environment: &Environment, cache: Option<&Path>, running: &Running) -> Result<Vec<Agent>, Failure> {
    let mut options = ClaudeOptions::new();
    if let Some(mode) = &running.permission_mode {
        options = options.permission_mode(mode).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let mut claude = claude().options(options).environment(environment.clone());
    let mut codex = codex().environment(environment.clone());
    if let Some(folder) = cache.filter(|cache| is_made(cache)) {
        claude = claude.index(folder.join("claude.index"));
        codex = codex.index(folder.join("codex.index"));
    }
    Ok(vec![claude.into(), codex.into(), opencode().environment(environment.clone()).into()])
}

/// Makes the folder of the indexes. Where that fails, lists are slower.
fn is_made(cache: &Path) -> bool {
    #[cfg(unix)]
    let made = {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(cache)
    };
    #[cfg(not(unix))]
    let made = std::fs::create_dir_all(cache);
    made.is_ok()
}

/// What is added to a session's file, from a place on. `None`: it has no file of its own.
pub(crate) fn follow(listed: &ListedSession, from: &Cursor, world: &World) -> Option<Follow> {
    let environment = world.around.environment.map().clone();
    let (source, from) = (listed.entry.source.clone(), Some(from.clone()));
    match listed.agent.as_str() {
        "claude" => Some(FileCatalog::new(ClaudeTranscripts::new(environment)).follow(source, from)),
        "codex" => Some(FileCatalog::new(CodexTranscripts::new(environment)).follow(source, from)),
        _ => None,
    }
}

/// The dialect of an agent, for its command line.
pub(crate) fn dialect(agent: &AgentId) -> Option<Box<dyn CliDialect>> {
    match agent.as_str() {
        "claude" => Some(Box::new(ClaudeDialect::default())),
        "codex" => Some(Box::new(CodexDialect::default())),
        "opencode" => Some(Box::new(OpencodeDialect::default())),
        _ => None,
    }
}
