//! What is mended before an attempt, and before which.

use std::sync::{Arc, Mutex};

use session_core::decide::Why;
use session_core::*;

use crate::altered::altered;
use crate::bench::*;
use crate::scripted::{Act, request};

/// Everything that a look can find to be mended.
fn ailing(look: &mut Inspection) {
    (look.open_tail, look.unnumbered, look.archived, look.misplaced) = (true, 1, true, true);
    look.in_the_way = true;
}

#[tokio::test]
async fn a_resume_mends_the_session_and_takes_nothing_away() {
    for own_dir in [true, false] {
        let bench = bench();
        *bench.store.dir.lock().unwrap() = own_dir.then(|| "/state".into());
        let first = bench.run("one").await.session_id;
        let lifecycle = altered(&bench, &Arc::new(Mutex::new(first)), ailing);
        let second = lifecycle.run(request("two")).await.unwrap();
        assert_eq!(second.route, Route::Resumed);
        let all = [Mend::EndLastLine, Mend::NumberRecords, Mend::Unarchive, Mend::PutInPlace];
        let expected = if own_dir { &all[..] } else { &all[..1] };
        assert_eq!(bench.agent.world().mended, expected, "own dir: {own_dir}");
        let told: Vec<_> = expected.iter().map(|mend| Warning::Mended(*mend)).collect();
        assert_eq!(second.warnings, told);
    }
}

#[tokio::test]
async fn a_fresh_run_sets_aside_what_is_in_its_way_and_nothing_else() {
    fn damaged(look: &mut Inspection) {
        ailing(look);
        look.presence = Presence::Damaged;
    }
    fn harmless(look: &mut Inspection) {
        damaged(look);
        look.in_the_way = false;
    }
    type How = fn(&mut Inspection);
    let cases: [(How, bool, &[Mend]); 3] =
        [(damaged, true, &[Mend::SetAside]), (damaged, false, &[]), (harmless, true, &[])];
    for (how, own_dir, expected) in cases {
        let bench = bench();
        *bench.store.dir.lock().unwrap() = own_dir.then(|| "/state".into());
        let first = bench.run("one").await.session_id;
        let lifecycle = altered(&bench, &Arc::new(Mutex::new(first)), how);
        let second = lifecycle.run(request("two")).await.unwrap();
        assert_eq!(second.route, Route::FellBack(Why::SessionDamaged));
        assert_eq!(bench.agent.world().mended, expected);
        let told: Vec<_> = expected.iter().map(|mend| Warning::Mended(*mend)).collect();
        assert_eq!(second.warnings, told);
    }
}

#[tokio::test]
async fn a_cure_is_not_taken_for_a_turn_that_was_kept() {
    let bench = bench();
    let first = bench.run("one").await.session_id;
    let lifecycle = altered(&bench, &Arc::new(Mutex::new(first)), |look| look.open_tail = true);
    bench.agent.will([Act::Forget]);
    let second = lifecycle.run(request("two")).await.unwrap();
    assert_eq!(second.warnings, [Warning::Mended(Mend::EndLastLine), Warning::NotPersisted]);
}

/// What is installed is 1.2.3.
#[tokio::test]
async fn a_packed_session_is_unpacked_for_an_older_version_where_nobody_else_reads_it() {
    fn packed(look: &mut Inspection) {
        look.unpacked_since = Some([1, 3, 0]);
    }
    fn packed_and_newer(look: &mut Inspection) {
        packed(look);
        look.needs_version = Some([1, 3, 0]);
    }
    fn packed_long_ago(look: &mut Inspection) {
        look.unpacked_since = Some([1, 2, 0]);
    }
    type How = fn(&mut Inspection);
    let aside = Route::FellBack(Why::VersionCannotResume);
    let cases: [(How, bool, Route, &[Mend]); 4] = [
        (packed, true, Route::Resumed, &[Mend::Unpack]),
        (packed, false, aside, &[]),
        (packed_and_newer, true, aside, &[]),
        (packed_long_ago, true, Route::Resumed, &[]),
    ];
    for (how, own_dir, route, expected) in cases {
        let bench = bench();
        *bench.store.dir.lock().unwrap() = own_dir.then(|| "/state".into());
        let first = bench.run("one").await.session_id;
        let lifecycle = altered(&bench, &Arc::new(Mutex::new(first)), how);
        let second = lifecycle.run(request("two")).await.unwrap();
        assert_eq!(second.route, route, "own dir: {own_dir}");
        assert_eq!(bench.agent.world().mended, expected);
    }
}
