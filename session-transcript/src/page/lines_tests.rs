use std::fs::File;
use std::io::Write as _;

use super::*;

fn file(text: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text).unwrap();
    file
}

type Seen = (u64, u64, Option<Vec<u8>>, bool);

fn seen(line: Line<'_>) -> Seen {
    (line.offset, line.length, line.text.map(<[u8]>::to_vec), line.ended)
}

fn backwards(text: &[u8], limit: usize) -> Vec<Seen> {
    let file = file(text);
    let (mut lines, mut all) = (Backwards::new(&file, text.len() as u64, limit), Vec::new());
    while let Some(line) = lines.next().unwrap() {
        all.push(seen(line));
    }
    all
}

fn forwards(text: &[u8], limit: usize) -> Vec<Seen> {
    let file = file(text);
    let (mut lines, mut all) = (Forwards::new(&file, 0, text.len() as u64, limit), Vec::new());
    while let Some(line) = lines.next().unwrap() {
        all.push(seen(line));
    }
    all
}

/// What both have to see, by the standard library.
fn lines(text: &[u8], limit: usize) -> Vec<Seen> {
    let mut at = 0;
    let mut all = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let ended = line.ends_with(b"\n");
        let bytes = &line[..line.len() - usize::from(ended)];
        let fits = bytes.len() <= limit;
        all.push((at, bytes.len() as u64, fits.then(|| bytes.to_vec()), ended));
        at += line.len() as u64;
    }
    all
}

#[test]
fn both_directions_see_the_same_lines_whatever_their_length() {
    for length in [0, 1, 7, BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5] {
        for end in ["\n", "", "\ntorn", "\n\n"] {
            let mut text = b"first\n\nsecond\n".to_vec();
            text.extend(std::iter::repeat_n(b'x', length));
            text.extend_from_slice(b"\nlast");
            text.extend_from_slice(end.as_bytes());
            let expected = lines(&text, 2 * BLOCK);
            let what = format!("a line of {length}, then {end:?}");
            assert_eq!(forwards(&text, 2 * BLOCK), expected, "{what}");
            let mut back = backwards(&text, 2 * BLOCK);
            back.reverse();
            if text.ends_with(b"\n") {
                assert_eq!(back.pop(), Some((text.len() as u64, 0, Some(Vec::new()), false)), "{what}");
            }
            assert_eq!(back, expected, "{what}");
        }
    }
}

#[test]
fn a_line_over_the_limit_is_told_with_its_place_and_takes_no_memory() {
    let limit = 2 * BLOCK;
    let text = [b"a\n".to_vec(), vec![b'x'; 40 * BLOCK], b"\nb\n".to_vec()].concat();
    let file = file(&text);
    let mut lines = Backwards::new(&file, text.len() as u64, limit);
    let mut all = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        all.push(seen(line));
    }
    assert_eq!(all[2], (2, 40 * BLOCK as u64, None, true));
    assert_eq!(all[3], (0, 1, Some(b"a".to_vec()), true));
    assert!(lines.buffer.capacity() <= 3 * limit, "{}", lines.buffer.capacity());
    assert_eq!(forwards(&text, limit)[1], (2, 40 * BLOCK as u64, None, true));
    // Without an end, too.
    assert_eq!(backwards(&text[..text.len() - 3], limit)[0], (2, 40 * BLOCK as u64, None, false));
    assert_eq!(forwards(&text[..text.len() - 3], limit)[1], (2, 40 * BLOCK as u64, None, false));
}
