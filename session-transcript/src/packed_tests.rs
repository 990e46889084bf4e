use std::io::{Cursor, Write as _};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

fn packed(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

/// Lines that differ, more than one window of them.
fn text(bytes: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0_u64.. {
        if text.len() >= bytes {
            break;
        }
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        text.extend_from_slice(format!("{{\"n\":{number},\"x\":\"{mixed:x}\"}}\n").as_bytes());
    }
    text
}

/// What can be read, and whether it is all.
fn read(bytes: &[u8], limit: u64) -> (Vec<u8>, bool) {
    let mut unpack = Unpack::within(Cursor::new(bytes), limit);
    let mut all = Vec::new();
    unpack.read_to_end(&mut all).unwrap();
    (all, !unpack.in_part)
}

#[test]
fn a_packed_file_holds_what_was_packed() {
    for bytes in [0, 1, 300_000, 2 << 20] {
        let text = text(bytes);
        assert!(read(&packed(&text), UNPACK_LIMIT) == (text, true), "{bytes}");
    }
}

#[test]
fn of_several_frames_each_is_read() {
    let (one, two) = (text(200_000), text(500_000));
    let skip = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
    let all = [skip.clone(), packed(&one), skip.clone(), packed(&two), skip].concat();
    assert!(read(&all, UNPACK_LIMIT) == ([one, two].concat(), true));
}

#[test]
fn one_that_is_cut_off_anywhere_is_read_as_far_as_it_goes() {
    let text = text(1 << 20);
    let whole = packed(&text);
    let mut longest = 0;
    for cut in (0..whole.len()).step_by(whole.len() / 50) {
        let (read, is_whole) = read(&whole[..cut], UNPACK_LIMIT);
        assert!(text.starts_with(&read), "cut at {cut}");
        assert_eq!(is_whole, cut == 0, "cut at {cut}");
        assert!(read.len() >= longest, "cut at {cut}");
        longest = read.len();
    }
    assert!(longest > text.len() / 2, "what is held back for later blocks is read, too: {longest}");
}

#[test]
fn what_follows_a_frame_and_is_none_ends_the_reading() {
    let text = text(1000);
    let appended = [packed(&text), b"{\"type\":\"x\"}\n".to_vec()].concat();
    assert!(read(&appended, UNPACK_LIMIT) == (text, false));
}

#[test]
fn a_little_that_unpacks_to_a_lot_is_read_up_to_the_limit() {
    let whole = packed(&vec![b'x'; 3 << 20]);
    assert!(whole.len() < 1 << 20, "{}", whole.len());
    let (read, is_whole) = read(&whole, 1 << 20);
    assert_eq!((read.len(), is_whole), (1 << 20, false));
}

#[test]
fn a_frame_that_looks_back_too_far_is_not_read() {
    // A window of 128 MiB, and a block of no bytes.
    let frame = [&MAGIC[..], &[0x00, 17 << 3, 1, 0, 0]].concat();
    assert_eq!(read(&frame, UNPACK_LIMIT), (Vec::new(), false));
    let small = [&MAGIC[..], &[0x00, 10 << 3, 1, 0, 0]].concat();
    assert_eq!(read(&small, UNPACK_LIMIT), (Vec::new(), true));
}

#[test]
fn damage_anywhere_is_no_panic() {
    let text = text(20_000);
    let whole = packed(&text);
    for at in (4..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let _ = read(&damaged, 1 << 20);
    }
}

#[test]
fn what_is_packed_is_told_by_its_first_bytes() {
    let text = text(1000);
    for (bytes, is_packed) in [(packed(&text), true), (text.clone(), false), (b"{}".to_vec(), false)] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut content = Content::of(file).unwrap();
        assert_eq!(content.is_packed(), is_packed);
        let mut all = Vec::new();
        content.read_to_end(&mut all).unwrap();
        assert!(all == if is_packed { text.clone() } else { bytes });
    }
}
