//! Relocation: what is asked of a catalog, what is noted, and what the cases of moved folders come to.

mod filed;
mod in_place;
mod noted;
mod records;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use session_core::decide::{Sign, Workdir};
use session_core::error::{CatalogError, HistoryError};
use session_core::history::*;
use session_core::*;

use crate::bench::{Bench, bench_with};
use crate::locating::{Cards, ID, entry, text};
use crate::scripted::*;

/// The folder and the file of an order, the size that was seen, and how.
type Order = (PathBuf, PathBuf, u64, Way);

/// A catalog that moves a session's file from folder to folder, and remembers what it was asked.
#[derive(Debug, Clone, Default)]
struct Mover {
    file: Arc<Mutex<Option<SessionEntry>>>,
    asked: Arc<Mutex<Vec<Order>>>,
    answer: Arc<Mutex<Option<Relocated>>>,
}

impl Mover {
    fn holding(id: &str, cwd: &str) -> Self {
        let mover = Self::default();
        let mut entry = entry(id, cwd, "");
        entry.bytes = Some(7);
        *mover.file.lock().unwrap() = Some(entry);
        mover
    }
    fn session(&self, key: Option<SessionKey>) -> ListedSession {
        let entry = self.file.lock().unwrap().clone().unwrap();
        let mut session = ListedSession::new(AgentId::new("scripted").unwrap(), entry);
        (session.bound, session.key) = (key.is_some(), key);
        session
    }
    fn place(&self) -> PathBuf {
        self.file.lock().unwrap().as_ref().unwrap().source.path.clone()
    }
}

#[async_trait]
impl SessionCatalog for Mover {
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        let file = self.file.lock().unwrap();
        let file = file.as_ref().filter(|entry| entry.id == *query.id);
        Ok(file.map_or(Inspection::MISSING, |entry| Inspection {
            presence: Presence::Present,
            path: Some(entry.source.path.clone()),
            user_turns: 1,
            bytes: 7,
            began_in: entry.cwd.clone(),
            ..Inspection::MISSING
        }))
    }
    async fn last_said(&self, _: SessionQuery<'_>, _: usize) -> Result<Conversation, CatalogError> {
        Ok(Conversation::default())
    }
    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Ok(false)
    }
    async fn list(&self, query: &ListQuery) -> Result<Listing, CatalogError> {
        let file = self.file.lock().unwrap().clone().into_iter();
        let of = |entry: &SessionEntry| entry.cwd.as_ref().is_some_and(|cwd| query.scope.holds(cwd));
        Ok(Listing { sessions: file.filter(of).collect(), ..Listing::default() })
    }
    async fn find(&self, id: &NativeId, dir: Option<&Path>) -> Result<Vec<SessionEntry>, CatalogError> {
        let file = self.file.lock().unwrap().clone().into_iter();
        Ok(file.filter(|entry| entry.id == *id && entry.source.state_dir.as_deref() == dir).collect())
    }
    async fn relocate(&self, order: RelocateOrder<'_>) -> Result<Relocated, CatalogError> {
        let asked = (order.query.cwd.to_owned(), order.from.to_owned(), order.bytes, order.way);
        self.asked.lock().unwrap().push(asked);
        if let Some(answer) = self.answer.lock().unwrap().clone() {
            return Ok(answer);
        }
        let to = order.query.cwd.join(order.query.id.as_str());
        if to == order.from {
            return Ok(Relocated::NothingToDo);
        }
        self.file.lock().unwrap().as_mut().unwrap().source.path.clone_from(&to);
        let (from, way) = (order.from.to_owned(), order.way);
        Ok(Relocated::Done { from, to, way, records: 2, left: Vec::new(), split: false })
    }
}

/// A bench with a bound session in `/w/demo`, another work tree of it, and another project.
async fn bound() -> (Bench, Mover, String) {
    let mut bench = bench_with(Scripted::new(), true);
    let there = [("/w/tree", 2, "/w/demo/.git"), ("/w/other", 3, "/w/other/.git")];
    let folders = there.map(|(path, inode, git)| (PathBuf::from(path), folder(path, inode, git)));
    bench.host.folders.lock().unwrap().extend(folders);
    let id = bench.run("one").await.session_id.unwrap().to_string();
    bench.agent.capabilities.resume_reach = ReachCapability::SameFolder;
    let mover = Mover::holding(&id, "/w/demo");
    bench.lifecycle = bench.lifecycle.agent(Agent::new(bench.agent.clone()).with_catalog(mover.clone()));
    (bench, mover, id)
}

