//! Sweeps: what goes, what stays, and what is told.

use std::sync::atomic::Ordering;
use std::time::Duration;

use session_core::decide::Why;
use session_core::*;

use crate::bench::{Bench, bench, bench_with};
use crate::scripted::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A mailbox of which a run was made, with a state dir, so many days ago.
async fn used(days: u32) -> Bench {
    let bench = bench();
    *bench.store.dir.lock().unwrap() = Some("/state".into());
    wait(&bench, 1000);
    bench.run("one").await;
    wait(&bench, days);
    bench
}

fn wait(bench: &Bench, days: u32) {
    let millis = u64::try_from((DAY * days).as_millis()).unwrap();
    bench.host.millis.fetch_add(millis, Ordering::SeqCst);
}

fn leftover(kind: LeftoverKind, name: &str, days_ago: u32, bench: &Bench) -> Leftover {
    let mut leftover = Leftover::new(kind, name);
    let at = bench.host.now().as_millis() - i64::try_from((DAY * days_ago).as_millis()).unwrap();
    leftover.last_used = Some(Timestamp::from_millis(at));
    leftover.size = StateSize::new(1 << 20, leftover.last_used);
    leftover
}

fn put(bench: &Bench, leftovers: impl IntoIterator<Item = Leftover>) {
    *bench.store.leftovers.lock().unwrap() = leftovers.into_iter().collect();
}

fn live(mailbox: &str) -> Live {
    Live::of([mailbox]).unwrap()
}

async fn sweep(bench: &Bench, sweep: Sweep) -> SweepReport {
    bench.lifecycle.sweep(&sweep).await.unwrap()
}

/// Keys or places, why, and what came of them.
fn told(report: &SweepReport) -> Vec<String> {
    let of = |swept: &Swept| {
        let what = swept.place.clone().or_else(|| swept.key.as_ref().map(ToString::to_string)).unwrap();
        let outcome = format!("{:?}", swept.outcome);
        let outcome = outcome.split(['(', ' ']).next().unwrap().to_owned();
        format!("{what} {} {outcome}", swept.reason.code())
    };
    report.swept.iter().map(of).collect()
}

async fn is_there(bench: &Bench) -> bool {
    bench.lifecycle.record(&key()).await.unwrap().is_some()
}

async fn kinds(bench: &Bench) -> Vec<String> {
    let log = bench.lifecycle.audit(&key(), None).await.unwrap();
    log.into_iter().map(|entry| entry.event.kind).collect()
}

#[test]
fn an_empty_list_of_live_mailboxes_takes_a_word() {
    assert_eq!(Live::of([""; 0]), Err(InvalidLive::Empty));
    assert!(matches!(Live::of(["a", " "]), Err(InvalidLive::Name(_))));
    let (none, all, one) = (Live::none(), Live::all(), live("a"));
    let (a, b) = (MailboxId::new("a").unwrap(), MailboxId::new("b").unwrap());
    assert!(!none.contains(&a) && all.contains(&a) && one.contains(&a) && !one.contains(&b));
}

#[tokio::test]
async fn an_orphan_goes_with_a_word_and_a_dry_run_says_the_same() {
    let bench = used(8).await;
    let before = kinds(&bench).await;
    let dry = sweep(&bench, Sweep::new(live("other")).dry_run(true)).await;
    assert_eq!(told(&dry), ["issue-42@scripted orphaned WouldBeRemoved"]);
    assert_eq!((dry.freed(), dry.swept[0].session.is_some()), (4096, true));
    assert!(is_there(&bench).await && kinds(&bench).await == before, "nothing was changed");

    let real = sweep(&bench, Sweep::new(live("other"))).await;
    assert_eq!(told(&real), ["issue-42@scripted orphaned Removed"]);
    assert_eq!((real.freed(), &real.swept[0].session), (dry.freed(), &dry.swept[0].session));
    assert!(!is_there(&bench).await && bench.store.dir.lock().unwrap().is_none());
    assert_eq!(kinds(&bench).await, ["run_finished", "mailbox_closing", "mailbox_closed"]);
    let text = bench.lifecycle.explain(&key()).await.unwrap().to_string();
    assert!(text.contains("a sweep found that it belongs to no live mailbox (orphaned)."), "{text}");
    assert_eq!(told(&sweep(&bench, Sweep::new(live("other"))).await), [""; 0], "it is gone");
    let next = bench.run("two").await;
    assert_eq!(next.route, Route::Fresh(Why::NoPriorSession));
}

