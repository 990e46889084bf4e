//! Which session is meant: the decision over all facts, and the order of what is looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use session_core::decide::*;
use session_core::error::{CatalogError, HistoryError};
use session_core::history::*;
use session_core::*;

use crate::bench::{Bench, bench_with};
use crate::scripted::*;

pub(crate) const ID: &str = "11111111-1111-4111-8111-111111111111";
const OTHER: &str = "11111111-2222-4222-8222-222222222222";
const THIRD: &str = "33333333-3333-4333-8333-333333333333";

/// A catalog of what the test puts into it, by state dir.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cards {
    pub(crate) entries: Vec<SessionEntry>,
    /// Those that no list shows.
    pub(crate) unlisted: Vec<SessionEntry>,
}

#[async_trait]
impl SessionCatalog for Cards {
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
        let here = |entry: &&SessionEntry| entry.source.state_dir == query.state_dir;
        Ok(Listing { sessions: self.entries.iter().filter(here).cloned().collect(), ..Listing::default() })
    }
    async fn find(&self, id: &NativeId, dir: Option<&Path>) -> Result<Vec<SessionEntry>, CatalogError> {
        let all = self.entries.iter().chain(&self.unlisted);
        let is = |entry: &&SessionEntry| entry.id == *id && entry.source.state_dir.as_deref() == dir;
        Ok(all.filter(is).cloned().collect())
    }
}

pub(crate) fn entry(id: &str, cwd: &str, title: &str) -> SessionEntry {
    let source = SessionSource { path: Path::new(cwd).join(id), state_dir: None };
    let mut entry = SessionEntry::new(NativeId::new(id), source);
    entry.cwd = Some(cwd.into());
    entry.title = (!title.is_empty()).then(|| Title { text: title.into(), source: TitleSource::Given });
    entry.updated = Some(Timestamp::from_millis(1));
    entry
}

pub(crate) fn with(cards: Cards) -> Bench {
    let agent = Scripted::new();
    let mut bench = bench_with(agent.clone(), true);
    let there = [("/w/tree", 2, "/w/demo/.git"), ("/w/other", 3, "/w/other/.git")];
    let folders = there.map(|(path, inode, git)| (PathBuf::from(path), folder(path, inode, git)));
    bench.host.folders.lock().unwrap().extend(folders);
    bench.lifecycle = bench.lifecycle.agent(Agent::new(agent).with_catalog(cards));
    bench
}

pub(crate) fn text(text: &str) -> Seek {
    Seek::new(Wanted::Text(text.to_owned()), "/w/demo")
}

fn all_facts() -> impl Iterator<Item = LocateFacts> {
    let all = || Sign::ALL.iter().flat_map(|sign| Hits::ALL.iter().map(move |hits| (*sign, *hits)));
    let all = all().flat_map(|(sign, hits)| Standing::ALL.iter().map(move |s| (sign, hits, *s)));
    let all = all.flat_map(|(sign, hits, s)| Workdir::ALL.iter().map(move |w| (sign, hits, s, *w)));
    let all = all.flat_map(|(sign, hits, s, w)| Reach::ALL.iter().map(move |r| (sign, hits, s, w, *r)));
    all.flat_map(|(sign, hits, standing, workdir, reach)| {
        let facts =
            move |consent: &Consent| LocateFacts { sign, hits, standing, workdir, reach, consent: *consent };
        Consent::ALL.iter().map(facts)
    })
}

#[test]
fn over_all_facts_no_look_takes_what_it_must_not() {
    let mut cases = 0;
    for facts in all_facts() {
        cases += 1;
        let answer = judge(facts);
        let chosen = matches!(answer, Judgement::Found | Judgement::Relocate);
        let foreign = facts.workdir == Workdir::OtherProject && facts.consent == Consent::No;
        assert!(!(chosen && foreign), "another project without a yes: {facts:?}");
        assert!(!(chosen && facts.hits != Hits::One), "one of several: {facts:?}");
        assert!(!(chosen && facts.standing != Standing::Resumable), "{facts:?}");
        assert!((facts.hits == Hits::None) <= (answer == Judgement::GoOn), "{facts:?}");
        let named_in_vain =
            facts.hits == Hits::One && tells_why_not(facts.sign) && facts.standing != Standing::Resumable;
        assert_eq!(named_in_vain, answer == Judgement::CannotResume, "who names one is told: {facts:?}");
        if facts.hits == Hits::One && answer == Judgement::Offer {
            assert!(proposes(facts.sign, facts.standing, facts.workdir, facts.consent), "{facts:?}");
        }
        if answer == Judgement::Found {
            assert!(reaches(facts.reach, facts.workdir), "{facts:?}");
        }
        let vague = matches!(facts.sign, Sign::Words | Sign::Project);
        assert!(!(vague && chosen), "what is only proposed is not chosen: {facts:?}");
        for standing in [Standing::Unresumable, Standing::Aside] {
            assert!(!proposes(facts.sign, standing, facts.workdir, facts.consent));
        }
    }
    assert_eq!(cases, 8 * 3 * 3 * 5 * 3 * 2);
    for asked in Given::ALL {
        let tried: Vec<_> = Sign::ALL.iter().filter(|sign| tries(*asked, **sign)).collect();
        assert!(!tried.is_empty());
        let by_tree = tries(*asked, Sign::Tree) || tries(*asked, Sign::Key);
        assert!(!is_gone(*asked) || by_tree, "{asked:?}: lost only where the trees were asked");
    }
}

