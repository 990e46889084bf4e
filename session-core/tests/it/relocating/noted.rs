//! What a record says of a session whose file stays: its version finds it anyhow.

use super::*;

fn with_reach(bench: &Bench, mover: &Mover, reach: ReachCapability) -> Lifecycle {
    let mut agent = bench.agent.clone();
    agent.capabilities.resume_reach = reach;
    bench.lifecycle.clone().agent(Agent::new(agent).with_catalog(mover.clone()))
}

#[tokio::test]
async fn where_the_version_finds_it_anyhow_its_new_folder_is_noted_and_nothing_is_touched() {
    let (bench, mover, id) = bound().await;
    for (reach, to, expected, foreseen) in [
        (ReachCapability::SameFolder, "/w/demo", Relocated::NothingToDo, Foreseen::NothingToDo),
        (ReachCapability::Anywhere, "/w/other", Relocated::Noted, Foreseen::Noted),
        (ReachCapability::Anywhere, "/w/other", Relocated::NothingToDo, Foreseen::NothingToDo),
        (ReachCapability::Repository, "/w/tree", Relocated::Noted, Foreseen::Noted),
    ] {
        let lifecycle = with_reach(&bench, &mover, reach);
        let wish = Relocation::new(mover.session(Some(key())), to);
        let before = (bench.record().await, relocations(&bench).await.len());
        assert_eq!(lifecycle.foresee(&wish).await.unwrap(), foreseen, "{to}");
        assert_eq!((bench.record().await, relocations(&bench).await.len()), before, "nothing was changed");
        assert_eq!(lifecycle.relocate(&wish).await.unwrap(), expected, "{to}");
        assert_eq!(bench.record().await.binding.unwrap().folder().path.as_path(), Some(Path::new(to)));
    }
    assert!(mover.asked.lock().unwrap().is_empty());
    let [first, _] = relocations(&bench).await.try_into().unwrap();
    assert!(first.detail.unwrap().starts_with("from /w/demo to /w/other; "));
    // Later runs go on there, with no yes to another project.
    let lifecycle = with_reach(&bench, &mover, ReachCapability::Anywhere);
    let wish = Relocation::new(mover.session(Some(key())), "/w/other");
    assert_eq!(lifecycle.relocate(&wish).await.unwrap(), Relocated::Noted);
    let next = lifecycle.run(request("two").cwd("/w/other")).await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(NativeId::new(id.as_str()))));
}

#[tokio::test]
async fn what_could_not_be_noted_is_no_success() {
    let (bench, mover, _) = bound().await;
    let lifecycle = with_reach(&bench, &mover, ReachCapability::Anywhere);
    let wish = Relocation::new(mover.session(Some(key())), "/w/other");
    let lease = bench.store.inner.lease(&key(), &bench.host.holder()).await.unwrap();
    assert_eq!(lifecycle.relocate(&wish).await.unwrap(), Relocated::Refused(Refusal::Busy));
    assert_eq!(lifecycle.foresee(&wish).await.unwrap(), Foreseen::Refused(Refusal::Busy));
    drop(lease);
    bench.store.set(&["save"]);
    let failed = lifecycle.relocate(&wish).await;
    assert!(matches!(failed, Err(HistoryError::Store(_))), "{failed:?}");
}

#[tokio::test]
async fn a_session_of_the_past_lives_where_it_was_relocated_to() {
    let (bench, mover, id) = bound().await;
    let lifecycle = with_reach(&bench, &mover, ReachCapability::Anywhere);
    let first = Some(NativeId::new(id.as_str()));
    let wish = |to: &str| Relocation::new(mover.session(Some(key())), to);
    assert_eq!(lifecycle.relocate(&wish("/w/other")).await.unwrap(), Relocated::Noted);
    // Nobody looks at files here.
    let runs = bench.lifecycle.clone().agent(Agent::new(bench.agent.clone()));
    // Its old folder has another one from now on, and each folder goes on with its own.
    let second = runs.run(request("two")).await.unwrap();
    assert!(matches!(second.route, Route::FellBack(_)), "{:?}", second.route);
    let past = bench.record().await.past.pop().unwrap();
    assert_eq!(past.folder().unwrap().path.as_path(), Some(Path::new("/w/other")));
    assert_eq!(past.began_in.unwrap().path.as_path(), Some(Path::new("/w/demo")));
    let back = runs.run(request("three").cwd("/w/other")).await.unwrap();
    assert_eq!((back.route, &back.session_id), (Route::Resumed, &first));
    let binding = bench.record().await.binding.unwrap();
    assert_eq!(binding.began_in.path.as_path(), Some(Path::new("/w/demo")), "where it began stays known");
    let again = runs.run(request("four").cwd("/w/other")).await.unwrap();
    assert_eq!((again.route, &again.session_id), (Route::Resumed, &first));
}

#[test]
fn a_record_of_before_has_its_former_sessions_where_they_began() {
    let former = r#"{"native_id":"x","why":"other_folder","at":"2026-03-09T14:00:00.000Z","rejoinable":true,
        "began_in":{"path":"/w/demo","id":null,"repository":null}}"#;
    let former: Former = serde_json::from_str(former).unwrap();
    assert_eq!(former.folder(), former.began_in.as_ref());
    assert!(!serde_json::to_string(&former).unwrap().contains("lives_in"));
}