#[tokio::test]
async fn what_is_alive_or_young_or_of_the_future_stays() {
    for (days, mailboxes, counted) in [
        (400, live("issue-42"), (1, 0)),
        (400, Live::all(), (1, 0)),
        (6, Live::none(), (0, 1)),
        (0, Live::none(), (0, 1)),
    ] {
        let bench = used(days).await;
        let report = sweep(&bench, Sweep::new(mailboxes)).await;
        assert_eq!((told(&report), (report.live, report.young)), (vec![], counted), "{days}");
        assert!(is_there(&bench).await);
    }
    // The clock goes back by two years.
    let bench = used(8).await;
    let now = bench.host.millis.load(Ordering::SeqCst);
    bench.host.millis.store(now - u64::try_from((DAY * 700).as_millis()).unwrap(), Ordering::SeqCst);
    let report = sweep(&bench, Sweep::new(Live::none()).grace(Duration::ZERO)).await;
    assert_eq!((told(&report), report.young), (vec![], 1));
}

#[tokio::test]
async fn what_is_run_or_changes_or_cannot_be_read_stays_and_is_told() {
    let bench = used(30).await;
    let lease = bench.store.inner.lease(&key(), &bench.host.holder()).await.unwrap();
    assert_eq!(told(&sweep(&bench, Sweep::new(Live::none())).await), ["issue-42@scripted orphaned Busy"]);
    drop(lease);
    // Between the look and the lease, a run of it was noted.
    let mut record = bench.record().await;
    record.updated_at = bench.host.now();
    bench.store.late(codec::encode(&record));
    assert_eq!(told(&sweep(&bench, Sweep::new(Live::none())).await), ["issue-42@scripted orphaned Changed"]);
    wait(&bench, 30);
    for unreadable in [&b"{"[..], br#"{"format":{"major":1,"minor":9},"record":{}}"#] {
        let document = Document::new(unreadable.to_vec());
        assert!(matches!(
            bench.store.inner.save(&key(), &document, &Guard::Any, None).await,
            Ok(Saved::Done(_))
        ));
        let report =
            sweep(&bench, Sweep::new(Live::none()).retention(Retention::new().idle_longer_than(DAY))).await;
        assert_eq!(told(&report), [""; 0]);
        assert!(matches!(report.unread.as_slice(), [(of, None)] if *of == key()));
        assert_eq!(bench.store.inner.load(&key()).await.unwrap().unwrap().document, document);
        assert!(bench.store.inner.set_aside_documents().is_empty());
    }
}

/// At each operation in turn the store fails: one key's failure is told, another key goes, and the next sweep finishes.
#[tokio::test]
async fn a_sweep_that_was_cut_off_is_finished_by_the_next() {
    for operation in ["lease", "append_audit", "remove", "remove_state", "remove_leftover"] {
        let bench = used(30).await;
        put(&bench, [leftover(LeftoverKind::State, "state/x/y", 30, &bench)]);
        bench.store.set(&[operation]);
        let report = sweep(&bench, Sweep::new(Live::none())).await;
        assert_eq!((report.swept.len(), report.failures().count()), (2, 1), "{operation}: {report}");
        let told_of = kinds(&bench).await.contains(&"mailbox_closing".to_owned());
        assert!(is_there(&bench).await || told_of, "{operation}: it went without a word");
        bench.store.set(&[]);
        // What is left of a key whose record is gone is for the store to list.
        put(&bench, []);
        let again = sweep(&bench, Sweep::new(Live::none())).await;
        assert_eq!(again.failures().count(), 0, "{operation}");
        assert!(!is_there(&bench).await, "{operation}");
    }
    let bench = used(30).await;
    for operation in ["list", "leftovers"] {
        bench.store.set(&[operation]);
        assert!(bench.lifecycle.sweep(&Sweep::new(Live::none())).await.is_err(), "{operation}");
    }
    bench.store.set(&["load"]);
    let report = sweep(&bench, Sweep::new(Live::none())).await;
    assert!(matches!(report.unread.as_slice(), [(of, Some(_))] if *of == key()), "{report}");
    bench.store.set(&["state_size"]);
    let report = sweep(&bench, Sweep::new(Live::none())).await;
    assert_eq!(told(&report), ["issue-42@scripted orphaned Removed"]);
    assert!(report.swept[0].size.is_some_and(|size| size.partial), "what it took is not known");
}

