use std::io::{self, Read};

use adapter_claude::ClaudeTranscripts;
use session_core::EnvMap;

use super::*;

fn format() -> ClaudeTranscripts {
    ClaudeTranscripts::new(EnvMap::default())
}

fn uuid(number: usize) -> String {
    format!("{number:08x}-1111-4111-8111-111111111111")
}

/// A conversation with replies of two lines, a compaction, a rewind, damage and a title; every line a second later.
fn file() -> Vec<u8> {
    let mut text = String::new();
    for at in 0..40_usize {
        let (id, parent) = (uuid(at), at.checked_sub(if at == 21 { 3 } else { 1 }).map(uuid));
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        let common = format!(
            r#""uuid":"{id}","timestamp":"2026-03-01T10:00:{at:02}.000Z","cwd":"/w/{}","gitBranch":"b{}""#,
            at / 20,
            at / 15
        );
        text += &match at % 10 {
            0 | 4 => format!(
                r#"{{"parentUuid":{parent},"type":"user","message":{{"content":"turn {at}"}},{common}}}"#
            ),
            9 if at == 29 => format!(
                r#"{{"parentUuid":null,"logicalParentUuid":{parent},"type":"system","subtype":"compact_boundary",{common}}}"#
            ),
            _ => format!(
                r#"{{"parentUuid":{parent},"type":"assistant","message":{{"id":"m{}","model":"x","usage":{{"output_tokens":{at}}}}},{common}}}"#,
                at / 2
            ),
        };
        text += if at % 3 == 0 { "\r\n" } else { "\n" };
        if at % 13 == 0 {
            text += "{\"type\":\"custom-title\",\"customTitle\":\"t\"}\n\nrubbish\n{\"type\":\"half{\"type\":\"mode\"}\n";
        }
    }
    text.into_bytes()
}

fn whole(text: &[u8]) -> Digest {
    let mut digest = Digest::default();
    assert_eq!(digest.fold(&format(), text).unwrap(), Folded::Done);
    digest
}

#[test]
fn a_fold_goes_on_wherever_it_stopped_as_if_it_had_not() {
    let (text, format) = (file(), format());
    let all = whole(&text);
    assert_eq!((all.turns, all.compactions, all.open, all.torn), (8, 1, false, false));
    // Everywhere near the ends of lines, and here and there inside of them.
    let near_end = |cut: &usize| {
        let near = cut.saturating_sub(2)..(cut + 3).min(text.len());
        cut.is_multiple_of(41) || text[near].contains(&b'\n')
    };
    for cut in (0..=text.len()).filter(near_end) {
        let mut digest = whole(&text[..cut]);
        // What is kept is written out and read back.
        let memory = serde_json::to_string(digest.memory()).unwrap();
        digest = serde_json::from_str(&serde_json::to_string(&digest).unwrap()).unwrap();
        digest.remember(serde_json::from_str(&memory).unwrap());
        let at = usize::try_from(digest.folded).unwrap();
        match digest.fold(&format, &text[at..]).unwrap() {
            Folded::Done => assert!(digest.is_as(&all), "cut at {cut}: {digest:?}\n{all:?}"),
            // A last line that seemed whole goes on: it was none.
            Folded::Anew => assert_eq!(text[cut - 1], b'}', "cut at {cut}"),
        }
    }
}

impl Digest {
    /// Whether it says the same; how much is remembered may differ.
    fn is_as(&self, other: &Self) -> bool {
        // Marks are for a fold that begins at the beginning.
        let bare =
            |digest: &Self| Self { memory: Memory::default(), marks: Marks::default(), ..digest.clone() };
        bare(self) == bare(other) && self.memory.chain.tip() == other.memory.chain.tip()
    }
}

#[test]
fn without_what_is_remembered_a_fold_begins_anew() {
    let text = file();
    let mut digest = whole(&text[..1000]);
    digest.remember(Memory::default());
    assert_eq!(digest.fold(&format(), &text[1000..]).unwrap(), Folded::Anew);
}

/// Records that follow each other, from one to another.
fn chain(from: usize, to: usize) -> Vec<u8> {
    let line = |at: usize| link(at, at.checked_sub(1), at);
    (from..to).flat_map(line).collect()
}

fn link(id: usize, parent: Option<usize>, second: usize) -> Vec<u8> {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{}\"", uuid(parent)));
    let time = format!("2026-03-01T{:02}:{:02}:{:02}.000Z", second / 3600, second / 60 % 60, second % 60);
    format!(
        r#"{{"uuid":"{}","parentUuid":{parent},"type":"user","message":{{"content":"{second}"}},"timestamp":"{time}"}}{}"#,
        uuid(id),
        "\n"
    )
    .into_bytes()
}

