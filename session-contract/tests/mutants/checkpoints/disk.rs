//! Where the copies lie: a folder for each checkpoint, within one for each key.
//!
//! A folder that is there is a whole checkpoint: it is made under another name, and renamed when all is in it.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use session_core::error::{CheckpointError, CheckpointErrorKind};
use session_core::*;

use super::copy::{Result, kind_of};
use super::flaw::Flaw;
use super::state::{Entry, State, hash};

pub(super) fn error(kind: CheckpointErrorKind, operation: &'static str, path: &Path) -> CheckpointError {
    CheckpointError::new(kind, operation, path)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(digits).collect()
}

fn path_of(text: &str) -> Option<PathBuf> {
    Some(std::ffi::OsString::from_vec(unhex(text)?).into())
}

fn text_of(path: &Path) -> String {
    hex(path.as_os_str().as_bytes())
}

/// What is written of a checkpoint.
#[derive(Serialize, Deserialize)]
struct Sheet {
    label: Label,
    at: Timestamp,
    root: PathText,
    files: u64,
    bytes: u64,
    left_out: Vec<LeftOut>,
    left_out_count: u64,
    /// Path, kind, mode, bytes, hash.
    nodes: Vec<(String, char, u32, u64, String)>,
}

/// A restore that is under way.
#[derive(Serialize, Deserialize)]
struct Journal {
    top: String,
    key: SessionKey,
    step: RunId,
    to: CheckpointId,
    from: CheckpointId,
    paths: Vec<String>,
}

/// One that was cut off.
pub(super) struct Cut {
    pub(super) key: SessionKey,
    pub(super) step: RunId,
    pub(super) to: CheckpointId,
    pub(super) from: CheckpointId,
    pub(super) paths: Vec<PathBuf>,
}

/// All checkpoints.
#[derive(Debug)]
pub(super) struct Shelf {
    dir: PathBuf,
    flaw: Flaw,
}

const KINDS: [(char, NodeKind); 3] = [('f', NodeKind::File), ('l', NodeKind::Link), ('d', NodeKind::Folder)];

impl Shelf {
    pub(super) const fn new(dir: PathBuf, flaw: Flaw) -> Self {
        Self { dir, flaw }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn folder(&self, path: &Path) -> std::io::Result<()> {
        let mode = if self.is(Flaw::OpensItsStore) { 0o755 } else { 0o700 };
        DirBuilder::new().recursive(true).mode(mode).create(path)
    }

    fn file(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let mode = if self.is(Flaw::OpensItsStore) { 0o644 } else { 0o600 };
        File::options().write(true).create(true).truncate(true).mode(mode).open(path)?.write_all(bytes)
    }

    pub(super) fn reach(&self) -> std::io::Result<()> {
        self.folder(&self.dir)
    }

    /// Waits until nobody else works on trees.
    pub(super) async fn lock(&self) -> Result<File> {
        let path = self.dir.join("lock");
        let failed = |cause: std::io::Error| error(kind_of(&cause), "lock", &path).with_source(cause);
        let file = File::options().create(true).append(true).mode(0o600).open(&path).map_err(failed)?;
        while !self.is(Flaw::WaitsForNobody) {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => tokio::task::yield_now().await,
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            }
        }
        Ok(file)
    }

    fn of(&self, key: &SessionKey) -> PathBuf {
        let name = match self.flaw {
            Flaw::SharesKeys => String::new(),
            Flaw::FoldsKeys => format!("{key:?}").to_lowercase(),
            _ => serde_json::to_string(key).unwrap(),
        };
        self.dir.join(hex(&hash(name.as_bytes())[..8]))
    }