#[tokio::test]
async fn leftovers_go_by_what_they_are() {
    use LeftoverKind::*;
    let bench = bench();
    wait(&bench, 1000);
    let mut alive = leftover(State, "alive", 300, &bench);
    alive.live = true;
    let mut of_a_live_one = leftover(Log, "log of a live one", 300, &bench);
    of_a_live_one.live = true;
    let all = [
        leftover(State, "old", 8, &bench),
        leftover(State, "young", 6, &bench),
        Leftover::new(State, "of no age"),
        alive,
        leftover(Folder, "folder", 8, &bench),
        leftover(Removal, "removal", 0, &bench),
        leftover(Temporary, "temporary", 0, &bench),
        leftover(Aside, "aside", 300, &bench),
        leftover(Log, "log", 300, &bench),
        of_a_live_one,
        leftover(Unreadable, "unreadable", 300, &bench),
        leftover(Foreign, "foreign", 300, &bench),
    ];
    put(&bench, all);
    let by_itself = [
        "old orphaned Removed",
        "folder leftover Removed",
        "removal leftover Removed",
        "temporary leftover Removed",
    ];
    let report = sweep(&bench, Sweep::new(live("issue-42"))).await;
    assert_eq!(told(&report), by_itself);
    assert_eq!(report.left_alone, ["unreadable", "foreign"]);
    let disposed = bench.store.disposed.lock().unwrap().clone();
    let (name, tombstone) = &disposed[0];
    assert_eq!((name.as_str(), tombstone.before.kind.as_str()), ("old", "mailbox_closing"));
    assert_eq!(tombstone.after.detail.as_deref(), Some("orphaned"));

    let more = Sweep::new(live("issue-42")).forget_set_aside_after(DAY * 200).forget_logs_after(DAY * 299);
    let report = sweep(&bench, more).await;
    assert_eq!(told(&report)[4..], ["aside old Removed", "log old Removed"]);
    let less = Sweep::new(live("issue-42")).forget_set_aside_after(DAY * 301).forget_logs_after(DAY * 301);
    assert_eq!(told(&sweep(&bench, less).await), by_itself);
}

#[tokio::test]
async fn idle_ones_go_only_where_that_is_asked_for() {
    let idle = |days| Retention::new().idle_longer_than(DAY * days);
    for (retention, mailboxes, expected) in [
        (Retention::new(), live("issue-42"), None),
        (idle(20), live("issue-42"), None),
        (idle(20).live_too(true), live("issue-42"), Some("idle")),
        (idle(40).live_too(true), live("issue-42"), None),
        (idle(20).live_too(true), Live::all(), Some("idle")),
        (idle(20), Live::none(), Some("idle")),
    ] {
        let bench = used(30).await;
        let plan = Sweep::new(mailboxes).grace(DAY * 100).retention(retention);
        let dry = told(&sweep(&bench, plan.clone().dry_run(true)).await);
        let real = sweep(&bench, plan).await;
        assert_eq!(real.swept.first().map(|swept| swept.reason.code()), expected, "{retention:?}");
        assert_eq!(dry.len(), real.swept.len());
        assert_eq!(is_there(&bench).await, expected.is_none());
        if expected.is_some() {
            let text = bench.lifecycle.explain(&key()).await.unwrap().to_string();
            assert!(text.contains("(expired)."), "{text}");
        }
    }
}

#[tokio::test]
async fn room_is_made_by_the_one_that_was_idle_longest_first() {
    let bench = used(10).await;
    let mut states = Vec::new();
    for (name, days) in [("b", 9), ("a", 30), ("c", 3), ("d", 0)] {
        let mut state = leftover(LeftoverKind::State, name, days, &bench);
        state.live = true;
        states.push(state);
    }
    put(&bench, states.clone());
    let room = |bytes| {
        let retention = Retention::new().state_at_most(bytes).live_too(true);
        Sweep::new(Live::all()).retention(retention).dry_run(true)
    };
    let mb = 1 << 20;
    let report = sweep(&bench, room(4 * mb + 4096)).await;
    assert_eq!((told(&report), report.state_before.unwrap().bytes), (vec![], 4 * mb + 4096));
    let report = sweep(&bench, room(4 * mb)).await;
    assert_eq!((told(&report), report.live), (vec!["a too_much WouldBeRemoved".to_owned()], 4));
    let report = sweep(&bench, room(3 * mb)).await;
    assert_eq!(told(&report), ["a too_much WouldBeRemoved", "issue-42@scripted too_much WouldBeRemoved"]);
    // What was used within a day stays, however much it takes.
    let report = sweep(&bench, room(0)).await;
    assert_eq!(report.swept.len(), 4, "{report}");
    assert!(report.swept.iter().all(|swept| swept.place.as_deref() != Some("d")));
    // And what is alive, unless it was said.
    states.iter_mut().for_each(|state| state.live = false);
    put(&bench, states);
    let retention = Retention::new().state_at_most(0);
    let report = sweep(&bench, Sweep::new(live("issue-42")).grace(DAY * 100).retention(retention)).await;
    assert_eq!(told(&report), ["a too_much Removed", "b too_much Removed", "c too_much Removed"]);
}

fn with_retention(in_state_dir: Option<Duration>, in_own_place: Option<Duration>) -> Bench {
    let mut agent = Scripted::new();
    agent.capabilities.retention = AgentRetention { in_state_dir, in_own_place };
    bench_with(agent, true)
}

