//! What an agent could make in its state dir, so that a look finds what is not its own, or never ends.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use session_core::{Inspection, Mend, Presence};

use crate::format::Stage;

#[tokio::test]
async fn folders_that_lead_in_circles_are_not_walked() {
    let stage = Stage::new();
    for number in 0..100 {
        fs::create_dir_all(stage.path("days")).unwrap();
        symlink(".", stage.path(&format!("days/{number}"))).unwrap();
    }
    // Whoever follows the links reads these a hundred times, and is done before the last entry.
    for number in 0..100 {
        stage.write(&format!("days/x-{number}.log"), "p\n");
    }
    let look = stage.look_at_most(250).await;
    assert_eq!(look.presence, Presence::Unreadable, "what lies behind a link is not known");
    let sound = stage.write("days/real/x-s.log", "p\n");
    assert_eq!(stage.look_at_most(250).await.path, Some(sound));
    fs::remove_dir_all(stage.path("days")).unwrap();
    symlink("archive", stage.path("archive")).unwrap();
    assert_eq!(
        stage.look().await.presence,
        Presence::Unreadable,
        "a link to itself in the place of a folder"
    );
}

#[tokio::test]
async fn of_names_without_end_so_many_are_looked_at() {
    let stage = Stage::new();
    for number in 0..300 {
        stage.write(&format!("days/1/x-{number}.log"), "p\n");
    }
    assert_eq!(stage.look_at_most(301).await, Inspection::MISSING, "300 and their folder");
    let look = stage.look_at_most(300).await;
    assert_eq!(look.presence, Presence::Unreadable, "what was not looked at is not missing");
    let exact = stage.write("days/1/guess-s.log", "p\n");
    assert_eq!(stage.look_at_most(0).await.path, Some(exact), "at its own place, it is not searched for");
}

#[tokio::test]
async fn no_folder_is_entered_by_a_link_to_mend_a_file() {
    let (stage, other) = (Stage::new(), Stage::new());
    stage.write("archive/x-s.log", "p5\na");
    let look = stage.look().await;
    fs::create_dir(stage.path("days")).unwrap();
    symlink(other.path(""), stage.path("days/7")).unwrap();
    assert!(stage.mend(&look, Mend::Unarchive).await.is_err(), "its place lies behind a link");
    assert_eq!(fs::read_dir(other.path("")).unwrap().count(), 0);
    other.write("x-s.log", "p5\na");
    fs::remove_dir_all(stage.path("archive")).unwrap();
    symlink(other.path(""), stage.path("archive")).unwrap();
    for mend in [Mend::EndLastLine, Mend::NumberRecords, Mend::Unarchive] {
        assert!(stage.mend(&look, mend).await.is_err(), "{mend:?}");
        assert_eq!(fs::read_to_string(other.path("x-s.log")).unwrap(), "p5\na", "{mend:?}");
    }
}

/// It cannot be told from the file, so that it is read; nothing is written where it is read elsewhere, too.
#[tokio::test]
async fn a_file_with_a_second_name_is_not_mended() {
    let (stage, other) = (Stage::new(), Stage::new());
    let theirs = other.write("x-s.log", "p5\na");
    fs::create_dir(stage.path("archive")).unwrap();
    fs::hard_link(&theirs, stage.path("archive/x-s.log")).unwrap();
    let look = stage.look().await;
    assert_eq!(look.presence, Presence::Present);
    for mend in [Mend::EndLastLine, Mend::NumberRecords, Mend::Unarchive] {
        assert!(!stage.mend(&look, mend).await.unwrap(), "{mend:?}");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "p5\na", "{mend:?}");
    }
    fs::remove_file(&theirs).unwrap();
    assert!(stage.mend(&look, Mend::EndLastLine).await.unwrap(), "its only name is ours");
}
