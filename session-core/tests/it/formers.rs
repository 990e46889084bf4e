//! Sessions of the past, sought again by their folder.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use session_core::decide::{Activity, Verdict, Why};
use session_core::*;

use crate::altered::altered;
use crate::bench::*;
use crate::scripted::*;

/// Two work trees of one repository, with an agent that resumes only where a session began.
async fn two_trees() -> (Bench, Option<NativeId>, Option<NativeId>) {
    let mut agent = Scripted::new();
    agent.capabilities.resume_reach = ReachCapability::SameFolder;
    let bench = bench_with(agent, true);
    let tree = ("/w/tree".into(), folder("/w/tree", 3, "/w/demo/.git"));
    bench.host.folders.lock().unwrap().extend([tree]);
    let there = bench.lifecycle.run(request("there").cwd("/w/tree")).await.unwrap().session_id;
    let here = bench.run("here").await.session_id;
    assert_ne!(here, there);
    (bench, here, there)
}

/// A run whose runner dies while the agent's next call goes on.
async fn dies_in_the_next(bench: &Bench, request: LlmRequest) {
    let calls = bench.agent.calls().len();
    let run = bench.lifecycle.run(request);
    let death = async {
        while bench.agent.calls().len() == calls {
            tokio::task::yield_now().await;
        }
        // Until what the agent named could be saved.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { _ = run => unreachable!("the agent hangs"), () = death => {} }
}

#[tokio::test]
async fn a_poisoned_binding_hides_no_session_of_this_folder() {
    let (bench, _, there) = two_trees().await;
    bench.agent.will([Act::Fail(Verdict::ContextOverflow, Activity::ModelCalled)]);
    bench.fails("too long").await;
    let back = bench.lifecycle.run(request("back").cwd("/w/tree")).await.unwrap();
    assert_eq!((back.route, back.session_id), (Route::Resumed, there));
}

#[tokio::test]
async fn a_lost_binding_hides_no_session_of_this_folder() {
    let (bench, here, there) = two_trees().await;
    bench.lose(here.unwrap().as_str());
    let back = bench.lifecycle.run(request("back").cwd("/w/tree")).await.unwrap();
    assert_eq!((back.route, back.session_id), (Route::Resumed, there));
}

#[tokio::test]
async fn a_condemned_session_does_not_revive_the_one_it_superseded() {
    let (bench, old, _) = two_folders().await;
    let new = bench.lifecycle.run(request("new").resume(ResumePolicy::Never)).await.unwrap().session_id;
    assert_ne!(new, old);
    bench.lifecycle.run(request("there").cwd("/w/other")).await.unwrap();
    assert_eq!(bench.run("back").await.session_id, new);
    bench.lifecycle.run(request("there").cwd("/w/other")).await.unwrap();
    bench.agent.will([Act::Fail(Verdict::ContextOverflow, Activity::ModelCalled)]);
    bench.fails("too long").await;
    let next = bench.run("next").await;
    assert_ne!(next.session_id, old, "{:?}", next.route);
}

#[tokio::test]
async fn failures_of_a_former_do_not_count_against_the_binding() {
    let (bench, _, there) = two_folders().await;
    for _ in 0..3 {
        bench.agent.will([Act::Fail(Verdict::Crashed, Activity::None)]);
        bench.lifecycle.run(request("x").resume(ResumePolicy::Require)).await.unwrap_err();
    }
    let back = bench.lifecycle.run(request("back").cwd("/w/other")).await.unwrap();
    assert_eq!((back.route, back.session_id), (Route::Resumed, there));
}

#[tokio::test]
async fn failures_of_the_binding_do_not_count_against_a_former() {
    let (bench, here, _) = two_folders().await;
    for _ in 0..3 {
        bench.agent.will([Act::Fail(Verdict::Crashed, Activity::None)]);
        bench.lifecycle.run(request("x").cwd("/w/other").resume(ResumePolicy::Require)).await.unwrap_err();
    }
    let back = bench.run("back").await;
    assert_eq!((back.route, back.session_id), (Route::Resumed, here));
}

#[tokio::test]
async fn what_ruins_a_copy_condemns_its_original() {
    let ruin = Verdict::ContextOverflow;
    for act in [Act::Fail(ruin, Activity::ModelCalled), Act::FailAfterKeeping(ruin)] {
        let mut agent = Scripted::new();
        agent.capabilities.id_on_resume = IdOnResume::Replaced;
        let bench = bench_with(agent, true);
        let first = bench.run("one").await.session_id.unwrap();
        bench.agent.will([act]);
        bench.fails("too long").await;
        bench.run("next").await;
        assert!(!matches!(bench.agent.calls().last(), Some(Asked::Resume(id)) if *id == first));
    }
}

#[tokio::test]
async fn a_former_that_cannot_be_read_for_now_keeps_its_place() {
    let (bench, here, _) = two_folders().await;
    let veil = Arc::new(Mutex::new(here.clone()));
    let veiled = altered(&bench, &veil, |look| look.presence = Presence::Unreadable);
    let aside = veiled.run(request("aside")).await.unwrap();
    assert!(!aside.resumed);
    *veil.lock().unwrap() = None;
    let back = veiled.run(request("back")).await.unwrap();
    assert_eq!((back.route, back.session_id), (Route::Resumed, here), "aside was {:?}", aside.route);
}

#[tokio::test]
async fn a_row_of_failures_does_not_pass_to_a_session_begun_elsewhere_or_on_purpose() {
    for (policy, cwd) in [(ResumePolicy::Prefer, "/w/new"), (ResumePolicy::Never, "/w/demo")] {
        let bench = bench();
        bench.host.folders.lock().unwrap().extend([("/w/new".into(), folder("/w/new", 4, "/w/new/.git"))]);
        bench.run("one").await;
        for _ in 0..3 {
            bench.agent.will([Act::Fail(Verdict::Crashed, Activity::None)]);
            bench.lifecycle.run(request("x").resume(ResumePolicy::Require)).await.unwrap_err();
        }
        let new = bench.lifecycle.run(request("new").resume(policy).cwd(cwd)).await.unwrap();
        assert!(!new.resumed);
        let next = bench.lifecycle.run(request("next").cwd(cwd)).await.unwrap();
        assert_eq!((next.route, next.session_id), (Route::Resumed, new.session_id), "{policy:?}");
    }
}

#[tokio::test]
async fn a_closed_session_is_not_found_again_by_its_folder() {
    let (bench, _, there) = two_folders().await;
    let mut record = bench.record().await;
    record.binding.as_mut().unwrap().phase = Phase::Closed;
    assert!(matches!(
        bench.store.save(&key(), &codec::encode(&record), &Guard::Any, None).await,
        Ok(Saved::Done(_))
    ));
    bench.run("here").await;
    let back = bench.lifecycle.run(request("back").cwd("/w/other")).await.unwrap();
    assert_ne!(back.session_id, there, "{:?}", back.route);
}

#[tokio::test]
async fn a_copy_of_a_former_whose_runner_died() {
    let mut agent = Scripted::new();
    agent.capabilities.id_on_resume = IdOnResume::Replaced;
    let bench = bench_with(agent, true);
    bench.host.folders.lock().unwrap().extend([("/w/other".into(), folder("/w/other", 3, "/w/other/.git"))]);
    bench.run("here").await;
    let there = bench.lifecycle.run(request("there").cwd("/w/other")).await.unwrap().session_id.unwrap();
    bench.agent.will([Act::Hang]);
    dies_in_the_next(&bench, request("again")).await;
    let back = bench.lifecycle.run(request("back").cwd("/w/other")).await.unwrap();
    assert_eq!(back.route, Route::Resumed);
    assert!(matches!(bench.agent.calls().last(), Some(Asked::Resume(id)) if *id == there));
    let here = bench.run("here again").await;
    assert_eq!((here.route, here.text.as_str()), (Route::Resumed, "3"));
}

#[tokio::test]
async fn a_runner_that_dies_in_the_binding_in_place_of_the_former() {
    let (bench, here, there) = two_folders().await;
    let name: &'static str = Box::leak(there.clone().unwrap().to_string().into_boxed_str());
    bench.agent.will([Act::HangElsewhere(name)]);
    dies_in_the_next(&bench, request("again")).await;
    assert_eq!(bench.lifecycle.run(request("t").cwd("/w/other")).await.unwrap().session_id, there);
    assert_eq!(bench.run("h").await.session_id, here);
    assert_eq!(bench.lifecycle.run(request("t").cwd("/w/other")).await.unwrap().session_id, there);
    assert!(bench.record().await.past.iter().all(|f| Some(&f.native_id) != there.as_ref()));
}

#[tokio::test]
async fn a_former_that_keeps_failing_is_given_up_and_its_row_stays_its_own() {
    let (bench, here, there) = two_folders().await;
    for _ in 0..3 {
        bench.agent.will([Act::Fail(Verdict::Crashed, Activity::None)]);
        bench.lifecycle.run(request("x").resume(ResumePolicy::Require)).await.unwrap_err();
    }
    let tried = bench.agent.calls().len();
    let new = bench.run("given up").await;
    assert_eq!(new.route, Route::FellBack(Why::ResumeKeepsFailing));
    assert_ne!(new.session_id, here);
    assert_eq!(bench.agent.calls().len(), tried + 1);
    let back = bench.lifecycle.run(request("back").cwd("/w/other")).await.unwrap();
    assert_eq!((back.route, back.session_id), (Route::Resumed, there));
    let again = bench.run("again").await;
    assert_eq!((again.route, again.session_id), (Route::Resumed, new.session_id));
}

/// A resume that fails without a trace.
async fn crash(bench: &Bench, cwd: &str) {
    bench.agent.will([Act::Fail(Verdict::Crashed, Activity::None)]);
    bench.lifecycle.run(request("x").cwd(cwd).resume(ResumePolicy::Require)).await.unwrap_err();
}

#[tokio::test]
async fn the_row_of_the_binding_does_not_pass_to_an_adopted_copy_of_a_former() {
    let mut agent = Scripted::new();
    agent.capabilities.id_on_resume = IdOnResume::Replaced;
    let bench = bench_with(agent, true);
    bench.host.folders.lock().unwrap().extend([("/w/other".into(), folder("/w/other", 3, "/w/other/.git"))]);
    bench.run("here").await;
    bench.lifecycle.run(request("there").cwd("/w/other")).await.unwrap();
    crash(&bench, "/w/other").await;
    crash(&bench, "/w/other").await;
    bench.agent.will([Act::Hang]);
    dies_in_the_next(&bench, request("again")).await;
    crash(&bench, "/w/demo").await;
    let here = bench.run("here again").await;
    assert_eq!(here.route, Route::Resumed);
}

#[tokio::test]
async fn two_failures_do_not_pass_to_a_session_begun_elsewhere() {
    let bench = bench();
    bench.host.folders.lock().unwrap().extend([("/w/new".into(), folder("/w/new", 4, "/w/new/.git"))]);
    bench.run("one").await;
    crash(&bench, "/w/demo").await;
    crash(&bench, "/w/demo").await;
    let new = bench.lifecycle.run(request("new").cwd("/w/new")).await.unwrap();
    crash(&bench, "/w/new").await;
    let next = bench.lifecycle.run(request("next").cwd("/w/new")).await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, new.session_id));
}

