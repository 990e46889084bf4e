//! Numbers in place of ids.

use session_core::history::RecordId;

/// The number of an id: the bits of a UUID, a hash of anything else.
pub(super) fn record_id(raw: &[u8]) -> RecordId {
    RecordId(uuid(raw).unwrap_or_else(|| hash(&[raw])))
}

fn uuid(raw: &[u8]) -> Option<u128> {
    let raw: &[u8; 36] = raw.try_into().ok()?;
    let dashes = [8, 13, 18, 23].iter().all(|dash| raw[*dash] == b'-');
    let digits = |from: [usize; 8]| hex(from.map(|at| raw[at]));
    let parts = [
        digits([0, 1, 2, 3, 4, 5, 6, 7])?,
        digits([9, 10, 11, 12, 14, 15, 16, 17])?,
        digits([19, 20, 21, 22, 24, 25, 26, 27])?,
        digits([28, 29, 30, 31, 32, 33, 34, 35])?,
    ];
    dashes.then(|| parts.into_iter().fold(0, |bits, part| (bits << 32) | u128::from(part)))
}

/// What eight hexadecimal digits say, all looked at together: a byte of a word for each. `None`: one of them is none.
fn hex(digits: [u8; 8]) -> Option<u32> {
    const ONES: u64 = u64::MAX / 255;
    let written = u64::from_le_bytes(digits);
    let letters = (written >> 6) & ONES;
    // A capital letter has one bit less.
    let high = (written | (letters << 5)) & (0xF0 * ONES);
    let values = (written & (0x0F * ONES)) + 9 * letters;
    // A letter stands for ten or more, what is none for less, and nothing for sixteen.
    let misread = (((values + 6 * ONES) ^ (letters << 4)) | values) & (0x10 * ONES);
    if high != 0x30 * (ONES + letters) || misread != 0 {
        return None;
    }
    // The first digit counts most, and lies lowest: pairs, then fours, then all.
    let pairs = ((values << 4) | (values >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = ((pairs << 8) | (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some(((fours << 16) | (fours >> 32)) as u32)
}

const ODD: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9];

/// A hash of some texts, one after the other and not run together. The same on every machine and in every version, since it
/// is kept; and long enough that no two ids of a lifetime meet by chance.
pub(super) fn hash(parts: &[&[u8]]) -> u128 {
    let (mut one, mut other) = (ODD[0], ODD[1]);
    words(parts, |word| {
        one = fold(one ^ word, ODD[1]);
        other = fold(other.rotate_left(23) ^ word, ODD[2]);
    });
    u128::from(fold(one, ODD[2])) << 64 | u128::from(fold(other, ODD[0]))
}

/// A shorter one, for telling apart what stands in one session.
pub(super) fn short_hash(parts: &[&[u8]]) -> u64 {
    let mut hash = ODD[0];
    words(parts, |word| hash = fold(hash ^ word, ODD[1]));
    fold(hash, ODD[2])
}

/// Texts as words of eight bytes, each text with its length behind it.
#[inline]
fn words(parts: &[&[u8]], mut each: impl FnMut(u64)) {
    for part in parts {
        let (words, rest) = part.as_chunks();
        words.iter().for_each(|word| each(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        each(u64::from_le_bytes(last));
        each(part.len() as u64 | 1 << 63);
    }
}

/// Multiplies, and lays both halves of the product on each other.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_byte_is_a_digit_or_none() {
        for at in 0..8 {
            for byte in 0..=u8::MAX {
                let digits: [u8; 8] =
                    std::array::from_fn(|index| if index == at { byte } else { b"09afAF6e"[index] });
                let read = std::str::from_utf8(&digits).ok().filter(|_| byte != b'+');
                assert_eq!(
                    hex(digits),
                    read.and_then(|text| u32::from_str_radix(text, 16).ok()),
                    "{digits:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn the_number_of_a_uuid_is_its_bits(bits: u128, capitals: bool) {
            let digits = if capitals { format!("{bits:032X}") } else { format!("{bits:032x}") };
            let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
            let id = parts.join("-");
            prop_assert_eq!(record_id(id.as_bytes()), RecordId(bits));
            for dash in [8, 13, 18, 23] {
                let mut other = id.clone().into_bytes();
                other[dash] = b'_';
                prop_assert_eq!(record_id(&other), RecordId(hash(&[&other])));
            }
        }
    }

    #[test]
    fn texts_that_are_cut_elsewhere_have_another_hash() {
        let mut all = std::collections::HashSet::new();
        let mut short = std::collections::HashSet::new();
        let cuts: [&[&[u8]]; 6] =
            [&[b"ab", b"c"], &[b"a", b"bc"], &[b"abc"], &[b"abc", b""], &[b"abc\0"], &[]];
        assert!(cuts.iter().all(|parts| all.insert(hash(parts)) && short.insert(short_hash(parts))));
    }
}
