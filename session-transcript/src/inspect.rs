//! A look at one session's file: whether it can be continued, and what it holds.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use session_core::error::CatalogError;
use session_core::{Inspection, Presence, TranscriptFormat};

use crate::catalog::failed;
use crate::find::{Found, is_denied};
use crate::packed::Content;
use crate::scan::{READ_LIMIT, Tally, scan};

pub(crate) fn look(format: &dyn TranscriptFormat, found: Found) -> Result<Inspection, CatalogError> {
    match found {
        Found::Nothing => Ok(Inspection::MISSING),
        Found::Unusable(path) => Ok(unreadable(path)),
        Found::File(path, file) => match scan_file(format, file) {
            Ok(tally) => Ok(sum_up(format, path, tally)),
            Err(error) if is_denied(&error) => Ok(unreadable(path)),
            Err(error) => Err(failed(&path, error)),
        },
    }
}

/// Reads the file, or as much of it as is worth the time; its size is told whole.
fn scan_file(format: &dyn TranscriptFormat, file: File) -> io::Result<Tally> {
    let bytes = file.metadata()?.len();
    let mut file = Content::of(file)?;
    let mut tally = scan(format, file.by_ref().take(READ_LIMIT))?;
    if file.is_packed() {
        // Nothing can be appended to it as it is, so no end of a line can be missing.
        tally.open_tail = false;
        tally.torn_tail |= file.is_in_part();
        tally.unpacked_since = format.unpacks_since();
    }
    if tally.bytes >= READ_LIMIT && (file.is_packed() || bytes > READ_LIMIT) {
        // Where the reading stopped is not where the file ends.
        (tally.torn_tail, tally.open_tail) = (false, false);
    }
    tally.bytes = bytes;
    Ok(tally)
}

fn unreadable(path: PathBuf) -> Inspection {
    Inspection { presence: Presence::Unreadable, path: Some(path), ..Inspection::MISSING }
}

fn sum_up(format: &dyn TranscriptFormat, path: PathBuf, tally: Tally) -> Inspection {
    let presence = if tally.user_turns + tally.answers > 0 || tally.inherits {
        Presence::Present
    } else if tally.records > 0 || (tally.skipped_lines == 0 && !tally.torn_tail) {
        Presence::Empty
    } else {
        Presence::Damaged
    };
    Inspection {
        presence,
        archived: format.unarchived(&path).is_some(),
        path: Some(path),
        user_turns: tally.user_turns,
        answers: tally.answers,
        bytes: tally.bytes,
        began_in: tally.began_in,
        torn_tail: tally.torn_tail,
        open_tail: tally.open_tail,
        skipped_lines: tally.skipped_lines,
        missing_records: tally.missing_records,
        unnumbered: tally.unnumbered,
        needs_version: tally.needs_version,
        unpacked_since: tally.unpacked_since,
        // The rest is for formats of another kind.
        ..Inspection::MISSING
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;
    use std::path::Path;

    use session_core::{Places, RecordFacts, RecordKind, Said, SessionQuery};

    use super::*;

    #[derive(Debug)]
    struct AllRecords;

    impl TranscriptFormat for AllRecords {
        fn places(&self, _: &SessionQuery<'_>) -> Places {
            Places::default()
        }
        fn is_file_of(&self, _: &str, _: &SessionQuery<'_>) -> bool {
            false
        }
        fn record(&self, _: &[u8]) -> Option<RecordFacts> {
            Some(RecordFacts::new(RecordKind::Prompt))
        }
        fn said(&self, _: &[u8]) -> Option<Said> {
            None
        }
        fn numbered(&self, _: &[u8], _: u64) -> Option<Vec<u8>> {
            None
        }
        fn unarchived(&self, _: &Path) -> Option<PathBuf> {
            None
        }
    }

    #[test]
    fn of_a_file_of_ten_gigabytes_so_much_is_read_and_no_more() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10 << 30).unwrap();
        // Both have one position.
        let mut same = file.try_clone().unwrap();
        let tally = scan_file(&AllRecords, file).unwrap();
        assert_eq!((tally.bytes, tally.torn_tail), (10 << 30, false));
        assert_eq!(same.stream_position().unwrap(), READ_LIMIT);
    }
}
