//! Packed files: looked at like others, never written to, and second to the same file that is not packed.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use session_core::{Mend, Presence};
use session_transcript::unpack_to;

use crate::format::Stage;

fn packed(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

fn write(stage: &Stage, name: &str, bytes: &[u8]) -> PathBuf {
    let path = stage.write(name, "");
    fs::write(&path, bytes).unwrap();
    path
}

fn touch(path: &PathBuf, later: u64) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(later)).unwrap();
}

#[tokio::test]
async fn a_packed_file_is_looked_at_like_another() {
    let stage = Stage::new();
    let path = write(&stage, "days/4/x-s.log.z", &packed("p0\na1\np2"));
    let look = stage.look().await;
    assert_eq!((look.presence, look.user_turns, look.answers), (Presence::Present, 2, 1));
    assert_eq!((look.path, look.bytes), (Some(path.clone()), fs::metadata(&path).unwrap().len()));
    assert!(!look.open_tail && !look.torn_tail, "nothing can be appended to it");
    assert_eq!(
        (look.needs_version, look.unpacked_since),
        (None, Some([3, 0, 0])),
        "older versions do not see it"
    );
    assert_eq!(stage.said(100).await.unwrap().said.len(), 3);
}

#[tokio::test]
async fn what_is_packed_is_told_by_its_first_bytes_and_not_by_its_name() {
    let stage = Stage::new();
    write(&stage, "days/4/x-s.log", &packed("p0\na1\n"));
    assert_eq!((stage.look().await.user_turns, stage.look().await.answers), (1, 1));
    let stage = Stage::new();
    stage.write("days/4/x-s.log.z", "p0\n");
    assert_eq!((stage.look().await.user_turns, stage.look().await.unpacked_since), (1, None));
}

#[tokio::test]
async fn one_that_is_cut_off_is_read_as_far_as_it_goes() {
    let stage = Stage::new();
    let text: String = (0..400_000_u64).map(|n| format!("p{n}\n")).collect();
    let whole = packed(&text);
    write(&stage, "days/4/x-s.log.z", &whole[..whole.len() / 2]);
    let look = stage.look().await;
    assert!(look.torn_tail && (1000..400_000).contains(&look.user_turns), "{look:?}");
    assert_eq!(look.presence, Presence::Present);
}

#[tokio::test]
async fn the_same_file_that_is_not_packed_counts() {
    let stage = Stage::new();
    // Both are there while the agent packs, or unpacks.
    let squeezed = write(&stage, "days/4/x-s.log.z", &packed("p0\n"));
    let plain = stage.write("days/4/x-s.log", "p0\na1\n");
    for (path, other) in [(&plain, &squeezed), (&squeezed, &plain)] {
        touch(path, 60);
        touch(other, 30);
        let look = stage.look().await;
        assert_eq!((look.path.as_ref(), look.answers), (Some(&plain), 1), "{path:?} is the newer one");
    }
    // Another file of the session is not the same one.
    let other = write(&stage, "days/5/y-s.log.z", &packed("p0\na1\np2\n"));
    touch(&other, 90);
    assert_eq!(stage.look().await.path, Some(other));
}

#[tokio::test]
async fn a_packed_file_is_never_written_to() {
    let stage = Stage::new();
    let bytes = packed("p0\na\np");
    let path = write(&stage, "archive/x-s.log.z", &bytes);
    let look = stage.look().await;
    assert_eq!(look.unnumbered, 2);
    for mend in [Mend::EndLastLine, Mend::NumberRecords] {
        assert!(!stage.mend(&look, mend).await.unwrap(), "{mend:?}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "{mend:?}");
    }
    // To be moved, it need not be read.
    assert!(stage.mend(&look, Mend::Unarchive).await.unwrap());
    assert_eq!(fs::read(stage.path("days/7/x-s.log.z")).unwrap(), bytes);
}

#[tokio::test]
async fn for_a_version_that_reads_none_it_is_unpacked_before_anything_else_changes() {
    let stage = Stage::new();
    let path = write(&stage, "days/4/x-s.log.z", &packed("p0\na1\n"));
    let plain = stage.path("days/4/x-s.log");
    assert_eq!(unpack_to(&path, &plain).unwrap(), 6);
    assert_eq!(fs::read_to_string(&plain).unwrap(), "p0\na1\n");
    let look = stage.look().await;
    assert_eq!((look.path.as_ref(), look.unpacked_since), (Some(&plain), None));
    assert!(path.exists(), "the packed one is the caller's to remove");
    assert_eq!(unpack_to(&path, &plain).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
}

#[tokio::test]
async fn unpacked_in_its_place_it_is_there_once_and_whole() {
    let stage = Stage::new();
    let bytes = packed("p0\na1\n");
    let path = write(&stage, "days/4/x-s.log.z", &bytes);
    let plain = stage.path("days/4/x-s.log");
    let look = stage.look().await;
    // What changed since has a writer, and what is cut off is not to be had whole.
    fs::write(&path, [&bytes[..], b"more"].concat()).unwrap();
    assert!(!stage.mend(&look, Mend::Unpack).await.unwrap());
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let cut = stage.look().await;
    assert!(stage.mend(&cut, Mend::Unpack).await.is_err());
    assert!(path.exists() && !plain.exists());
    fs::write(&path, &bytes).unwrap();
    assert!(stage.mend(&look, Mend::Unpack).await.unwrap());
    assert_eq!((fs::read_to_string(&plain).unwrap().as_str(), path.exists()), ("p0\na1\n", false));
    let again = stage.look().await;
    assert_eq!((again.path.as_ref(), again.unpacked_since, again.user_turns), (Some(&plain), None, 1));
    assert!(!stage.mend(&again, Mend::Unpack).await.unwrap(), "it is not packed");
}