#[tokio::test]
async fn a_condemned_former_does_not_hide_a_newer_one_that_stood_aside() {
    let (bench, here, _) = two_folders().await;
    bench.agent.will([Act::Fail(Verdict::ContextOverflow, Activity::ModelCalled)]);
    bench.fails("too long").await;
    bench.agent.will([Act::FailAfterKeeping(Verdict::Crashed)]);
    bench.fails("cut").await;
    let aside = bench.record().await.past.last().unwrap().native_id.clone();
    assert_ne!(Some(&aside), here.as_ref());
    let next = bench.run("next").await;
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(aside)));
}

/// A binding whose file says that it began in another folder than the record does.
async fn strange(poison: bool) {
    let bench = bench();
    let which = Arc::new(Mutex::new(None));
    let life = altered(&bench, &which, |look| look.began_in = Some("/w/strange".into()));
    let old = life.run(request("old")).await.unwrap().session_id;
    let new = life.run(request("new").resume(ResumePolicy::Never)).await.unwrap().session_id;
    assert_ne!(old, new);
    if poison {
        bench.agent.will([Act::Fail(Verdict::ContextOverflow, Activity::ModelCalled)]);
        life.run(request("too long")).await.unwrap_err();
    }
    *which.lock().unwrap() = new.clone();
    let next = life.run(request("next")).await.unwrap();
    assert_ne!(next.session_id, old, "{:?}", next.route);
}

