//! Numbers in place of ids.

use session_core::history::RecordId;

/// The number of an id: the bits of a UUID, a hash of anything else.
pub(super) fn record_id(raw: &[u8]) -> RecordId {
    RecordId(uuid(raw).unwrap_or_else(|| hash(&[raw])))
}

fn uuid(raw: &[u8]) -> Option<u128> {
    if raw.len() != 36 {
        return None;
    }
    let mut bits = 0_u128;
    for (from, to) in [(0, 8), (9, 13), (14, 18), (19, 23), (24, 36)] {
        let mut part = 0_u64;
        for byte in &raw[from..to] {
            let digit = DIGITS[usize::from(*byte)];
            if digit > 15 {
                return None;
            }
            part = part << 4 | u64::from(digit);
        }
        bits = bits << (4 * (to - from)) | u128::from(part);
    }
    [8, 13, 18, 23].iter().all(|dash| raw[*dash] == b'-').then_some(bits)
}

/// What each byte is as a hexadecimal digit; 255: none.
const DIGITS: [u8; 256] = {
    let mut digits = [255; 256];
    let mut digit = 0;
    while digit < 16 {
        digits[b"0123456789abcdef"[digit as usize] as usize] = digit;
        digits[b"0123456789ABCDEF"[digit as usize] as usize] = digit;
        digit += 1;
    }
    digits
};

/// A hash of some texts, one after the other and not run together. The same on every machine and in every version, since it
/// is kept; and long enough that no two ids of a lifetime meet by chance.
pub(super) fn hash(parts: &[&[u8]]) -> u128 {
    const ODD: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9];
    let (mut one, mut other) = (ODD[0], ODD[1]);
    let mut mix = |word: u64| {
        one = fold(one ^ word, ODD[1]);
        other = fold(other.rotate_left(23) ^ word, ODD[2]);
    };
    for part in parts {
        let mut words = part.chunks_exact(8);
        for word in &mut words {
            mix(u64::from_le_bytes(word.try_into().expect("chunks of eight")));
        }
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        mix(u64::from_le_bytes(last));
        mix(part.len() as u64 | 1 << 63);
    }
    u128::from(fold(one, ODD[2])) << 64 | u128::from(fold(other, ODD[0]))
}

/// Multiplies, and lays both halves of the product on each other.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product as u64) ^ (product >> 64) as u64
}