#[tokio::test]
async fn the_first_sign_that_leads_to_a_session_answers() {
    let entries = vec![entry(ID, "/w/demo", "Fix the login"), entry(THIRD, "/w/demo", "  fix THE login ")];
    let bench = with(Cards { entries: entries.clone(), unlisted: vec![] });
    let found = bench.lifecycle.locate(&text(ID)).await.unwrap();
    assert!(matches!(&found.answer, Answer::Found { how: Sign::Id, hit } if hit.workdir == Workdir::Same));
    let two = bench.lifecycle.locate(&text("fix the LOGIN")).await.unwrap();
    assert!(
        matches!(&two.answer, Answer::Ambiguous { candidates, how: Sign::Title } if candidates.len() == 2)
    );
    let one = bench.lifecycle.locate(&text("11111111-1")).await.unwrap();
    assert!(matches!(&one.answer, Answer::Found { how: Sign::Prefix, .. }), "{one:?}");
    let short = bench.lifecycle.locate(&text("1111111")).await.unwrap();
    assert_eq!(short.answer, Answer::Nothing, "too short to be the beginning of an id");
    let words = bench.lifecycle.locate(&text("login fix")).await.unwrap();
    assert!(matches!(&words.answer, Answer::Ambiguous { how: Sign::Words, .. }), "{words:?}");
    let none = bench.lifecycle.locate(&text("payment")).await.unwrap();
    assert_eq!(none.answer, Answer::Nothing);
    let signs: Vec<_> = none.looked_at.iter().map(|look| look.sign).collect();
    assert_eq!(signs, [Sign::Roster, Sign::Title], "one list serves all that search it");
}

#[tokio::test]
async fn the_beginning_of_an_id_tells_why_not_where_it_is_one_sessions() {
    let empty = |id| SessionEntry {
        resumable: Resumability::No(Unresumable::Empty),
        ..entry(id, "/w/demo", "Fix the login")
    };
    let answer = async |entries| {
        let bench = with(Cards { entries, unlisted: vec![] });
        bench.lifecycle.locate(&text("11111111")).await.unwrap().answer
    };
    let one = answer(vec![empty(ID)]).await;
    assert!(matches!(&one, Answer::CannotResume { how: Sign::Prefix, .. }), "{one:?}");
    let other = answer(vec![empty(ID), entry(OTHER, "/w/demo", "")]).await;
    assert!(
        matches!(&other, Answer::Found { hit, .. } if hit.session.entry.id.as_str() == OTHER),
        "{other:?}"
    );
    let several = answer(vec![empty(ID), empty(OTHER)]).await;
    assert_eq!(several, Answer::Nothing, "nobody can tell which one was meant");
}

#[tokio::test]
async fn words_propose_even_one_session_and_never_choose() {
    let bench = with(Cards { entries: vec![entry(ID, "/w/demo", "Fix the login")], unlisted: vec![] });
    let one = bench.lifecycle.locate(&text("login")).await.unwrap();
    assert!(matches!(&one.answer, Answer::Ambiguous { candidates, .. } if candidates.len() == 1), "{one:?}");
}

#[tokio::test]
async fn a_key_leads_to_the_session_that_is_bound_and_its_name_does_too() {
    let bench = bench_with(Scripted::new(), true);
    let id = bench.run("one").await.session_id.unwrap();
    let cards = Cards { entries: vec![entry(id.as_str(), "/w/demo", "")], unlisted: vec![] };
    let lifecycle = bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()).with_catalog(cards));
    for words in ["issue-42", "issue-42@scripted"] {
        let found = lifecycle.locate(&text(words)).await.unwrap();
        let Answer::Found { hit, how: Sign::Key } = &found.answer else { panic!("{words}: {found:?}") };
        assert_eq!((hit.session.key.as_ref(), hit.session.bound), (Some(&key()), true));
    }
    let named = lifecycle.locate(&text("Agent/Issue-42")).await.unwrap();
    assert!(matches!(named.answer, Answer::Found { how: Sign::Title, .. }), "{named:?}");
    let gone = Seek::new(Wanted::Key(SessionKey::new("issue-43", "scripted").unwrap()), "/w/demo");
    assert_eq!(lifecycle.locate(&gone).await.unwrap().answer, Answer::Gone);
}