#[tokio::test]
async fn a_poisoned_binding_in_its_own_folder_revives_nothing() {
    strange(true).await;
}

#[tokio::test]
async fn a_binding_that_began_elsewhere_revives_nothing_in_its_own_folder() {
    strange(false).await;
}

#[tokio::test]
async fn a_former_ruined_after_it_acted_is_not_revived() {
    let (bench, here, _) = two_folders().await;
    for v in [Verdict::ContextOverflow, Verdict::Incompatible] {
        bench.agent.will([Act::Fail(v, Activity::Acted)]);
        let was = bench.lifecycle.run(request("x")).await.unwrap_err();
        let next = bench.run("next").await;
        assert_ne!(next.route, Route::Resumed, "{was:?}");
        assert_ne!(next.session_id, here);
        bench.lifecycle.run(request("t").cwd("/w/other")).await.unwrap();
    }
}

#[tokio::test]
async fn two_failures_do_not_pass_to_a_session_begun_on_purpose() {
    let bench = bench();
    bench.run("one").await;
    crash(&bench, "/w/demo").await;
    crash(&bench, "/w/demo").await;
    let new = bench.lifecycle.run(request("new").resume(ResumePolicy::Never)).await.unwrap();
    crash(&bench, "/w/demo").await;
    let next = bench.run("next").await;
    assert_eq!((next.route, next.session_id), (Route::Resumed, new.session_id));
}