#[tokio::test]
async fn a_session_that_its_agent_will_delete_is_told_before() {
    for (after, days, falling) in
        [(30, 22, false), (30, 23, true), (30, 40, true), (8, 5, false), (8, 6, true)]
    {
        let bench = with_retention(Some(DAY * after), None);
        let session = bench.run("one").await.session_id.unwrap();
        wait(&bench, days);
        let report = sweep(&bench, Sweep::new(live("issue-42"))).await;
        assert_eq!(report.falling.len(), usize::from(falling), "{after} {days}: {report}");
        if let [told] = report.falling.as_slice() {
            assert_eq!((&told.key, &told.session), (&key(), &session));
            assert_eq!(told.falls_at, Timestamp::EPOCH.plus(DAY * after));
        }
        // In the agent's own place, as the agent has it there.
        let own = bench.lifecycle.clone().state_dirs(false);
        assert!(own.sweep(&Sweep::new(Live::all())).await.unwrap().falling.is_empty());
        // What goes anyway is not told of.
        let gone = sweep(&bench, Sweep::new(Live::none()).grace(DAY)).await;
        assert!(gone.falling.is_empty() && gone.swept.len() == 1);
        {
            let bench = with_retention(Some(DAY * after), None);
            *bench.store.dir.lock().unwrap() = Some("/state".into());
            bench.run("one").await;
            wait(&bench, days);
            let room = Retention::new().state_at_most(0).live_too(true);
            let gone = sweep(&bench, Sweep::new(Live::all()).retention(room)).await;
            assert!(gone.falling.is_empty() && gone.swept.len() == 1, "{gone}");
        }
    }
}

#[tokio::test]
async fn a_session_that_is_missing_after_that_time_is_explained_by_it() {
    for (days, policy, explained) in [
        (29, ResumePolicy::Prefer, false),
        (31, ResumePolicy::Prefer, true),
        (31, ResumePolicy::Require, true),
    ] {
        let bench = with_retention(Some(DAY * 30), None);
        bench.run("one").await;
        wait(&bench, days);
        bench.lose(&bench.bound().await.unwrap());
        drop(bench.lifecycle.run(request("two").resume(policy)).await);
        let text = bench.lifecycle.explain(&key()).await.unwrap().to_string();
        assert!(text.contains("(session_missing)"), "{text}");
        let why =
            "scripted deletes sessions that were not used for 30 days, and this one was not since 1970-01-01";
        assert_eq!(text.contains(why), explained, "{text}");
    }
    // Another reason is not blamed on it.
    let bench = with_retention(Some(DAY * 30), None);
    bench.run("one").await;
    wait(&bench, 31);
    bench.run("two").await;
    let text = bench.lifecycle.explain(&key()).await.unwrap().to_string();
    assert!(!text.contains("deletes sessions"), "{text}");
}

/// What may happen to what, in other words than the rule's.
#[test]
fn the_fate_of_everything_is_decided() {
    use session_core::decide::*;
    let pairs = Owner::ALL.iter().flat_map(|owner| Extent::ALL.iter().map(move |extent| (*owner, *extent)));
    for (owner, extent) in pairs {
        for (grace, idle) in Unused::ALL.iter().flat_map(|a| Unused::ALL.iter().map(move |b| (*a, *b))) {
            let facts = SweepFacts { owner, grace, idle, extent };
            let untouchable = owner == Owner::Live && extent == Extent::Orphans;
            let unowned = owner == Owner::Nobody && grace == Unused::Past;
            let goes = (unowned || idle == Unused::Past) && !untouchable;
            let fate = fate(facts);
            assert_eq!(goes, matches!(fate, Fate::Orphaned | Fate::Idle), "{facts:?}");
            assert_eq!(fate == Fate::Orphaned, unowned, "{facts:?}");
            assert_eq!(fate == Fate::Kept, untouchable, "{facts:?}");
        }
    }
}

/// A store may hand its keys out in pages, whatever was asked.
#[tokio::test]
async fn the_keys_of_all_pages_are_swept() {
    let bench = used(0).await;
    for mailbox in ["a", "b", "z"] {
        let session = SessionRef::new(mailbox, "scripted");
        bench.lifecycle.run(request("one").session(session)).await.unwrap();
    }
    wait(&bench, 10);
    bench.store.set(&["pages"]);
    let report = sweep(&bench, Sweep::new(Live::none()).dry_run(true)).await;
    assert_eq!(report.swept.len(), 4, "{report}");
}

/// What was planted in a work tree is not started, for a sweep as for a run.
#[tokio::test]
async fn an_agent_is_asked_as_for_a_run_in_the_folder_of_the_session() {
    let bench = used(1).await;
    bench.agent.world().detected_in.clear();
    let report = sweep(&bench, Sweep::new(Live::all())).await;
    assert_eq!(report.live, 1);
    assert_eq!(bench.agent.world().detected_in, [std::path::PathBuf::from("/w/demo")]);
}
