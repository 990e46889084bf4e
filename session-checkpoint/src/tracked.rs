//! What git tracks: the names in an index. Also other names that are covered whatever a rule says.

use std::path::Path;

use crate::place;

/// The names of a repository's index, in their order.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    names: Vec<u8>,
    ends: Vec<usize>,
}

/// A larger index is not read.
const LARGEST: u64 = 1 << 30;
/// Nor one whose names take more room: with each name a part of the one before, a small index may hold any number of bytes.
const MOST: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };

impl Tracked {
    /// These names, each within the tree.
    pub(crate) fn of(mut names: Vec<Vec<u8>>) -> Self {
        names.sort_unstable();
        let mut tracked = Self::default();
        for name in names {
            tracked.names.extend_from_slice(&name);
            tracked.ends.push(tracked.names.len());
        }
        tracked
    }

    /// Reads an index. Where there is none, or it cannot be read, nothing is tracked.
    pub(crate) fn read(index: &Path) -> Self {
        let Some(data) = place::read(index, LARGEST) else { return Self::default() };
        // The length of a hash is told nowhere in it; with the wrong one, names do not have the lengths that they say.
        [20, 32].iter().find_map(|hash| Self::parse(&data, *hash)).unwrap_or_else(|| {
            tracing::debug!(index = %index.display(), "the index cannot be read; nothing counts as tracked");
            Self::default()
        })
    }

    fn parse(data: &[u8], hash: usize) -> Option<Self> {
        let header = data.get(..12)?.strip_prefix(b"DIRC")?;
        let (version, count) = (number(header, 0)?, number(header, 4)?);
        if !(2..=4).contains(&version) {
            return None;
        }
        let mut tracked = Self::default();
        let mut at = 12;
        for _ in 0..count {
            let start = at;
            // Times, place, mode, owner and size come before the hash.
            at += 40 + hash;
            let flags = u16::from_be_bytes(data.get(at..at + 2)?.try_into().ok()?);
            at += 2;
            if version >= 3 && flags & 0x4000 != 0 {
                at += 2;
            }
            let mut shared = 0;
            if version == 4 {
                let before = tracked.ends.len().checked_sub(1).map_or(&[][..], |last| tracked.name(last));
                let cut = varint(data, &mut at)?;
                shared = before.len().checked_sub(cut)?;
            }
            let rest = data.get(at..)?;
            let length = rest.iter().position(|byte| *byte == 0)?;
            let full = shared + length;
            if usize::from(flags & 0xFFF) != full.min(0xFFF) {
                return None;
            }
            let begin = tracked.ends.len().checked_sub(1).map_or(0, |last| tracked.begin(last));
            if tracked.names.len() + full > MOST {
                return None;
            }
            tracked.names.extend_from_within(begin..begin + shared);
            tracked.names.extend_from_slice(&rest[..length]);
            tracked.ends.push(tracked.names.len());
            at += length + 1;
            if version < 4 {
                at = start + (at - start).next_multiple_of(8);
            }
        }
        tracked.is_whole(data, at, hash).then_some(tracked)
    }

    /// Whether the rest of an index says nothing that takes names from elsewhere.
    fn is_whole(&self, data: &[u8], mut at: usize, hash: usize) -> bool {
        while at + hash + 8 <= data.len() {
            let Some(size) = number(data, at + 4) else { return false };
            if data[at..].starts_with(b"link") {
                return false;
            }
            at += 8 + size as usize;
        }
        at + hash == data.len()
    }

    fn begin(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn name(&self, number: usize) -> &[u8] {
        &self.names[self.begin(number)..self.ends[number]]
    }

    /// The first name that is not before this one.
    fn from(&self, name: &[u8]) -> Option<&[u8]> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.name(middle) < name {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.ends.len()).then(|| self.name(low))
    }

    /// Whether git tracks a path, or anything below it.
    pub(crate) fn has(&self, path: &[u8], is_folder: bool) -> bool {
        if self.from(path) == Some(path) {
            return true;
        }
        let below = [path, b"/"].concat();
        is_folder && self.from(&below).is_some_and(|name| name.starts_with(&below))
    }
}

fn number(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

/// A number in groups of seven bits, the highest first, each but the last one less than it is.
fn varint(data: &[u8], at: &mut usize) -> Option<usize> {
    let mut value: usize = 0;
    loop {
        let byte = *data.get(*at)?;
        *at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7F))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Tracked;

    /// An index of version 2 or 4 with these names.
    fn index(version: u8, hash: usize, names: &[&str], tail: &[u8]) -> Vec<u8> {
        let mut data = b"DIRC\0\0\0".to_vec();
        data.push(version);
        data.extend_from_slice(&u32::try_from(names.len()).unwrap().to_be_bytes());
        let mut before = "";
        for name in names {
            let start = data.len();
            data.resize(start + 40 + hash, 7);
            data.extend_from_slice(&u16::try_from(name.len()).unwrap().to_be_bytes());
            if version == 4 {
                let shared = before.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
                data.push(u8::try_from(before.len() - shared).unwrap());
                data.extend_from_slice(&name.as_bytes()[shared..]);
                data.push(0);
                before = name;
            } else {
                data.extend_from_slice(name.as_bytes());
                data.push(0);
                data.resize(start + (data.len() - start).next_multiple_of(8), 0);
            }
        }
        data.extend_from_slice(tail);
        data.resize(data.len() + hash, 9);
        data
    }

    #[test]
    fn names_are_found_whatever_the_version_and_the_hash() {
        let names = ["a", "b-c", "b/deep/x", "b/deeper", "b0"];
        for version in [2, 3, 4] {
            for hash in [20, 32] {
                let data = index(version, hash, &names, b"TREE\0\0\0\x02xx");
                let tracked = [20, 32].iter().find_map(|hash| Tracked::parse(&data, *hash)).unwrap();
                assert!(names.iter().all(|name| tracked.has(name.as_bytes(), false)), "{version} {hash}");
                assert!(tracked.has(b"b", true) && tracked.has(b"b/deep", true));
                assert!(
                    !tracked.has(b"b", false) && !tracked.has(b"b/dee", true) && !tracked.has(b"c", true)
                );
            }
        }
    }

    #[test]
    fn what_is_no_whole_index_is_none() {
        let data = index(2, 20, &["a", "b"], b"");
        assert!(Tracked::parse(&data, 20).is_some());
        for length in 0..data.len() {
            assert!(Tracked::parse(&data[..length], 20).is_none(), "{length}");
        }
        assert!(Tracked::parse(&index(2, 20, &["a"], b"link\0\0\0\0"), 20).is_none());
        assert!(Tracked::parse(&index(5, 20, &["a"], b""), 20).is_none());
        // Each name is the one before, and a letter.
        let names: Vec<_> = (1..1000).map(|length| "x".repeat(length)).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert!(Tracked::parse(&index(4, 20, &names, b""), 20).is_some());
        let names: Vec<_> = (1..1500).map(|length| "x".repeat(length)).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert!(Tracked::parse(&index(4, 20, &names, b""), 20).is_none());
    }
}