#[tokio::test]
async fn a_lost_former_does_not_hide_a_newer_one_that_stood_aside() {
    let (bench, here, _) = two_folders().await;
    bench.lose(here.unwrap().as_str());
    bench.agent.will([Act::FailAfterKeeping(Verdict::Crashed)]);
    bench.fails("cut").await;
    let aside = bench.record().await.past.last().unwrap().native_id.clone();
    let next = bench.run("next").await;
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(aside)));
}

#[tokio::test]
async fn a_session_of_the_past_is_not_set_aside_twice() {
    let (bench, here, _) = two_folders().await;
    bench.host.folders.lock().unwrap().extend([("/w/third".into(), folder("/w/third", 5, "/w/third/.git"))]);
    let name: &'static str = Box::leak(here.unwrap().to_string().into_boxed_str());
    bench.agent.will([Act::HangElsewhere(name)]);
    dies_in_the_next(&bench, request("again").cwd("/w/third")).await;
    bench.lifecycle.run(request("t").cwd("/w/other")).await.unwrap();
    let past = bench.record().await.past;
    assert_eq!(past.iter().filter(|f| f.native_id.as_str() == name).count(), 1, "{past:#?}");
}

/// What answers in the place of a session is no session of its folder, whatever comes of it later.
#[tokio::test]
async fn a_stranger_that_is_ruined_later_hides_no_session_of_the_folder() {
    const STRANGER: &str = "99999999-9999-4999-8999-999999999999";
    let (bench, _, there) = two_trees().await;
    bench.agent.will([Act::Elsewhere(STRANGER)]);
    let strayed = bench.lifecycle.run(request("strays").cwd("/w/tree")).await.unwrap();
    assert_eq!(strayed.route, Route::FellBack(Why::SessionReplaced));
    bench.agent.will([Act::FailElsewhere(Verdict::Incompatible, STRANGER)]);
    bench.fails("is ruined").await;
    let back = bench.lifecycle.run(request("back").cwd("/w/tree")).await.unwrap();
    assert_eq!((back.route, back.session_id), (Route::Resumed, there));
}

/// Sets the agent to another home: its sessions are those of that home.
fn move_home(
    bench: &Bench,
    to: &str,
    sessions: BTreeMap<String, Vec<String>>,
) -> BTreeMap<String, Vec<String>> {
    let mut world = bench.agent.world();
    world.home = Some(to.into());
    std::mem::replace(&mut world.sessions, sessions)
}

#[tokio::test]
async fn a_session_of_another_home_of_the_agent_is_not_lost_and_each_home_has_its_own() {
    let bench = bench();
    move_home(&bench, "/h/one", BTreeMap::new());
    let first = bench.run("one").await.session_id;
    let of_one = move_home(&bench, "/h/two", BTreeMap::new());
    let away = bench.run("two").await;
    assert_eq!(away.route, Route::FellBack(Why::HomeDiffers));
    let record = bench.record().await;
    let left = record.past.last().unwrap();
    assert_eq!(
        (Some(&left.native_id), left.why.as_str(), left.rejoinable),
        (first.as_ref(), "home_differs", true)
    );
    let of_two = move_home(&bench, "/h/one", of_one);
    let back = bench.run("three").await;
    assert_eq!((back.route, &back.session_id), (Route::Resumed, &first));
    move_home(&bench, "/h/two", of_two);
    let again = bench.run("four").await;
    assert_eq!((again.route, again.session_id), (Route::Resumed, away.session_id));
}

#[tokio::test]
async fn a_session_that_was_copied_into_the_other_home_is_continued_there() {
    let bench = bench();
    move_home(&bench, "/h/one", BTreeMap::new());
    let first = bench.run("one").await.session_id;
    bench.agent.world().home = Some("/h/two".into());
    let there = bench.run("two").await;
    assert_eq!((there.route, &there.session_id), (Route::Resumed, &first));
    // From now on that is where it is: gone from there is gone.
    bench.lose(first.unwrap().as_str());
    assert_eq!(bench.run("three").await.resume_fallback, Some(Why::SessionMissing));
}

#[tokio::test]
async fn a_run_that_died_in_another_home_is_not_taken_for_one_that_came_to_nothing() {
    let bench = bench();
    move_home(&bench, "/h/one", BTreeMap::new());
    bench.agent.will([Act::Hang]);
    dies_in_the_next(&bench, request("one")).await;
    let of_one = move_home(&bench, "/h/two", BTreeMap::new());
    let id = of_one.keys().next().unwrap().clone();
    assert_eq!(bench.run("two").await.resume_fallback, Some(Why::HomeDiffers));
    move_home(&bench, "/h/one", of_one);
    let back = bench.run("three").await;
    assert_eq!((back.route, back.session_id.unwrap().to_string()), (Route::Resumed, id));
}
