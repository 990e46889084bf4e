//! Lists over all agents.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use session_core::error::{CatalogError, HistoryError};
use session_core::history::{
    ListQuery, ListedSession, Listing, Notice, NoticeKind, PageQuery, Scope, SessionEntry, SessionSource,
    SessionsListing, SessionsQuery, Title, TitleSource,
};
use session_core::*;

use crate::bench::bench;
use crate::scripted::*;

/// A catalog that lists what it was given, and remembers what it was asked.
#[derive(Debug, Clone, Default)]
struct Shelf {
    ids: Vec<(&'static str, i64)>,
    others: Vec<SessionEntry>,
    asked: Arc<Mutex<Vec<ListQuery>>>,
}

#[async_trait]
impl SessionCatalog for Shelf {
    async fn inspect(&self, _: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        Ok(Inspection::MISSING)
    }
    async fn last_said(&self, _: SessionQuery<'_>, _: usize) -> Result<Conversation, CatalogError> {
        Ok(Conversation::default())
    }
    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Ok(false)
    }
    async fn list(&self, query: &ListQuery) -> Result<Listing, CatalogError> {
        self.asked.lock().unwrap().push(query.clone());
        let entries = self.ids.iter().map(|(id, at)| {
            let source = SessionSource { path: PathBuf::from(id), state_dir: query.state_dir.clone() };
            let mut entry = SessionEntry::new(NativeId::new(*id), source);
            entry.updated = Some(Timestamp::from_millis(*at));
            entry
        });
        let mut sessions: Vec<_> = entries.chain(self.others.iter().cloned()).collect();
        sessions.sort_by(SessionEntry::newest_first);
        let limit = query.limit.unwrap_or(usize::MAX);
        let more = sessions.len() > limit;
        sessions.truncate(limit);
        Ok(Listing { sessions, empty: 1, more, ..Listing::default() })
    }
}

fn ids(sessions: &[ListedSession]) -> Vec<(&str, &str)> {
    sessions.iter().map(|listed| (listed.agent.as_str(), listed.entry.id.as_str())).collect()
}

fn with(lifecycle: &Lifecycle, name: &str, shelf: &Shelf) -> Lifecycle {
    lifecycle.clone().agent(Agent::new(Scripted::named(name)).with_catalog(shelf.clone()))
}

#[tokio::test]
async fn sessions_of_all_agents_are_one_list_and_a_limit_counts_over_all() {
    let bench = bench();
    let one = Shelf { ids: vec![("a-1", 10), ("a-2", 30)], ..Shelf::default() };
    let two = Shelf { ids: vec![("b-1", 20), ("b-2", 30)], ..Shelf::default() };
    let lifecycle = with(&with(&bench.lifecycle, "beta", &two), "alpha", &one);
    let mut query = SessionsQuery::default();
    let all = lifecycle.list(&query).await.unwrap();
    assert_eq!(ids(&all.sessions), [("alpha", "a-2"), ("beta", "b-2"), ("beta", "b-1"), ("alpha", "a-1")]);
    assert_eq!(all.empty, 2);
    query.list.limit = Some(3);
    assert_eq!(lifecycle.list(&query).await.unwrap().sessions, all.sessions[..3]);
    query.agents = vec![AgentId::new("beta").unwrap()];
    assert_eq!(ids(&lifecycle.list(&query).await.unwrap().sessions), [("beta", "b-2"), ("beta", "b-1")]);
}

#[tokio::test]
async fn an_agent_that_cannot_be_listed_is_told_and_stops_no_other() {
    let bench = bench();
    let shelf = Shelf { ids: vec![("a-1", 10)], ..Shelf::default() };
    let lifecycle = with(&bench.lifecycle, "alpha", &shelf);
    // The bench's own agent has a catalog that lists nothing.
    let listing = lifecycle.list(&SessionsQuery::default()).await.unwrap();
    assert_eq!(ids(&listing.sessions), [("alpha", "a-1")]);
    assert_eq!(listing.unlisted.len(), 1);
    assert!(listing.unlisted[0].reason.contains("does not list sessions"), "{:?}", listing.unlisted);
    assert!(!listing.is_complete());
    bench.store.fail.lock().unwrap().push("list");
    lifecycle.list(&SessionsQuery::default()).await.unwrap_err();
}

