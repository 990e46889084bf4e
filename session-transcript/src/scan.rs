//! One pass over a file of JSON lines, in constant memory.

use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use session_core::{Conversation, RecordFacts, RecordKind, TranscriptFormat};

use crate::lines::{LINE_LIMIT, Line, each_line, glued};

/// How much of a file is read. A session larger than this is there, whatever else it holds.
pub(crate) const READ_LIMIT: u64 = 1 << 30;

const CHUNK: usize = 128 << 10;

/// What was counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) user_turns: u64,
    pub(crate) answers: u64,
    pub(crate) bytes: u64,
    pub(crate) began_in: Option<PathBuf>,
    pub(crate) torn_tail: bool,
    /// Whether the last line has no end, whole or not.
    pub(crate) open_tail: bool,
    pub(crate) skipped_lines: u64,
    /// Records that are not there, by the numbers around them.
    pub(crate) missing_records: u64,
    /// Records without a number behind numbered ones.
    pub(crate) unnumbered: u64,
    pub(crate) needs_version: Option<[u64; 3]>,
    pub(crate) unpacked_since: Option<[u64; 3]>,
    pub(crate) inherits: bool,
    last_number: Option<u64>,
    unnumbered_since: u64,
}

pub(crate) fn scan(format: &dyn TranscriptFormat, file: impl Read) -> io::Result<Tally> {
    scan_lines(format, BufReader::with_capacity(CHUNK, file), LINE_LIMIT)
}

fn scan_lines(format: &dyn TranscriptFormat, file: impl BufRead, limit: usize) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let bytes = each_line(file, limit, &mut |line| match line {
        Line::Ended(line) => tally.line(format, line),
        Line::EndedTooLong => tally.skipped_lines += 1,
        Line::Last(line) => tally.end(format, line, false),
        Line::LastTooLong => tally.end(format, &[], true),
    })?;
    tally.bytes = bytes;
    Ok(tally)
}

/// The last of what the lines of a file say, in at most so many bytes of text.
pub(crate) fn last_said(
    format: &dyn TranscriptFormat,
    file: impl Read,
    limit: usize,
) -> io::Result<Conversation> {
    let mut conversation = Conversation::default();
    each_line(BufReader::with_capacity(CHUNK, file), LINE_LIMIT, &mut |line| {
        if let Line::Ended(line) | Line::Last(line) = line
            && let Some(said) = format.said(line)
        {
            conversation.push(said, limit);
        }
    })?;
    Ok(conversation)
}

impl Tally {
    /// A line that ended with a newline.
    fn line(&mut self, format: &dyn TranscriptFormat, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match format.record(line) {
            Some(facts) => self.count(facts),
            None => {
                self.skipped_lines += 1;
                if let Some(facts) = glued(line, |rest| counting(format, rest)) {
                    self.count(facts);
                }
            }
        }
    }

    /// What stands behind the last newline.
    fn end(&mut self, format: &dyn TranscriptFormat, line: &[u8], too_long: bool) {
        self.open_tail = too_long || !line.is_empty();
        if too_long {
            self.torn_tail = true;
        } else if !line.trim_ascii().is_empty() {
            match format.record(line) {
                Some(facts) => self.count(facts),
                None => match glued(line, |rest| counting(format, rest)) {
                    Some(facts) => {
                        self.skipped_lines += 1;
                        self.count(facts);
                    }
                    None => self.torn_tail = true,
                },
            }
        }
    }

    fn count(&mut self, facts: RecordFacts) {
        self.records += 1;
        match facts.kind {
            RecordKind::Prompt => self.user_turns += 1,
            RecordKind::Answer => self.answers += 1,
            RecordKind::Other => {}
        }
        match (facts.number, self.last_number) {
            (Some(number), last) => {
                let expected = last.map_or(number, |last| last.saturating_add(1));
                // The agent chooses the numbers: any may stand there.
                let missing = number.saturating_sub(expected.saturating_add(self.unnumbered_since));
                self.missing_records = self.missing_records.saturating_add(missing);
                (self.last_number, self.unnumbered_since) = (Some(number), 0);
            }
            (None, Some(_)) => {
                self.unnumbered += 1;
                self.unnumbered_since += 1;
            }
            (None, None) => {}
        }
        self.needs_version = self.needs_version.max(facts.needs_version);
        self.inherits |= facts.inherits;
        if self.began_in.is_none() {
            self.began_in = facts.cwd;
        }
    }
}

/// A record that counts. Another one could be a part of the torn half.
fn counting(format: &dyn TranscriptFormat, line: &[u8]) -> Option<RecordFacts> {
    format.record(line).filter(|facts| facts.kind != RecordKind::Other)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[derive(Debug)]
    struct Letters;

    impl TranscriptFormat for Letters {
        fn places(&self, _: &session_core::SessionQuery<'_>) -> session_core::Places {
            session_core::Places::default()
        }

        fn record(&self, line: &[u8]) -> Option<RecordFacts> {
            let kind = match line.trim_ascii() {
                b"{\"p\"}" => RecordKind::Prompt,
                b"{\"a\"}" => RecordKind::Answer,
                b"{\"o\"}" => RecordKind::Other,
                _ => return None,
            };
            Some(RecordFacts::new(kind))
        }

        fn said(&self, _: &[u8]) -> Option<session_core::Said> {
            None
        }

        fn is_file_of(&self, _: &str, _: &session_core::SessionQuery<'_>) -> bool {
            false
        }

        fn numbered(&self, _: &[u8], _: u64) -> Option<Vec<u8>> {
            None
        }

        fn unarchived(&self, _: &std::path::Path) -> Option<std::path::PathBuf> {
            None
        }
    }

    fn tally(text: &[u8], chunk: usize, limit: usize) -> Tally {
        scan_lines(&Letters, BufReader::with_capacity(chunk, Cursor::new(text)), limit).unwrap()
    }

    #[test]
    fn the_size_of_the_chunks_changes_nothing() {
        let text = b"{\"p\"}\n{\"a\"}\r\n\nxx{\"a\"}\nrubbish\n{\"o\"}\n{\"p\"";
        let whole = tally(text, 4096, 100);
        assert_eq!((whole.user_turns, whole.answers, whole.records), (1, 2, 4));
        assert_eq!((whole.skipped_lines, whole.torn_tail), (2, true));
        for chunk in 1..text.len() {
            assert_eq!(tally(text, chunk, 100), whole, "chunks of {chunk}");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_left_out_and_the_rest_is_read() {
        let text = [b"{\"p\"}\n".to_vec(), vec![b'x'; 50], b"\n{\"a\"}\n".to_vec()].concat();
        for chunk in 1..80 {
            let tally = tally(&text, chunk, 20);
            assert_eq!(
                (tally.user_turns, tally.answers, tally.skipped_lines),
                (1, 1, 1),
                "chunks of {chunk}"
            );
            assert_eq!((tally.bytes, tally.torn_tail), (text.len() as u64, false));
        }
        assert!(tally(&[b'x'; 50], 7, 20).torn_tail);
    }
}
