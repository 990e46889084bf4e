//! Finding a file below folders, and what its records say of it.

use std::fs::File;
use std::time::{Duration, SystemTime};

use session_core::{Conversation, Inspection, Presence};

use crate::format::Stage;

#[tokio::test]
async fn a_file_is_found_at_its_place_then_below_the_folders() {
    let stage = Stage::new();
    assert_eq!(stage.look().await, Inspection::MISSING);
    let archived = stage.write("archive/x-s.log", "p\n");
    stage.write("archive/deep/x-s.log", "p\n");
    stage.write("days/9/x-other.log", "p\n");
    stage.write("days/y-s.log", "p\n");
    let look = stage.look().await;
    assert_eq!((look.path, look.archived), (Some(archived), true), "neither too deep, nor not deep enough");
    let in_a_day = stage.write("days/9/x-s.log", "p\na\np\n");
    let newer = File::options().append(true).open(&in_a_day).unwrap();
    newer.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    let look = stage.look().await;
    assert_eq!((look.path, look.archived, look.user_turns), (Some(in_a_day), false, 2), "the newest counts");
    let exact = stage.write("days/1/guess-s.log", "p\n");
    assert_eq!(stage.look().await.path, Some(exact));
}

#[cfg(unix)]
#[tokio::test]
async fn what_cannot_be_read_is_not_missing() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.path("days/3/x-s.log")).unwrap();
    assert_eq!(stage.look().await.presence, Presence::Unreadable, "a folder in the place of the file");
    let sound = stage.write("days/4/x-s.log", "p\n");
    assert_eq!(stage.look().await.path, Some(sound));
}

#[tokio::test]
async fn numbers_show_what_is_lost_and_what_was_added() {
    let stage = Stage::new();
    for (text, missing, unnumbered) in [
        ("p0\na1\np2\n", 0, 0),
        ("p\na\n", 0, 0),
        ("p0\na3\np4\n", 2, 0),
        ("p0\na1\np\na\n", 0, 2),
        // The next numbered one counted those without.
        ("p0\np\na2\n", 0, 1),
        ("p0\np\na4\n", 2, 1),
        // Any number may stand there.
        ("p18446744073709551615\na0\n", 0, 0),
        ("p18446744073709551615\na\np3\n", 0, 1),
        ("p0\na18446744073709551615\n", u64::MAX - 1, 0),
        ("p0\na18446744073709551615\np0\na18446744073709551615\n", u64::MAX, 0),
    ] {
        stage.write("days/1/guess-s.log", text);
        let look = stage.look().await;
        assert_eq!((look.missing_records, look.unnumbered), (missing, unnumbered), "{text:?}");
    }
}

#[tokio::test]
async fn records_say_what_the_session_needs() {
    let stage = Stage::new();
    stage.write("days/1/guess-s.log", "n0\np1\n");
    assert_eq!(stage.look().await.needs_version, Some([2, 0, 0]));
    stage.write("days/1/guess-s.log", "o0\n");
    assert_eq!(stage.look().await.presence, Presence::Empty);
    stage.write("days/1/guess-s.log", "b0\n");
    assert_eq!(stage.look().await.presence, Presence::Present, "its turns are in another file");
}

#[tokio::test]
async fn the_last_of_what_was_said_is_read() {
    let stage = Stage::new();
    assert_eq!(stage.said(10).await.unwrap(), Conversation::default(), "what is not there has said nothing");
    stage.write("days/1/guess-s.log", "p0\na1\nrubbish\no2\np3\na4");
    let texts = |conversation: &Conversation| -> Vec<String> {
        conversation.said.iter().map(|said| said.text.clone()).collect()
    };
    let all = stage.said(100).await.unwrap();
    assert_eq!((texts(&all), all.left_out), (["p0", "a1", "p3", "a4"].map(str::to_owned).to_vec(), 0));
    let last = stage.said(5).await.unwrap();
    assert_eq!((texts(&last), last.left_out), (["p3", "a4"].map(str::to_owned).to_vec(), 2));
    std::fs::remove_file(stage.path("days/1/guess-s.log")).unwrap();
    std::fs::create_dir(stage.path("days/1/guess-s.log")).unwrap();
    assert!(stage.said(5).await.is_err(), "a folder is no file without words");
}