async fn relocations(bench: &Bench) -> Vec<AuditEvent> {
    let log = bench.lifecycle.audit(&key(), None).await.unwrap();
    log.into_iter().map(|entry| entry.event).filter(|event| event.kind == "session_relocated").collect()
}

#[tokio::test]
async fn a_bound_session_is_moved_noted_and_continued_where_it_went() {
    let (bench, mover, id) = bound().await;
    let wish = Relocation::new(mover.session(Some(key())), "/w/tree");
    let done = bench.lifecycle.relocate(&wish).await.unwrap();
    assert!(matches!(done, Relocated::Done { way: Way::Move, .. }), "{done:?}");
    let asked = mover.asked.lock().unwrap().clone();
    assert_eq!(asked, [("/w/tree".into(), Path::new("/w/demo").join(&id), 7, Way::Move)]);
    let record = bench.record().await;
    let binding = record.binding.unwrap();
    assert_eq!(binding.folder().path.as_path(), Some(Path::new("/w/tree")));
    assert_eq!(binding.began_in.path.as_path(), Some(Path::new("/w/demo")), "where it began stays known");
    let [event] = relocations(&bench).await.try_into().unwrap();
    assert_eq!(event.before, Some(NativeId::new(id.as_str())));
    assert!(event.detail.as_ref().unwrap().contains("/w/demo"), "{event:?}");
    // A version that finds sessions in their own folder alone continues it there.
    let next = bench.lifecycle.run(request("two").cwd("/w/tree")).await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(NativeId::new(id.as_str()))));
    // A list of the new folder has it, though its file tells of the old one.
    for (scope, there) in [("/w/tree", true), ("/w/demo", true), ("/w/other", false)] {
        let list = ListQuery { scope: Scope::Exact(scope.into()), ..ListQuery::default() };
        let query = SessionsQuery { list, ..SessionsQuery::default() };
        let sessions = bench.lifecycle.list(&query).await.unwrap().sessions;
        let folders: Vec<_> = sessions.iter().map(|one| (one.bound, one.entry.last_cwd.as_deref())).collect();
        assert_eq!(folders, vec![(true, Some(Path::new("/w/tree"))); usize::from(there)], "{scope}");
    }
    // Once more: nothing changes, nothing is told.
    let wish = Relocation::new(mover.session(Some(key())), "/w/tree");
    assert_eq!(bench.lifecycle.relocate(&wish).await.unwrap(), Relocated::NothingToDo);
    assert_eq!(relocations(&bench).await.len(), 1);
    let found = bench.lifecycle.locate(&Seek::new(Wanted::Key(key()), "/w/tree")).await.unwrap();
    assert!(matches!(&found.answer, Answer::Found { hit, .. } if hit.workdir == Workdir::Same), "{found:?}");
}

#[tokio::test]
async fn a_record_that_takes_no_word_has_the_file_back_where_it_was() {
    let (bench, mover, id) = bound().await;
    bench.store.set(&["save"]);
    // It left that folder since, but its file is still filed there.
    mover.file.lock().unwrap().as_mut().unwrap().last_cwd = Some("/w/demo/src".into());
    let wish = Relocation::new(mover.session(Some(key())), "/w/tree");
    let failed = bench.lifecycle.relocate(&wish).await;
    assert!(matches!(failed, Err(HistoryError::Store(_))), "{failed:?}");
    assert_eq!(mover.place(), Path::new("/w/demo").join(&id));
    bench.store.set(&[]);
    assert!(relocations(&bench).await.is_empty());
    assert!(bench.record().await.binding.unwrap().lives_in.is_none());
    // A log that takes none spoils nothing: it is done.
    bench.store.set(&["append_audit"]);
    assert!(matches!(bench.lifecycle.relocate(&wish).await, Ok(Relocated::Done { .. })));
    assert!(bench.record().await.binding.unwrap().lives_in.is_some());
}