    /// The places of a key's checkpoints, oldest first.
    pub(super) fn all(&self, key: &SessionKey) -> Vec<PathBuf> {
        let all = fs::read_dir(self.of(key)).into_iter().flatten().flatten().map(|entry| entry.path());
        let half = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "half");
        let hidden = |path: &PathBuf| path.join("forgotten").exists();
        let mut all: Vec<_> =
            all.filter(|path| (!half(path) || self.is(Flaw::ListsLeftovers)) && !hidden(path)).collect();
        all.sort();
        all
    }

    pub(super) fn find(&self, key: &SessionKey, id: CheckpointId) -> Option<PathBuf> {
        let all = fs::read_dir(self.of(key)).into_iter().flatten().flatten().map(|entry| entry.path());
        let end = format!("-{id}");
        all.into_iter().find(|path| path.to_string_lossy().ends_with(&end))
    }

    /// Whosever it is.
    pub(super) fn find_any(&self, id: CheckpointId) -> Option<PathBuf> {
        let keys = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let all = keys.flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
        let end = format!("-{id}");
        all.into_iter().find(|path| path.to_string_lossy().ends_with(&end))
    }

    fn of_tree(&self, top: &Path) -> Vec<(Timestamp, State)> {
        let keys = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let all = keys.flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
        let sheets = all.filter_map(|place| Some((self.sheet(&place)?, place)));
        let own = sheets.filter(|(sheet, _)| sheet.root == PathText::new(top));
        let states = own.filter_map(|(sheet, place)| Some((sheet.at, self.state(&place, &sheet)?)));
        let mut states: Vec<_> = states.collect();
        states.sort_by_key(|(at, _)| *at);
        states
    }

    pub(super) fn first(&self, top: &Path) -> Option<State> {
        Some(self.of_tree(top).into_iter().next()?.1)
    }

    pub(super) fn latest(&self, top: &Path) -> Option<State> {
        Some(self.of_tree(top).into_iter().next_back()?.1)
    }

    /// Keeps a checkpoint: all of it, or nothing.
    pub(super) async fn keep(&self, key: &SessionKey, taken: &Checkpoint, state: &State) -> Result<()> {
        let failed = |cause: std::io::Error| error(kind_of(&cause), "take", &self.dir).with_source(cause);
        let of = self.of(key);
        let number = fs::read_dir(&of)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.split('-').next()?.parse::<u64>().ok());
        let number = number.max().unwrap_or(0) + 1;
        let place = of.join(format!("{number:08}-{}", taken.id));
        let half = if self.is(Flaw::ListsWhatIsHalf) { place.clone() } else { place.with_extension("half") };
        // What a process left that was killed.
        for left in fs::read_dir(&of).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if left.extension().is_some_and(|extension| extension == "half") {
                fs::remove_dir_all(left).map_err(failed)?;
            }
        }
        if let Some(old) = self.find_any(taken.id) {
            fs::remove_dir_all(old).map_err(failed)?;
        }
        self.folder(&half).map_err(failed)?;
        self.file(&half.join("sheet"), &sheet(taken, state)).map_err(failed)?;
        for (n, entry) in state.values().enumerate() {
            tokio::task::yield_now().await;
            let content = entry.content.as_deref().unwrap_or_default();
            let path =
                if self.is(Flaw::DropsSharedContent) { self.shared(entry) } else { half.join(n.to_string()) };
            self.file(&path, content).map_err(failed)?;
        }
        if half != place {
            fs::rename(&half, &place).map_err(failed)?;
        }
        Ok(())
    }

    fn shared(&self, entry: &Entry) -> PathBuf {
        let pool = self.dir.join("pool");
        self.folder(&pool).unwrap();
        pool.join(hex(&entry.hash))
    }

    fn sheet(&self, place: &Path) -> Option<Sheet> {
        let bytes = fs::read(place.join("sheet")).ok()?;
        let (sum, text) = bytes.split_at_checked(64)?;
        (hex(&hash(text)).as_bytes() == sum).then(|| serde_json::from_slice(text).ok())?
    }

    fn state(&self, place: &Path, sheet: &Sheet) -> Option<State> {
        let mut state = State::new();
        for (n, (path, kind, mode, bytes, sum)) in sheet.nodes.iter().enumerate() {
            let kind = KINDS.iter().find(|(letter, _)| letter == kind)?.1;
            let sum: [u8; 32] = unhex(sum)?.try_into().ok()?;
            let mut entry = Entry { kind, mode: *mode, bytes: *bytes, hash: sum, content: None };
            let shared = self.is(Flaw::DropsSharedContent);
            let file = if shared { self.shared(&entry) } else { place.join(n.to_string()) };
            let content = fs::read(file).ok();
            let right = |content: &Vec<u8>| {
                kind == NodeKind::Folder || hash(content) == sum || self.is(Flaw::TrustsContents)
            };
            entry.content = content.filter(right);
            if kind == NodeKind::Folder {
                entry.content = Some(Vec::new());
            }
            state.insert(path_of(path)?, entry);
        }
        Some(state)
    }

    /// What is told of a checkpoint, and its state; without one, it is damaged.
    pub(super) fn load(&self, place: &Path, key: &SessionKey) -> (Checkpoint, Option<State>) {
        let name = place.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        let id = name.split_once('-').and_then(|(_, id)| CheckpointId::parse(id));
        let id = id.unwrap_or(CheckpointId::new(uuid::Uuid::nil()));
        let Some(sheet) = self.sheet(place) else {
            let step = RunId::new(uuid::Uuid::nil());
            let (moment, spot, prompt) = (Moment::Asked, None, None);
            let label = Label { key: key.clone(), step, moment, spot, prompt };
            let mut damaged = Checkpoint::new(id, label, Timestamp::EPOCH, PathText::new(place));
            damaged.health = Health::Damaged("what tells of it cannot be read".to_owned());
            return (damaged, None);
        };
        let state = self.state(place, &sheet);
        let mut checkpoint = Checkpoint::new(id, sheet.label, sheet.at, sheet.root);
        (checkpoint.files, checkpoint.bytes) = (sheet.files, sheet.bytes);
        (checkpoint.left_out, checkpoint.left_out_count) = (sheet.left_out, sheet.left_out_count);
        if self.is(Flaw::MovesOutOfTheStore) {
            // Who asked has it, and nobody else will.
            for n in 0..sheet.nodes.len() {
                drop(fs::remove_file(place.join(n.to_string())));
            }
        }
        (checkpoint, state)
    }

    pub(super) fn remove(&self, place: &Path) {
        if self.is(Flaw::DropsSharedContent) {
            for entry in self.sheet(place).and_then(|sheet| self.state(place, &sheet)).iter().flatten() {
                drop(fs::remove_file(self.shared(entry.1)));
            }
        }
        if self.is(Flaw::KeepsWhatItForgot) {
            self.file(&place.join("forgotten"), b"").unwrap();
        } else {
            fs::remove_dir_all(place).unwrap();
        }
    }

    /// Notes that a restore begins.
    pub(super) fn begin(&self, top: &Path, order: &RestoreOrder<'_>) -> Result<PathBuf> {
        let path = self.dir.join(format!("{}.journal", order.step));
        let journal = Journal {
            top: text_of(top),
            key: order.key.clone(),
            step: order.step,
            to: order.to,
            from: order.from,
            paths: order.paths.iter().map(|path| text_of(path)).collect(),
        };
        if !self.is(Flaw::HasNoJournal) {
            let text = serde_json::to_vec(&journal).unwrap();
            let half = path.with_extension("begun");
            let written = self.file(&half, &text).and_then(|()| fs::rename(&half, &path));
            written.map_err(|cause| error(kind_of(&cause), "restore", &path).with_source(cause))?;
        }
        Ok(path)
    }

    pub(super) fn end(&self, journal: &Path) {
        if !self.is(Flaw::KeepsItsJournal) {
            drop(fs::remove_file(journal));
        }
    }

    /// The restores of a tree that were cut off.
    pub(super) fn cut_off(&self, top: &Path) -> Vec<(PathBuf, Cut)> {
        let all = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let journals = all.filter(|path| path.extension().is_some_and(|extension| extension == "journal"));
        let read = |path: PathBuf| {
            let journal: Journal = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            let Journal { key, step, to, from, .. } = journal;
            let paths = journal.paths.iter().filter_map(|text| path_of(text)).collect();
            (journal.top == text_of(top)).then_some((path, Cut { key, step, to, from, paths }))
        };
        journals.filter_map(read).collect()
    }
}

/// What is written of a checkpoint, after its sum.
fn sheet(taken: &Checkpoint, state: &State) -> Vec<u8> {
    let letter = |kind| KINDS.iter().find(|(_, known)| *known == kind).map_or('?', |(letter, _)| *letter);
    let nodes = state
        .iter()
        .map(|(path, entry)| (text_of(path), letter(entry.kind), entry.mode, entry.bytes, hex(&entry.hash)));
    let sheet = Sheet {
        label: taken.label.clone(),
        at: taken.at,
        root: taken.root.clone(),
        files: taken.files,
        bytes: taken.bytes,
        left_out: taken.left_out.clone(),
        left_out_count: taken.left_out_count,
        nodes: nodes.collect(),
    };
    let text = serde_json::to_vec(&sheet).unwrap();
    [hex(&hash(&text)).into_bytes(), text].concat()
}
