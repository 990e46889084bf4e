//! Edits of a tree, made up at random: by a program, and by a shell.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;

use super::work::Work;

/// Few names, so that steps meet; alike, or odd.
const NAMES: [&[u8]; 9] =
    [b"a", b"b", b"A", b"-rf", b"new\nline", b"\xff\xfe", "\u{e9}".as_bytes(), b"a b*", &[b'l'; 120]];
const FILE_MODES: [u32; 5] = [0o644, 0o600, 0o755, 0o400, 0o664];
const FOLDER_MODES: [u32; 2] = [0o700, 0o755];
/// What a shell does with two paths. None begins with a `-`.
const SCRIPTS: [&str; 8] = [
    "sed 's/a/b/g' \"$1\" >\"$1.t\" && mv \"$1.t\" \"$1\"",
    "mv \"$1\" \"$2\"",
    "rm -rf \"$1\" && mkdir -p \"$1/x\" && printf 'in it' >\"$1/x/y\"",
    "ln \"$1\" \"$2\"",
    "ln -s \"$1\" \"$2\"",
    // It follows a link that it is given, and one may lead to the top, where the repository is.
    "[ -L \"$1\" ] || chmod -R u+rwX,go-rwx \"$1\"",
    "cp -R \"$1\" \"$2\"",
    "rm -rf \"$2\" && printf '%s' \"$1\" >\"$2\"",
];

/// A path, by what there is at the time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot {
    /// One that is there.
    There(u16),
    /// A name in a folder that is there.
    In(u16, u8),
}

#[derive(Debug, Clone)]
pub(super) enum Edit {
    Write(Spot, Vec<u8>),
    /// So many bytes.
    Large(Spot, u32),
    Append(Spot, Vec<u8>),
    Cut(Spot, u8),
    Chmod(Spot, u8),
    Remove(Spot),
    Rename(Spot, Spot),
    Folder(Spot),
    Link(Spot, u8),
    HardLink(Spot, Spot),
    Backdated(Spot),
    Shell(u8, Spot, Spot),
}

