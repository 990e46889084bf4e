use std::fs;
use std::path::PathBuf;

use session_core::{Places, RecordFacts, RecordKind, Said, SessionQuery};

use super::*;

/// `p` is a prompt; digits behind it are its number.
#[derive(Debug)]
struct Letters;

impl TranscriptFormat for Letters {
    fn places(&self, _: &SessionQuery<'_>) -> Places {
        Places::default()
    }

    fn is_file_of(&self, _: &str, _: &SessionQuery<'_>) -> bool {
        false
    }

    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        let number = std::str::from_utf8(line).ok()?.trim_end().strip_prefix('p')?.parse().ok();
        Some(RecordFacts { number, ..RecordFacts::new(RecordKind::Prompt) })
    }

    fn said(&self, _: &[u8]) -> Option<Said> {
        None
    }

    fn numbered(&self, line: &[u8], number: u64) -> Option<Vec<u8>> {
        Some([line, number.to_string().as_bytes()].concat())
    }

    fn unarchived(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}

#[test]
fn what_a_look_does_not_read_whole_is_not_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    for (text, file, line, expected) in [
        ("p1\np\nxxxxxxx\n", 20, 7, Some("p1\np2\nxxxxxxx\n")),
        ("p1\np\nxxxxxxx", 20, 7, Some("p1\np2\nxxxxxxx")),
        ("p1\np\nxxxxxxxx\n", 20, 7, None),
        ("p1\np\nxxxxxxxxxx", 20, 7, None),
        // The size of the file, then of the copy.
        ("p1\np\nxxxxxxx\n", 12, 7, None),
        ("p1\np\nxxxxxxx\n", 13, 7, None),
        ("p1\np\nxxxxxxx\n", 14, 7, Some("p1\np2\nxxxxxxx\n")),
    ] {
        fs::write(&path, text).unwrap();
        let done = number_within(&Letters, &path, text.len() as u64, Limits { file, line }).unwrap();
        let what = format!("{text:?} within {file} and {line}");
        assert_eq!(done, expected.is_some(), "{what}");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected.unwrap_or(text), "{what}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{what}: nothing is left beside it");
    }
}

/// The files are sparse, each one line.
#[test]
fn the_limits_are_those_of_a_look() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let file = File::create(&path).unwrap();
    for bytes in [LINE_LIMIT as u64 + 1, READ_LIMIT + 1] {
        file.set_len(bytes).unwrap();
        assert!(!number_records(&Letters, &path, bytes).unwrap(), "{bytes}");
    }
}
