//! Cures: done whole or not at all, never over another file, never through a link.

use std::fs;

use session_core::Mend;

use crate::format::Stage;

#[tokio::test]
async fn records_get_the_numbers_that_they_lack() {
    let stage = Stage::new();
    let path = stage.write("days/1/guess-s.log", "p\np5\nrubbish\na\np\n\na8");
    let look = stage.look().await;
    assert!(stage.mend(&look, Mend::NumberRecords).await.unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "p\np5\nrubbish\na6\np7\n\na8");
    let look = stage.look().await;
    assert_eq!((look.unnumbered, look.missing_records), (0, 0));
    assert_eq!(fs::read_dir(stage.path("days/1")).unwrap().count(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn a_file_that_cannot_be_mended_stays_as_it_was() {
    let stage = Stage::new();
    // An `o` takes no number; and there is none behind the last.
    for text in ["p5\na\no\n", "p18446744073709551615\na\n", "p18446744073709551614\na\np\n"] {
        let path = stage.write("days/1/guess-s.log", text);
        let look = stage.look().await;
        let error = stage.mend(&look, Mend::NumberRecords).await.unwrap_err();
        assert_eq!(error.source.to_string(), "a record that can have no number", "{text:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::read_dir(stage.path("days/1")).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn the_last_number_of_all_is_given_too() {
    let stage = Stage::new();
    let path = stage.write("days/1/guess-s.log", "p18446744073709551614\na\n");
    let look = stage.look().await;
    assert!(stage.mend(&look, Mend::NumberRecords).await.unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "p18446744073709551614\na18446744073709551615\n");
}

#[tokio::test]
async fn a_file_that_changed_has_a_writer_and_is_left_alone() {
    let stage = Stage::new();
    for mend in [Mend::NumberRecords, Mend::Unarchive, Mend::EndLastLine] {
        let path = stage.write("archive/x-s.log", "p5\na");
        let look = stage.look().await;
        fs::write(&path, "p5\na\np").unwrap();
        assert!(!stage.mend(&look, mend).await.unwrap(), "{mend:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "p5\na\np", "{mend:?}");
    }
}

#[tokio::test]
async fn an_archived_file_goes_back_to_its_place() {
    let stage = Stage::new();
    let path = stage.write("archive/x-s.log", "p\na\n");
    let look = stage.look().await;
    assert!(stage.mend(&look, Mend::Unarchive).await.unwrap());
    assert!(!path.exists());
    let look = stage.look().await;
    assert_eq!((look.path.clone(), look.archived), (Some(stage.path("days/7/x-s.log")), false));
    assert!(!stage.mend(&look, Mend::Unarchive).await.unwrap(), "it is not in the archive");
}

#[tokio::test]
async fn nothing_is_put_over_another_file() {
    let stage = Stage::new();
    let archived = stage.write("archive/x-s.log", "p\na\n");
    let look = stage.look().await;
    let there = stage.write("days/7/x-s.log", "p\n");
    assert!(stage.mend(&look, Mend::Unarchive).await.is_err());
    assert_eq!(fs::read_to_string(archived).unwrap(), "p\na\n");
    assert_eq!(fs::read_to_string(there).unwrap(), "p\n");
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let stage = Stage::new();
    let text = "p5\na";
    let other = stage.write("other", text);
    let path = stage.write("archive/x-s.log", text);
    let look = stage.look().await;
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    for mend in [Mend::NumberRecords, Mend::Unarchive, Mend::EndLastLine] {
        assert!(stage.mend(&look, mend).await.is_err(), "{mend:?}");
        assert_eq!(fs::read_to_string(&other).unwrap(), text);
        assert!(path.is_symlink(), "{mend:?}");
    }
}