#[tokio::test]
async fn a_session_of_another_project_needs_a_yes() {
    let entries = vec![entry(ID, "/w/other", "Fix the login"), entry(THIRD, "/w/gone", "Pay")];
    let mut bench = with(Cards { entries, unlisted: vec![] });
    for words in [ID, "fix the login", "11111111"] {
        let asked = bench.lifecycle.locate(&text(words)).await.unwrap();
        assert!(matches!(asked.answer, Answer::OtherProject { .. }), "{words}: {asked:?}");
        let yes = bench.lifecycle.locate(&text(words).other_project(true)).await.unwrap();
        let Answer::Moved { proposal, .. } = &yes.answer else { panic!("{words}: {yes:?}") };
        assert_eq!((proposal.way, proposal.to.as_path()), (Way::Move, Path::new("/w/demo")));
    }
    assert_eq!(bench.lifecycle.locate(&text("login")).await.unwrap().answer, Answer::Nothing);
    assert_eq!(
        bench.lifecycle.locate(&Seek::new(Wanted::Nothing, "/w/demo")).await.unwrap().answer,
        Answer::Nothing
    );
    let gone = bench.lifecycle.locate(&text(THIRD)).await.unwrap();
    assert!(matches!(gone.answer, Answer::OtherProject { .. }), "a folder that nobody knows: {gone:?}");
    // A version that finds sessions from anywhere needs the yes alone.
    bench.agent.capabilities.resume_reach = ReachCapability::Anywhere;
    let cards = Cards { entries: vec![entry(ID, "/w/other", "")], unlisted: vec![] };
    let lifecycle = bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()).with_catalog(cards));
    assert!(matches!(lifecycle.locate(&text(ID)).await.unwrap().answer, Answer::OtherProject { .. }));
    let yes = lifecycle.locate(&text(ID).other_project(true)).await.unwrap();
    assert!(matches!(yes.answer, Answer::Found { .. }), "{yes:?}");
}

#[tokio::test]
async fn a_session_whose_work_tree_is_gone_is_of_the_project_that_it_began_in() {
    let mut left = entry(ID, "/w/demo", "login");
    left.last_cwd = Some("/trees/gone".into());
    let bench = with(Cards { entries: vec![left.clone()], unlisted: vec![] });
    let moved = bench.lifecycle.locate(&text(ID)).await.unwrap();
    let (Answer::Found { hit, .. } | Answer::Moved { hit, .. }) = &moved.answer else { panic!("{moved:?}") };
    assert_eq!((hit.workdir, hit.folder.as_deref()), (Workdir::SameRepository, left.last_cwd.as_deref()));
}

#[tokio::test]
async fn one_of_this_project_comes_before_those_of_others() {
    let entries = vec![entry(OTHER, "/w/other", "Login"), entry(ID, "/w/tree", "login")];
    let bench = with(Cards { entries, unlisted: vec![] });
    let found = bench.lifecycle.locate(&text("LOGIN")).await.unwrap();
    let Answer::Found { hit, .. } = &found.answer else { panic!("{found:?}") };
    assert_eq!((hit.session.entry.id.as_str(), hit.workdir), (ID, Workdir::SameRepository));
}

#[tokio::test]
async fn the_own_session_helpers_and_what_cannot_be_continued_are_no_candidates_and_say_why() {
    let mut helper = entry(ID, "/w/demo", "login");
    helper.kind = SessionKind::Sidechain;
    let mut empty = entry(OTHER, "/w/demo", "login");
    empty.resumable = Resumability::No(Unresumable::Empty);
    let mut archived = entry("44444444-4444-4444-8444-444444444444", "/w/demo", "login");
    archived.resumable = Resumability::Archived;
    let entries = vec![helper, empty, archived, entry(THIRD, "/w/demo", "login")];
    let bench = with(Cards { entries, unlisted: vec![] });
    let seek = |text_: &str| text(text_).current(NativeId::new(THIRD));
    for words in ["login", "logi", ""] {
        let none = bench.lifecycle.locate(&seek(words)).await.unwrap();
        assert_eq!(none.answer, Answer::Nothing, "{words:?}");
    }
    let whys = [
        (ID, NotResumed::Sidechain),
        (OTHER, NotResumed::File(Resumability::No(Unresumable::Empty))),
        ("44444444-4444-4444-8444-444444444444", NotResumed::File(Resumability::Archived)),
        (THIRD, NotResumed::Current),
    ];
    for (id, expected) in whys {
        let told = bench.lifecycle.locate(&seek(id)).await.unwrap();
        assert!(matches!(told.answer, Answer::CannotResume { why, .. } if why == expected), "{told:?}");
    }
    let one = bench.lifecycle.locate(&text("login")).await.unwrap();
    assert!(matches!(one.answer, Answer::Found { .. }), "one is left where nobody asks from it: {one:?}");
}