/// The store said that it failed, and did it all the same.
#[tokio::test]
async fn a_word_that_arrived_after_all_counts() {
    let (bench, mover, id) = bound().await;
    bench.store.set(&["save_late"]);
    let wish = Relocation::new(mover.session(Some(key())), "/w/tree");
    assert!(matches!(bench.lifecycle.relocate(&wish).await, Ok(Relocated::Done { .. })));
    assert_eq!(mover.place(), Path::new("/w/tree").join(&id));
    assert!(bench.record().await.binding.unwrap().lives_in.is_some());
}

#[tokio::test]
async fn a_move_that_was_killed_before_its_word_is_noted_by_the_next_call() {
    let (bench, mover, id) = bound().await;
    // The file went, and the runner died.
    mover.file.lock().unwrap().as_mut().unwrap().source.path = Path::new("/w/tree").join(&id);
    let wish = Relocation::new(mover.session(Some(key())), "/w/tree");
    assert_eq!(bench.lifecycle.relocate(&wish).await.unwrap(), Relocated::NothingToDo);
    assert!(bench.record().await.binding.unwrap().lives_in.is_some());
    assert_eq!(relocations(&bench).await.len(), 1);
}

#[tokio::test]
async fn a_session_that_is_being_run_or_is_refused_stays() {
    let (bench, mover, _) = bound().await;
    let wish = Relocation::new(mover.session(Some(key())), "/w/tree");
    let lease = bench.store.inner.lease(&key(), &bench.host.holder()).await.unwrap();
    let busy = bench.lifecycle.relocate(&wish).await.unwrap();
    assert_eq!(busy, Relocated::Refused(Refusal::Busy));
    assert!(mover.asked.lock().unwrap().is_empty());
    drop(lease);
    *mover.answer.lock().unwrap() = Some(Relocated::Refused(Refusal::Growing));
    let growing = bench.lifecycle.relocate(&wish).await.unwrap();
    assert_eq!(growing, Relocated::Refused(Refusal::Growing));
    assert!(bench.record().await.binding.unwrap().lives_in.is_none() && relocations(&bench).await.is_empty());
    let gone = bench.lifecycle.relocate(&Relocation::new(mover.session(None), "/w/gone")).await;
    assert!(matches!(gone, Err(HistoryError::Folder(_))), "{gone:?}");
    // A catalog that moves nothing says so, and nothing weaker is done.
    let lifecycle =
        bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()).with_catalog(Cards::default()));
    let cannot = lifecycle.relocate(&wish.clone().way(Way::Copy)).await.unwrap();
    assert!(matches!(cannot, Relocated::Refused(Refusal::Unsupported(_))), "{cannot:?}");
}

#[tokio::test]
async fn all_sessions_of_a_folder_are_relocated_and_a_second_time_none() {
    let (bench, mover, _) = bound().await;
    let agent = AgentId::new("scripted").unwrap();
    let (from, to) = (Path::new("/w/demo"), Path::new("/w/tree"));
    let all = bench.lifecycle.relocate_all(&agent, from, to).await.unwrap();
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert!(matches!(one.outcome, Ok(Relocated::Done { .. })), "{one:?}");
    let asked = mover.asked.lock().unwrap().len();
    let again = bench.lifecycle.relocate_all(&agent, from, to).await.unwrap();
    assert!(again.iter().all(|one| matches!(one.outcome, Ok(Relocated::NothingToDo))), "{again:?}");
    assert_eq!(mover.asked.lock().unwrap().len(), asked, "the record knows where it is");
}