#[tokio::test]
async fn a_session_that_a_record_names_has_its_key_and_says_whether_it_is_in_force() {
    let bench = bench();
    let first = bench.run("one").await.session_id.unwrap().to_string();
    bench.lose(&first);
    let second = bench.run("two").await.session_id.unwrap().to_string();
    assert_ne!(first, second);
    let (first, second): (&'static str, &'static str) = (first.leak(), second.leak());
    let shelf = Shelf { ids: vec![(first, 1), (second, 2), ("foreign", 3)], ..Shelf::default() };
    let listing = with(&bench.lifecycle, "scripted", &shelf).list(&SessionsQuery::default()).await.unwrap();
    let keys: Vec<_> = listing.sessions.iter().map(|listed| (listed.key.clone(), listed.bound)).collect();
    assert_eq!(keys, [(None, false), (Some(key()), true), (Some(key()), false)]);
    // What the mailbox calls its session is its title, where its file has none that somebody gave.
    let title = |listing: &SessionsListing, at: usize| listing.sessions[at].entry.title.clone();
    let name = Title { text: "agent/issue-42".into(), source: TitleSource::Given };
    assert_eq!([0, 1, 2].map(|at| title(&listing, at)), [None, Some(name.clone()), None]);
    let titled = |source| {
        let place = SessionSource { path: second.into(), state_dir: None };
        let mut entry = SessionEntry::new(NativeId::new(second), place);
        entry.title = Some(Title { text: "of its file".into(), source });
        with(&bench.lifecycle, "scripted", &Shelf { others: vec![entry], ..Shelf::default() })
    };
    for (source, text) in [(TitleSource::Agent, "agent/issue-42"), (TitleSource::Given, "of its file")] {
        let listing = titled(source).list(&SessionsQuery::default()).await.unwrap();
        assert_eq!(title(&listing, 0).unwrap().text, text, "{source:?}");
    }
    // The same id of another agent is another session.
    let stranger = with(&bench.lifecycle, "stranger", &shelf);
    let query = SessionsQuery { agents: vec![AgentId::new("stranger").unwrap()], ..Default::default() };
    assert!(stranger.list(&query).await.unwrap().sessions.iter().all(|listed| listed.key.is_none()));
}

#[tokio::test]
async fn folders_of_a_scope_are_real_ones_where_they_are_there() {
    let bench = bench();
    bench.host.folders.lock().unwrap().insert("/w/link".into(), folder("/w/demo", 1, "/w/demo/.git"));
    let shelf = Shelf::default();
    let lifecycle = with(&bench.lifecycle, "alpha", &shelf);
    let mut query = SessionsQuery::default();
    query.list.scope = Scope::AnyBelow(vec!["/w/link".into(), "/w/gone".into()]);
    lifecycle.list(&query).await.unwrap();
    let asked = shelf.asked.lock().unwrap().pop().unwrap();
    assert_eq!(asked.scope, Scope::AnyBelow(vec!["/w/demo".into(), "/w/gone".into()]));
    assert!(asked.scope.holds(Path::new("/w/demo/below")) && !asked.scope.holds(Path::new("/w/demo-not")));
}

#[tokio::test]
async fn a_session_of_nobody_is_not_read() {
    let bench = bench();
    let source = SessionSource { path: "/w/file".into(), state_dir: None };
    let entry = SessionEntry::new(NativeId::new("s"), source);
    let mut session = ListedSession::new(AgentId::new("nobody").unwrap(), entry);
    let page = bench.lifecycle.page(&session, &PageQuery::Last { turns: 1 }).await;
    assert!(matches!(page, Err(HistoryError::UnknownAgent { .. })), "{page:?}");
    session.agent = AgentId::new("scripted").unwrap();
    let restored = bench.lifecycle.restore(&session).await;
    assert!(matches!(restored, Err(HistoryError::Catalog(error)) if error.path == Path::new("/w/file")));
}

#[test]
fn a_list_with_something_unread_is_not_complete() {
    let notice = |kind| Notice { path: "/w".into(), offset: None, kind };
    let listing = |kind| Listing { notices: vec![notice(kind)], ..Listing::default() };
    assert!(listing(NoticeKind::SkippedLine).is_complete());
    assert!(!listing(NoticeKind::LimitReached).is_complete());
    assert!(!listing(NoticeKind::Unreadable("x".into())).is_complete());
}

/// A session of few names, places and times, so that many are equal in some of them.
fn any_entry() -> impl Strategy<Value = SessionEntry> {
    let time = || proptest::option::of((0_i64..3).prop_map(Timestamp::from_millis));
    (0..4_u8, 0..3_u8, time(), time()).prop_map(|(id, place, updated, used)| {
        let source = SessionSource { path: format!("/w/{place}").into(), state_dir: None };
        let mut entry = SessionEntry::new(NativeId::new(format!("s-{id}")), source);
        (entry.updated, entry.used) = (updated, used);
        entry
    })
}

proptest! {
    #[test]
    fn a_limited_list_is_the_beginning_of_the_whole_one(
        one in proptest::collection::vec(any_entry(), 0..8),
        two in proptest::collection::vec(any_entry(), 0..8),
        limit in 0_usize..18,
    ) {
        let bench = bench();
        let shelf = |others| Shelf { others, ..Shelf::default() };
        let lifecycle = with(&with(&bench.lifecycle, "beta", &shelf(two)), "alpha", &shelf(one));
        let mut query = SessionsQuery::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut list = |limit| {
            query.list.limit = limit;
            runtime.block_on(lifecycle.list(&query)).unwrap()
        };
        let (all, cut) = (list(None), list(Some(limit)));
        prop_assert_eq!(&cut.sessions[..], &all.sessions[..limit.min(all.sessions.len())]);
        prop_assert_eq!((cut.more, all.more), (limit < all.sessions.len(), false));
    }
}