#[tokio::test]
async fn an_index_that_misses_a_session_is_no_reason_to_call_it_lost() {
    let bench = bench_with(Scripted::new(), true);
    bench.run("one").await;
    *bench.store.dir.lock().unwrap() = Some(PathBuf::from("/state"));
    let mut hidden = entry(ID, "/w/demo", "");
    hidden.source.state_dir = Some("/state".into());
    let cards = Cards { entries: vec![], unlisted: vec![hidden] };
    let lifecycle = bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()).with_catalog(cards));
    let found = lifecycle.locate(&text(ID)).await.unwrap();
    let Answer::Found { hit, how: Sign::Tree } = &found.answer else { panic!("{found:?}") };
    assert_eq!(hit.session.key, Some(key()), "what lies in a key's state dir is the key's");
    let gone = lifecycle.locate(&text(OTHER)).await.unwrap();
    assert_eq!(gone.answer, Answer::Gone);
    let places: Vec<_> = gone.looked_at.iter().map(|look| (look.sign, look.place.clone())).collect();
    assert!(places.contains(&(Sign::Tree, Some("/state".into()))), "{places:?}");
}

#[tokio::test]
async fn what_could_not_be_looked_at_is_told() {
    // The bench's own catalog neither lists nor finds: its file is looked at as a run would.
    let bench = bench_with(Scripted::new(), true);
    bench.agent.world().sessions.insert(ID.to_owned(), vec!["hello".to_owned()]);
    let found = bench.lifecycle.locate(&text(ID)).await.unwrap();
    assert!(matches!(found.answer, Answer::OtherProject { .. }), "its folder is not known: {found:?}");
    let none = bench.lifecycle.locate(&text("login")).await.unwrap();
    assert_eq!(none.answer, Answer::Nothing);
    assert!(!none.is_complete(), "an agent that cannot be listed: {none:?}");
    bench.store.set(&["list"]);
    let found = bench.lifecycle.locate(&text(ID)).await.unwrap();
    assert!(found.hit().is_some() && !found.is_complete(), "{found:?}");
    let nobody = text(ID).agent(AgentId::new("nobody").unwrap());
    let nobody = bench.lifecycle.locate(&nobody).await;
    assert!(matches!(nobody, Err(HistoryError::UnknownAgent { .. })), "{nobody:?}");
}

#[derive(Debug)]
struct Background(BTreeMap<&'static str, &'static str>);

#[async_trait]
impl Roster for Background {
    async fn running(&self) -> Result<Vec<Running>, String> {
        let running = |(name, id): (&&str, &&str)| Running {
            agent: AgentId::new("scripted").unwrap(),
            id: NativeId::new(*id),
            name: Some((*name).to_owned()),
        };
        Ok(self.0.iter().map(running).collect())
    }
}

#[tokio::test]
async fn what_runs_in_the_background_is_found_by_its_name_before_titles() {
    let entries = vec![entry(ID, "/w/demo", "login"), entry(OTHER, "/w/demo", "")];
    let bench = with(Cards { entries, unlisted: vec![] });
    let roster = Arc::new(Background(BTreeMap::from([("Login", OTHER)])));
    let found = bench.lifecycle.roster(roster).locate(&text("login")).await.unwrap();
    let Answer::Found { hit, how: Sign::Roster } = &found.answer else { panic!("{found:?}") };
    assert_eq!(hit.session.entry.id.as_str(), OTHER);
}

#[tokio::test]
async fn a_session_that_is_split_is_one_session_with_another_file() {
    let mut old = entry(ID, "/w/other", "");
    old.updated = Some(Timestamp::from_millis(9));
    let bench = with(Cards { entries: vec![old, entry(ID, "/w/demo", "")], unlisted: vec![] });
    let found = bench.lifecycle.locate(&text(ID)).await.unwrap();
    let Answer::Found { hit, .. } = &found.answer else { panic!("{found:?}") };
    assert_eq!(hit.session.entry.cwd.as_deref(), Some(Path::new("/w/demo")), "the nearer one");
    assert_eq!(hit.copies, [Path::new("/w/other").join(ID)], "the other one is told");
}