/// A folder that is gone, of which a record knows what it was, and another clone of the same project.
async fn renamed(remote: &str, roots: &[&str]) -> (Bench, Vec<SessionEntry>) {
    let of = |path: &str, inode, remote: &str, roots: &[&str]| {
        let mut folder = folder(path, inode, &format!("{path}/.git"));
        let repository = folder.repository.as_mut().unwrap();
        repository.remote = Some(remote.to_owned());
        repository.roots = roots.iter().map(|root| (*root).to_owned()).collect();
        folder
    };
    let bench = bench_with(Scripted::new(), true);
    let a = of("/w/proj-a", 10, "github.com/o/r", &["aa"]);
    bench.host.folders.lock().unwrap().insert("/w/proj-a".into(), a);
    bench.lifecycle.run(request("one").cwd("/w/proj-a")).await.unwrap();
    let b = of("/w/proj-b", 11, remote, roots);
    let mut folders = bench.host.folders.lock().unwrap();
    folders.remove(Path::new("/w/proj-a"));
    folders.insert("/w/proj-b".into(), b);
    drop(folders);
    let mut helper = entry("55555555-5555-4555-8555-555555555555", "/w/proj-a", "");
    helper.kind = SessionKind::Sidechain;
    let second = entry("66666666-6666-4666-8666-666666666666", "/w/proj-a", "Second");
    (bench, vec![entry(ID, "/w/proj-a", "First"), second, helper])
}

#[tokio::test]
async fn sessions_of_a_renamed_folder_are_offered_and_not_taken() {
    for (remote, roots, same) in [
        ("github.com/o/r", vec!["aa"], true),
        ("github.com/o/r", vec![], true),
        ("github.com/o/r", vec!["bb"], false),
        ("github.com/o/other", vec!["aa"], false),
    ] {
        let (bench, entries) = renamed(remote, &roots).await;
        let cards = Cards { entries, unlisted: vec![] };
        let lifecycle = bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()).with_catalog(cards));
        let none = lifecycle.locate(&Seek::new(Wanted::Nothing, "/w/proj-b")).await.unwrap();
        assert_eq!(none.answer, Answer::Nothing, "none here");
        let expected = Vanished { folder: "/w/proj-a".into(), sessions: 2 };
        let expected = if same { vec![expected] } else { vec![] };
        assert_eq!(none.vanished, expected, "{remote} {roots:?}");
        let mut seek = text("first");
        seek.from = "/w/proj-b".into();
        let one = lifecycle.locate(&seek).await.unwrap();
        match &one.answer {
            Answer::Moved { proposal, hit, how: Sign::Title } if same => {
                assert_eq!(hit.workdir, Workdir::Moved);
                assert_eq!(proposal.from.as_deref(), Some(Path::new("/w/proj-a")));
                assert_eq!((proposal.to.as_path(), proposal.way), (Path::new("/w/proj-b"), Way::Move));
            }
            Answer::OtherProject { .. } if !same => {}
            other => panic!("{remote} {roots:?}: {other:?}"),
        }
    }
}

fn rename(bench: &Bench, from: &str, to: &str) {
    let mut folders = bench.host.folders.lock().unwrap();
    let mut folder = folders.remove(Path::new(from)).unwrap();
    folder.path = PathText::new(Path::new(to));
    folders.insert(to.into(), folder);
}

#[tokio::test]
async fn a_folder_that_was_renamed_is_known_by_itself() {
    let (bench, mover, id) = bound().await;
    rename(&bench, "/w/demo", "/w/renamed");
    let mut seek = text(&id);
    seek.from = "/w/renamed".into();
    let moved = bench.lifecycle.locate(&seek).await.unwrap();
    let Answer::Moved { hit, proposal, .. } = &moved.answer else { panic!("{moved:?}") };
    assert_eq!((hit.workdir, proposal.way), (Workdir::Moved, Way::Move));
    let wish = Relocation::new(mover.session(Some(key())), &proposal.to);
    assert!(matches!(bench.lifecycle.relocate(&wish).await, Ok(Relocated::Done { .. })));
    let next = bench.lifecycle.run(request("two").cwd("/w/renamed")).await.unwrap();
    assert_eq!(next.route, Route::Resumed);
}