#[test]
fn what_is_added_far_back_makes_a_fold_begin_anew_and_nothing_else_does() {
    let format = format();
    let digest = whole(&chain(0, 2000));
    let add = |line: &[u8]| {
        let mut digest = digest.clone();
        (digest.fold(&format, line).unwrap(), digest.messages)
    };
    assert_eq!(add(&link(2000, Some(1999), 2000)), (Folded::Done, 2001));
    assert_eq!(add(&link(2000, Some(1900), 2000)), (Folded::Done, 1902));
    assert_eq!(add(&link(2000, Some(100), 2000)).0, Folded::Anew);
    // A copy of what is remembered is known as one; an older one cannot be told.
    assert_eq!(add(&link(2000, Some(1999), 1999)), (Folded::Done, 2000));
    assert_eq!(add(&link(2000, Some(1999), 5)).0, Folded::Anew);
    // Of a small file, all is remembered.
    let mut small = whole(&chain(0, 100));
    assert_eq!(small.fold(&format, &link(100, Some(9999), 100)[..]).unwrap(), Folded::Done);
    assert_eq!(small.notices(Path::new("x")).0.len(), 1);
}

#[test]
fn blocks_of_any_size_and_any_number_of_threads_say_the_same() {
    let (text, format) = (file(), format());
    let all = whole(&text);
    for size in [1, 7, 64, 1000] {
        let mut digest = Digest::default();
        digest.begin();
        let mut blocks = Blocks::new(&text[..], 0, size);
        while let Some(mut block) = blocks.next(Vec::new()).unwrap() {
            assert_eq!(digest.take_block(&format, &mut block, None), Folded::Done);
        }
        digest.finish();
        assert_eq!(digest, all, "blocks of {size}");
    }
    let long = text.repeat(200);
    let one = whole(&long);
    for threads in 2..5 {
        let mut digest = Digest::default();
        assert_eq!(digest.fold_on(threads, &format, &long[..]).unwrap(), Folded::Done);
        assert_eq!(digest, one, "{threads} threads");
    }
}

#[test]
fn a_line_over_the_limit_is_stepped_over_in_small_memory() {
    let format = format();
    for size in [1, 5, 16, 100] {
        let text = [&chain(0, 1)[..], &[b'x'; 5000], b"\n", &chain(1, 2), &[b'x'; 3000]].concat();
        let mut blocks = Blocks::new(&text[..], 0, size).limit(1000);
        let mut digest = Digest::default();
        digest.begin();
        while let Some(mut block) = blocks.next(Vec::new()).unwrap() {
            assert!(block.bytes().len() <= 1001);
            digest.take_block(&format, &mut block, None);
        }
        digest.finish();
        assert_eq!(
            (digest.turns, digest.skipped, digest.torn, digest.lines),
            (2, 1, true, 4),
            "blocks of {size}"
        );
        assert_eq!((digest.bytes, digest.folded), (text.len() as u64, text.len() as u64 - 3000));
    }
}

#[test]
fn of_many_notices_the_first_are_kept_and_the_others_counted() {
    let digest = whole(&b"rubbish\n".repeat(100));
    assert_eq!(
        (digest.notices(Path::new("x")).0.len(), digest.notices(Path::new("x")).1),
        (NOTICES, 100 - NOTICES as u64)
    );
    assert_eq!(digest.skipped, 100);
}

/// Breaks after some bytes.
struct Breaking(Vec<u8>);

impl Read for Breaking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let some = self.0.len().min(buffer.len());
        if some == 0 {
            return Err(io::Error::other("broken"));
        }
        buffer[..some].copy_from_slice(&self.0[..some]);
        self.0.drain(..some);
        Ok(some)
    }
}

#[test]
fn a_file_that_breaks_is_an_error_on_any_number_of_threads() {
    for threads in 1..4 {
        let mut digest = Digest::default();
        let error = digest.fold_on(threads, &format(), Breaking(file())).unwrap_err();
        assert_eq!(error.to_string(), "broken");
    }
}

#[test]
fn what_a_wider_look_at_the_end_reads_is_taken_once() {
    // No record in what is looked at first, and the last ones before it.
    let mut text = chain(0, 2000);
    for _ in 0..12 {
        text.extend([&[b'x'; 1000][..], b"\n"].concat());
    }
    let mut asked = 0;
    let mut read = |at: u64, length: u64, into: &mut Filled| {
        asked += length;
        let bytes = &text[usize::try_from(at).unwrap()..][..usize::try_from(length).unwrap()];
        into.room(bytes.len()).copy_from_slice(bytes);
        into.grow(bytes.len());
        Ok(())
    };
    let size = text.len() as u64;
    let digest = Digest::of_ends(&format(), size, &mut read, &mut Buffers::default()).unwrap();
    assert_eq!((digest.skipped, digest.torn), (12, false));
    assert_eq!(digest.notes.updated, whole(&text).notes.updated);
    assert!(asked <= 129 << 10, "no end is read twice: {asked}");
}
