//! Files that are one session's.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::path::{Path, PathBuf};

use session_core::TranscriptFormat;
use session_core::history::FileKind;

use crate::find::{Twin, packed_twin};
use crate::walk::Seen;

/// Which of the files have one id, the one to be listed first.
pub(super) type Copies = Range<usize>;

/// The files by session, the one to be listed first: the newest, or the same one that is not packed, which the agent goes on
/// with. Of a helper's file, the session that it helps counts, too, whose name is in the path. Sessions are in no order.
pub(super) fn grouped(format: &dyn TranscriptFormat, files: &mut [Seen]) -> Vec<Copies> {
    by_session(files);
    let mut groups: Vec<Copies> = Vec::with_capacity(files.len());
    for at in 0..files.len() {
        let (first, seen) = (groups.last().map(|copies| &files[copies.start]), &files[at]);
        let same = |first: &&Seen| first.file.id == seen.file.id && owner(first) == owner(seen);
        match (first.filter(same), groups.last_mut()) {
            (Some(first), Some(copies)) => {
                let is_first = packed_twin(format, &first.path, &seen.path) == Some(Twin::First);
                copies.end = at + 1;
                if is_first {
                    files[copies.clone()].rotate_right(1);
                }
            }
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// Puts files of one session side by side, in their order. Ids are mostly long and begin alike: what tells them apart at
/// once is a hash, computed once for each.
fn by_session(files: &mut [Seen]) {
    let hasher = RandomState::new();
    let hash = |seen: &Seen| hasher.hash_one(seen.file.id.as_str());
    files.sort_by_cached_key(hash);
    for same in files.chunk_by_mut(|one, other| hash(one) == hash(other)).filter(|same| same.len() > 1) {
        same.sort_unstable_by(|one, other| {
            let ids = one.file.id.as_str().cmp(other.file.id.as_str());
            ids.then_with(|| owner(one).cmp(&owner(other))).then_with(|| order(one).cmp(&order(other)))
        });
    }
}

/// Sorts sessions by the file that is to be listed first.
pub(super) fn sort(sessions: &mut Vec<Copies>, files: &[Seen]) {
    let mut ranked: Vec<(i64, Copies)> =
        sessions.drain(..).map(|copies| (files[copies.start].stamp.modified, copies)).collect();
    ranked.sort_unstable_by(|(time, one), (other_time, other)| {
        other_time.cmp(time).then_with(|| order(&files[one.start]).cmp(&order(&files[other.start])))
    });
    sessions.extend(ranked.into_iter().map(|(_, copies)| copies));
}

/// Newest first, a plain file before a packed one, in one order whatever else.
fn order(seen: &Seen) -> (Reverse<i64>, bool, &Path) {
    (Reverse(seen.stamp.modified), seen.file.packed, &seen.path)
}

/// The session that a helper's file is of.
fn owner(seen: &Seen) -> Option<PathBuf> {
    match seen.file.kind {
        FileKind::Session => None,
        FileKind::Sidechain => seen.path.parent().map(last_two),
    }
}

fn last_two(path: &Path) -> PathBuf {
    let mut names: Vec<&OsStr> = path.iter().rev().take(2).collect();
    names.reverse();
    names.iter().collect()
}