#[tokio::test]
async fn host_and_container_are_one_project_with_a_map_and_two_without() {
    let bench = bench_with(Scripted::new(), true);
    bench.host.folders.lock().unwrap().insert("/home/dev/app".into(), folder("/home/dev/app", 4, "/g"));
    const TWO: &str = "77777777-7777-4777-8777-777777777777";
    let entries = vec![entry(ID, "/container/app", "Inside"), entry(TWO, "/home/dev/app", "Outside")];
    let cards = Cards { entries, unlisted: vec![] };
    let lifecycle = bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()).with_catalog(cards));
    let seek = |words: &str| {
        let mut seek = text(words);
        seek.from = "/home/dev/app".into();
        seek
    };
    let mapped = |words: &str| seek(words).same_folder("/container/app", "/home/dev/app");
    let own = lifecycle.locate(&seek("outside")).await.unwrap();
    assert!(matches!(own.answer, Answer::Found { .. }), "{own:?}");
    let two = lifecycle.locate(&seek("inside")).await.unwrap();
    assert!(matches!(two.answer, Answer::OtherProject { .. }), "nothing is guessed: {two:?}");
    let one = lifecycle.locate(&mapped("inside")).await.unwrap();
    let Answer::Moved { proposal, .. } = &one.answer else { panic!("{one:?}") };
    assert_eq!(proposal.to, Path::new("/home/dev/app"), "a relocation, asked for");
    let all = lifecycle.locate(&mapped("")).await.unwrap();
    assert!(matches!(&all.answer, Answer::Ambiguous { candidates, .. } if candidates.len() == 1), "{all:?}");
    let below = Seek::new(Wanted::Nothing, "/container/app").same_folder("/container/app", "/home/dev/app");
    assert!(matches!(lifecycle.locate(&below).await.unwrap().answer, Answer::Ambiguous { .. }));
}

#[tokio::test]
async fn a_folder_behind_a_link_is_the_folder_and_a_dead_link_is_taken_as_written() {
    let bench = bench_with(Scripted::new(), true);
    let real = folder("/w/real/app", 5, "/g");
    bench
        .host
        .folders
        .lock()
        .unwrap()
        .extend([("/w/link".into(), real.clone()), ("/w/real/app".into(), real)]);
    let entries = vec![
        entry(ID, "/w/real/app", "Real"),
        entry(THIRD, "/w/link", "Linked"),
        entry(DEAD, "/w/dead", "Dead"),
    ];
    let cards = Cards { entries, unlisted: vec![] };
    let lifecycle = bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()).with_catalog(cards));
    for (from, words) in
        [("/w/link", "real"), ("/w/link", "linked"), ("/w/real/app", "linked"), ("/w/dead", "dead")]
    {
        let mut seek = text(words);
        seek.from = from.into();
        let found = lifecycle.locate(&seek).await.unwrap();
        assert!(
            matches!(&found.answer, Answer::Found { hit, .. } if hit.workdir == Workdir::Same),
            "{found:?}"
        );
    }
}

const THIRD: &str = "33333333-3333-4333-8333-333333333333";
const DEAD: &str = "88888888-8888-4888-8888-888888888888";

#[tokio::test]
async fn a_session_that_went_into_a_work_tree_is_of_the_project_that_it_began_in() {
    let (bench, _, _) = bound().await;
    let mut second = entry(ID, "/w/demo", "Second");
    second.last_cwd = Some("/w/tree".into());
    let mut away = entry(THIRD, "/w/demo", "Away");
    away.last_cwd = Some("/w/other".into());
    let cards = Cards { entries: vec![second, away], unlisted: vec![] };
    let lifecycle = bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()).with_catalog(cards));
    for (words, now) in [("second", "/w/tree"), ("away", "/w/other")] {
        let found = lifecycle.locate(&text(words)).await.unwrap();
        let hit = found.hit().unwrap();
        assert_eq!(hit.workdir, Workdir::SameRepository, "{words}");
        assert_eq!(hit.folder.as_deref(), Some(Path::new(now)), "a resume uses the folder that it is in now");
    }
}

#[tokio::test]
async fn a_mailbox_whose_folder_and_files_are_gone_is_closed_and_closed_again() {
    let (bench, mover, _) = bound().await;
    bench.host.folders.lock().unwrap().clear();
    *mover.file.lock().unwrap() = None;
    let closed = bench.lifecycle.close(&key(), Closing::Done).await.unwrap();
    assert!(closed.session.is_some());
    assert_eq!(bench.lifecycle.record(&key()).await.unwrap(), None);
    let again = bench.lifecycle.close(&key(), Closing::Done).await.unwrap();
    assert_eq!(again.session, None, "nothing was missing that had to be there");
    bench.lifecycle.close_mailbox("../x", Closing::Done).await.unwrap();
}
