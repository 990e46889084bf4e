//! Sessions of an agent that files them by folder: the place of the file counts.

use session_core::decide::{Reach, refiled};

use super::*;

/// A catalog whose sessions lie in the folder that they are filed under.
#[derive(Debug, Clone)]
struct Shelves(Mover);

#[async_trait]
impl SessionCatalog for Shelves {
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        self.0.inspect(query).await
    }
    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError> {
        self.0.last_said(query, bytes).await
    }
    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Ok(false)
    }
    async fn find(&self, id: &NativeId, dir: Option<&Path>) -> Result<Vec<SessionEntry>, CatalogError> {
        self.0.find(id, dir).await
    }
    async fn relocate(&self, order: RelocateOrder<'_>) -> Result<Relocated, CatalogError> {
        self.0.relocate(order).await
    }
    fn is_filed_in(&self, source: &SessionSource, folder: &Path) -> Option<bool> {
        let below = folder.strip_prefix("/").unwrap();
        let place = source.state_dir.as_ref().map_or_else(|| folder.to_owned(), |dir| dir.join(below));
        Some(source.path.parent() == Some(&place))
    }
    async fn folder_of(&self, source: &SessionSource) -> Option<PathBuf> {
        source.path.parent().map(Path::to_owned)
    }
}

async fn shelved(reach: ReachCapability, place: &str) -> (Bench, Mover, String) {
    let (mut bench, mover, id) = bound().await;
    mover.file.lock().unwrap().as_mut().unwrap().source.path = Path::new(place).join(&id);
    bench.agent.capabilities.resume_reach = reach;
    let agent = Agent::new(bench.agent.clone()).with_catalog(Shelves(mover.clone()));
    bench.lifecycle = bench.lifecycle.agent(agent);
    (bench, mover, id)
}

#[tokio::test]
async fn a_session_is_found_from_where_its_file_lies() {
    use ReachCapability::{Anywhere, Repository, SameFolder};
    for (reach, place, from, is_found) in [
        // It tells of `/w/demo` in each case.
        (SameFolder, "/w/demo", "/w/demo", true),
        (SameFolder, "/w/demo", "/w/tree", false),
        (SameFolder, "/w/tree", "/w/tree", true),
        (SameFolder, "/w/tree", "/w/demo", false),
        (SameFolder, "/w/other", "/w/other", true),
        (SameFolder, "/w/other", "/w/demo", false),
        (Repository, "/w/demo", "/w/tree", true),
        (Repository, "/w/tree", "/w/demo", true),
        (Repository, "/w/other", "/w/demo", false),
        (Repository, "/w/gone", "/w/demo", false),
        (Anywhere, "/w/other", "/w/demo", true),
    ] {
        let (bench, mover, id) = shelved(reach, place).await;
        let mut seek = text(&id);
        seek.from = from.into();
        let located = bench.lifecycle.locate(&seek.other_project(true)).await.unwrap();
        let told = matches!(located.answer, Answer::Found { .. });
        assert!(told || matches!(located.answer, Answer::Moved { .. }), "{located:?}");
        assert_eq!(told, is_found, "{reach:?}: filed in {place}, from {from}");
        // A relocation does what was told, and goes back as well.
        let wish = Relocation::new(mover.session(None), from);
        let done = bench.lifecycle.relocate(&wish).await.unwrap();
        assert_eq!(done == Relocated::NothingToDo, is_found, "{reach:?}: {done:?}");
    }
}

#[tokio::test]
async fn a_session_is_continued_where_its_version_finds_it() {
    use ReachCapability::{Anywhere, SameFolder};
    for (reach, place, noted, expected) in [
        (SameFolder, "/w/tree", None, "/w/tree"),
        (Anywhere, "/w/tree", None, "/w/tree"),
        // Noted by a version that finds it from anywhere.
        (SameFolder, "/w/demo", Some("/w/other"), "/w/demo"),
        (Anywhere, "/w/demo", Some("/w/other"), "/w/other"),
    ] {
        let (bench, mover, id) = shelved(Anywhere, place).await;
        if let Some(noted) = noted {
            let wish = Relocation::new(mover.session(Some(key())), noted);
            assert_eq!(bench.lifecycle.relocate(&wish).await.unwrap(), Relocated::Noted);
        }
        let mut agent = bench.agent.clone();
        agent.capabilities.resume_reach = reach;
        let agent = Agent::new(agent).with_catalog(Shelves(mover.clone()));
        let lifecycle = bench.lifecycle.clone().agent(agent);
        let folder = lifecycle.continued_in(&mover.session(Some(key())), Path::new("/w/third")).await;
        assert_eq!(folder.as_deref(), Some(Path::new(expected)), "{reach:?} {id}");
    }
}

#[tokio::test]
async fn a_run_goes_by_the_place_of_the_file() {
    // A relocation that was killed before its word, and one of whose file a newer version made nothing.
    for (place, to, resumed) in [("/w/tree", "/w/tree", true), ("/w/tree", "/w/demo", false)] {
        let (bench, _, _) = shelved(ReachCapability::SameFolder, place).await;
        let next = bench.lifecycle.run(request("two").cwd(to)).await.unwrap();
        assert_eq!(next.route == Route::Resumed, resumed, "{to}: {:?}", next.route);
    }
}

#[tokio::test]
async fn a_fork_finds_its_original_in_the_state_dir_of_another_key() {
    let (mut bench, mover, _) = shelved(ReachCapability::SameFolder, "/state/issue-42/w/demo").await;
    *bench.store.dir.lock().unwrap() = Some("/state".into());
    bench.store.dirs_of_keys.store(true, std::sync::atomic::Ordering::Relaxed);
    bench.agent.capabilities.fork = ForkSupport::AgentChoosesId;
    bench.lifecycle = bench.lifecycle.agent(Agent::new(bench.agent.clone()).with_catalog(Shelves(mover)));
    let fork = request("two")
        .session(SessionRef::new("issue-43", "scripted"))
        .fork_of(SessionRef::new("issue-42", "scripted"));
    assert_eq!(bench.lifecycle.run(fork).await.unwrap().route, Route::Forked);
}

#[test]
fn the_place_of_a_file_makes_no_other_project_this_one() {
    for reach in Reach::ALL {
        for workdir in Workdir::ALL {
            for is_filed_here in [None, Some(false), Some(true)] {
                let by_place = refiled(*reach, *workdir, is_filed_here);
                if *workdir == Workdir::OtherProject || *reach != Reach::SameFolder || is_filed_here.is_none()
                {
                    assert_eq!(by_place, *workdir, "{reach:?} {is_filed_here:?}");
                } else {
                    assert_eq!(by_place == Workdir::Same, is_filed_here == Some(true), "{workdir:?}");
                }
            }
        }
    }
}
