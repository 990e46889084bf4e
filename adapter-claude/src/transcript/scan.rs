//! Strings as they are written, many bytes at a time.

use wide::u8x16;

/// Where a string ends that begins here, behind its quote. `None`: it does not end, or is none: control characters may not
/// stand in one.
#[inline]
pub(super) fn end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    // Most strings are short.
    for near in text.as_chunks().0.iter().take(3) {
        match Stop::of(near) {
            Stop::Nowhere => at += near.len(),
            Stop::End(end) => return Some(at + end),
            Stop::Other => break,
        }
    }
    far_end(text, at)
}

/// Where a string ends that begins here, if that is near, and there is no escape in it.
#[inline]
pub(super) fn near_end(text: &[u8]) -> Option<usize> {
    match Stop::of(text.first_chunk()?) {
        Stop::End(end) => Some(end),
        Stop::Nowhere | Stop::Other => None,
    }
}

/// Where the first backslash is.
#[inline]
pub(super) fn backslash(text: &[u8; 16]) -> Option<usize> {
    let found = bits(u8x16::new(*text).simd_eq(BACKSLASH));
    (found != 0).then_some(found.trailing_zeros() as usize)
}

/// Whether there is a backslash.
#[inline]
pub(super) fn has_escape(text: &[u8]) -> bool {
    let (chunks, rest) = text.as_chunks();
    chunks.iter().any(|chunk| backslash(chunk).is_some()) || rest.contains(&b'\\')
}

const QUOTE: u8x16 = u8x16::new([b'"'; 16]);
const BACKSLASH: u8x16 = u8x16::new([b'\\'; 16]);
const LAST_CONTROL: u8x16 = u8x16::new([0x1f; 16]);

/// A bit for each byte, that of the first one lowest.
#[inline]
fn bits(found: u8x16) -> u64 {
    found.to_bitmask().into()
}

#[inline]
fn controls(text: u8x16) -> u8x16 {
    text.simd_eq(text.min(LAST_CONTROL))
}

/// What of a string has to be looked at first.
enum Stop {
    Nowhere,
    /// The quote that ends it.
    End(usize),
    /// A backslash, or a control character.
    Other,
}

impl Stop {
    #[inline]
    fn of(text: &[u8; 16]) -> Self {
        let text = u8x16::new(*text);
        let quote = text.simd_eq(QUOTE);
        let any = bits(quote | text.simd_eq(BACKSLASH) | controls(text));
        let first = any & any.wrapping_neg();
        if any == 0 {
            Self::Nowhere
        } else if bits(quote) & first != 0 {
            Self::End(first.trailing_zeros() as usize)
        } else {
            Self::Other
        }
    }
}

/// The end of a string in which nothing is escaped before that place. Where escapes are cannot be foreseen: all of 64 bytes is
/// looked at before anything is decided.
#[inline(never)]
fn far_end(text: &[u8], mut at: usize) -> Option<usize> {
    let (blocks, rest) = text[at..].as_chunks::<64>();
    for block in blocks {
        let parts: [u8x16; 4] = std::array::from_fn(|part| {
            u8x16::new(*block[16 * part..].first_chunk().expect("a block has four parts of sixteen"))
        });
        let all = |test: fn(u8x16) -> u8x16| {
            parts.into_iter().rev().fold(0, |after, part| after << 16 | bits(test(part)))
        };
        let least = parts[0].min(parts[1]).min(parts[2].min(parts[3]));
        let quotes = all(|part| part.simd_eq(QUOTE));
        if quotes != 0 || bits(controls(least)) != 0 {
            let escaped = escaped(all(|part| part.simd_eq(BACKSLASH)), is_escaped(text, at));
            let (end, control) = (quotes & !escaped, all(controls));
            if end | control != 0 {
                let end = end.trailing_zeros();
                return (end < control.trailing_zeros()).then_some(at + end as usize);
            }
        }
        at += block.len();
    }
    let mut escaped = is_escaped(text, at);
    for (index, byte) in rest.iter().enumerate() {
        match byte {
            ..0x20 => return None,
            b'"' if !escaped => return Some(at + index),
            byte => escaped = *byte == b'\\' && !escaped,
        }
    }
    None
}

/// Whether the byte there is escaped by those before it.
fn is_escaped(text: &[u8], at: usize) -> bool {
    text[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Which bytes, backslashes left aside, are escaped, by where the backslashes are. `first`: whether the first byte is.
const fn escaped(backslashes: u64, first: bool) -> u64 {
    const EVEN: u64 = u64::MAX / 3;
    // A backslash that is escaped begins nothing.
    let backslashes = backslashes & !(first as u64);
    let starts = backslashes & !(backslashes << 1);
    // The first bit of a run, added to the run, leaves one bit behind it. That byte is escaped where the number of backslashes
    // is odd: the run began at an odd place, and ends before an even one, or the other way round.
    let behind_odd = backslashes.wrapping_add(starts & !EVEN) & EVEN;
    let behind_even = backslashes.wrapping_add(starts & EVEN) & !EVEN;
    (behind_odd | behind_even) & !backslashes | first as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Byte by byte.
    fn plain(text: &[u8]) -> Option<usize> {
        let mut escaped = false;
        for (at, byte) in text.iter().enumerate() {
            match byte {
                ..0x20 => return None,
                b'"' if !escaped => return Some(at),
                byte => escaped = *byte == b'\\' && !escaped,
            }
        }
        None
    }

    proptest! {
        #[test]
        fn a_string_ends_where_it_does_byte_by_byte(
            runs in proptest::collection::vec(("[a\\\\]|\\\\\"", 0..70_usize), 0..12),
            rest in "[\"\\\\a\u{1}\u{e4}]{0,3}[a\"]{0,80}",
        ) {
            let text: String = runs.iter().map(|(text, times)| text.repeat(*times)).chain([rest]).collect();
            let text = text.as_bytes();
            for from in 0..text.len().min(66) {
                prop_assert_eq!(end(&text[from..]), plain(&text[from..]), "from {}", from);
            }
        }
    }

    #[test]
    fn a_control_character_is_no_part_of_a_string_wherever_it_stands() {
        for length in [0, 1, 15, 16, 47, 48, 63, 64, 65, 127, 200] {
            for byte in [0, b'\n', b'\t', 0x1f] {
                let text = [vec![b'a'; length], vec![byte, b'"'], vec![b'b'; 70]].concat();
                assert_eq!(end(&text), None, "{length} bytes before {byte}");
                let text = [vec![b'a'; length], vec![b'"', byte], vec![b'b'; 70]].concat();
                assert_eq!(end(&text), Some(length), "{byte} behind {length} bytes");
            }
        }
    }
}
