//! A session whose file stays where it is: its own note of its folder is changed.

use super::*;

#[tokio::test]
async fn a_session_whose_own_note_of_its_folder_was_changed_is_where_that_says() {
    let (bench, mover, _) = bound().await;
    let (session, place) = (mover.session(Some(key())), mover.place());
    let changed = SessionEntry { last_cwd: session.entry.cwd.clone(), ..session.entry.clone() };
    *mover.file.lock().unwrap() = Some(SessionEntry { cwd: Some("/w/tree".into()), ..changed });
    let (from, to) = (place.clone(), place.clone());
    let done = Relocated::Done { from, to, way: Way::Move, records: 2, left: Vec::new(), split: false };
    *mover.answer.lock().unwrap() = Some(done.clone());
    assert_eq!(bench.lifecycle.relocate(&Relocation::new(session, "/w/tree")).await.unwrap(), done);
    let [event] = relocations(&bench).await.try_into().unwrap();
    assert!(event.detail.unwrap().ends_with(&format!("to /w/tree; noted in {}", place.display())));
    // Its last reply was still made in the old folder.
    let found = bench.lifecycle.locate(&Seek::new(Wanted::Key(key()), "/w/tree")).await.unwrap();
    assert!(matches!(&found.answer, Answer::Found { hit, .. } if hit.workdir == Workdir::Same), "{found:?}");
}