fn spot() -> impl Strategy<Value = Spot> {
    let name = 0..NAMES.len() as u8;
    prop_oneof![
        3 => any::<u16>().prop_map(Spot::There),
        2 => (any::<u16>(), name).prop_map(|(folder, name)| Spot::In(folder, name)),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let new = || (any::<u16>(), 0..NAMES.len() as u8).prop_map(|(folder, name)| Spot::In(folder, name));
    let bytes = || vec(any::<u8>(), 0..9);
    prop_oneof![
        5 => (new(), bytes()).prop_map(|(spot, bytes)| Edit::Write(spot, bytes)),
        2 => (spot(), bytes()).prop_map(|(spot, bytes)| Edit::Write(spot, bytes)),
        1 => (spot(), 1..200_000u32).prop_map(|(spot, bytes)| Edit::Large(spot, bytes)),
        1 => (spot(), bytes()).prop_map(|(spot, bytes)| Edit::Append(spot, bytes)),
        1 => (spot(), 0..4u8).prop_map(|(spot, bytes)| Edit::Cut(spot, bytes)),
        2 => (spot(), any::<u8>()).prop_map(|(spot, mode)| Edit::Chmod(spot, mode)),
        3 => spot().prop_map(Edit::Remove),
        2 => (spot(), spot()).prop_map(|(from, to)| Edit::Rename(from, to)),
        4 => new().prop_map(Edit::Folder),
        2 => (spot(), any::<u8>()).prop_map(|(spot, target)| Edit::Link(spot, target)),
        1 => (spot(), new()).prop_map(|(from, to)| Edit::HardLink(from, to)),
        1 => spot().prop_map(Edit::Backdated),
        2 => (any::<u8>(), spot(), spot()).prop_map(|(script, one, two)| Edit::Shell(script, one, two)),
    ]
}

pub(super) fn edits(most: usize) -> impl Strategy<Value = Vec<Edit>> {
    vec(edit(), 0..most)
}

impl Spot {
    fn path(self, work: &Work) -> Option<PathBuf> {
        let marks = work.marks();
        let nth = |count: usize, n: u16| usize::from(n) % count.max(1);
        match self {
            Self::There(n) => marks.keys().nth(nth(marks.len(), n)).cloned(),
            Self::In(n, name) => {
                let is_folder =
                    |path: &&PathBuf| fs::symlink_metadata(work.at(path)).is_ok_and(|m| m.is_dir());
                let top = PathBuf::new();
                let folders: Vec<_> = std::iter::once(&top).chain(marks.keys().filter(is_folder)).collect();
                let folder = folders[nth(folders.len(), n)];
                // Paths stay short of every limit.
                let deep = folder.components().count() > 5;
                let folder = if deep { top.as_path() } else { folder.as_path() };
                Some(folder.join(OsStr::from_bytes(NAMES[usize::from(name) % NAMES.len()])))
            }
        }
    }
}

impl Edit {
    /// Does it, as far as it can be done: what cannot be is no edit.
    pub(super) fn apply(&self, work: &Work, outside: &Path) {
        self.attempt(work, outside);
    }

    fn attempt(&self, work: &Work, outside: &Path) -> Option<()> {
        let path = |spot: &Spot| spot.path(work).map(|path| work.at(path));
        let open = |path: &Path| File::options().write(true).open(path).ok();
        match self {
            Self::Write(spot, bytes) => fs::write(path(spot)?, bytes).ok(),
            Self::Large(spot, bytes) => {
                let line = format!("{bytes} bytes\n").into_bytes();
                let bytes: Vec<u8> = line.into_iter().cycle().take(*bytes as usize).collect();
                fs::write(path(spot)?, bytes).ok()
            }
            Self::Append(spot, bytes) => {
                File::options().append(true).open(path(spot)?).ok()?.write_all(bytes).ok()
            }
            Self::Cut(spot, bytes) => open(&path(spot)?)?.set_len(u64::from(*bytes)).ok(),
            Self::Chmod(spot, mode) => {
                let path = path(spot)?;
                let modes = if fs::metadata(&path).ok()?.is_dir() { &FOLDER_MODES[..] } else { &FILE_MODES };
                let mode = modes[usize::from(*mode) % modes.len()];
                fs::set_permissions(path, Permissions::from_mode(mode)).ok()
            }
            Self::Remove(spot) => {
                let path = path(spot)?;
                let folder = fs::symlink_metadata(&path).ok()?.is_dir();
                if folder { fs::remove_dir_all(path).ok() } else { fs::remove_file(path).ok() }
            }
            Self::Rename(from, to) => fs::rename(path(from)?, path(to)?).ok(),
            Self::Folder(spot) => fs::create_dir(path(spot)?).ok(),
            Self::Link(spot, target) => {
                Self::Remove(*spot).attempt(work, outside);
                let name = OsStr::from_bytes(NAMES[usize::from(*target) % NAMES.len()]);
                let targets = [name.into(), "../a".into(), ".".into(), outside.into(), outside.join("file")];
                let target = &targets[usize::from(*target) % targets.len()];
                symlink(target, path(spot)?).ok()
            }
            Self::HardLink(from, to) => fs::hard_link(path(from)?, path(to)?).ok(),
            Self::Backdated(spot) => {
                let spot = path(spot)?;
                if !fs::symlink_metadata(&spot).ok()?.is_file() {
                    return None;
                }
                let time = fs::metadata(&spot).ok()?.modified().ok()?;
                let bytes: Vec<u8> = fs::read(&spot).ok()?.iter().map(|byte| byte ^ 1).collect();
                fs::write(&spot, bytes).ok()?;
                open(&spot)?.set_modified(time).ok()
            }
            Self::Shell(script, one, two) => {
                // Whole paths: no link that it makes leads anywhere but to where it says.
                let (one, two) = (path(one)?, path(two)?);
                let script = SCRIPTS[usize::from(*script) % SCRIPTS.len()];
                work.shell(script, &[&one, &two]).then_some(())
            }
        }
    }
}
