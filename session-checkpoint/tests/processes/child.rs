//! What the children do. They tell each thing that they did in a line on stdout.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use session_checkpoint::FsCheckpoints;
use session_core::error::{CheckpointError, CheckpointErrorKind};
use session_core::{
    Checkpoint, CheckpointId, Checkpointer as _, Forget, Label, LeftOutWhy, Moment, RunId, SessionKey,
    TakeOrder, Timestamp,
};

pub(crate) fn key(mailbox: &str) -> SessionKey {
    SessionKey::new(mailbox, "claude").unwrap()
}

/// Does work that may go to a pool of threads.
pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A place with a tree and the base of a store.
pub(crate) struct Site {
    pub(crate) tree: PathBuf,
    pub(crate) base: PathBuf,
    pub(crate) checkpoints: FsCheckpoints,
}

impl Site {
    pub(crate) fn at(place: &Path) -> Self {
        let place = fs::canonicalize(place).unwrap();
        let (tree, base) = (place.join("tree"), place.join("base"));
        fs::create_dir_all(&tree).unwrap();
        Self { checkpoints: FsCheckpoints::new(&base), tree, base }
    }

    /// Takes a checkpoint that remembers a text.
    pub(crate) fn take(&self, mailbox: &str, text: &str) -> Result<Checkpoint, CheckpointError> {
        let step = RunId::new(uuid::Uuid::new_v4());
        let prompt = Some(text.to_owned());
        let label = Label { prompt, ..Label::new(key(mailbox), step, Moment::Asked) };
        let id = CheckpointId::new(uuid::Uuid::new_v4());
        let at = Timestamp::EPOCH;
        block(self.checkpoints.take(&TakeOrder { id, label: &label, at, folder: &self.tree, changed: None }))
    }

    pub(crate) fn forget(&self, mailbox: &str, which: &[CheckpointId]) -> u64 {
        block(self.checkpoints.forget(&key(mailbox), Forget::These(which))).unwrap().checkpoints
    }
}

pub(crate) fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

/// What is in the large file in round `n`: longer than a piece, and never the same.
pub(crate) fn content(n: usize) -> Vec<u8> {
    (0..(1 << 17) + n as u64).flat_map(|word| (word ^ (n as u64) << 32).to_le_bytes()).collect()
}

pub(crate) fn act(what: &str, arguments: &[String]) {
    let site = Site::at(Path::new(&arguments[0]));
    match what {
        "take_for_ever" => take_for_ever(&site, arguments[1].parse().unwrap(), false),
        "forget_for_ever" => take_for_ever(&site, arguments[1].parse().unwrap(), true),
        "meet" => meet(&site, &arguments[1], arguments[2].parse().unwrap()),
        "full" => crate::full::act(site, &arguments[1]),
        "mounted" => mounted(&site),
        "unreadable" => unreadable(&site),
        "unwritable" => unwritable(&site),
        other => panic!("no such child: {other}"),
    }
}

/// Takes checkpoints of a tree that changes, and drops all but the latest three, where asked to.
fn take_for_ever(site: &Site, first: usize, forget: bool) {
    let mut taken = Vec::new();
    for n in first.. {
        fs::write(site.tree.join("large"), content(n)).unwrap();
        fs::create_dir_all(site.tree.join(format!("d{}", n % 5))).unwrap();
        fs::write(site.tree.join(format!("d{}/small", n % 5)), n.to_string()).unwrap();
        let id = site.take("a", &n.to_string()).unwrap().id;
        say(format_args!("took {n} {id}"));
        taken.push(id);
        if forget && taken.len() > 3 {
            let gone = taken.remove(0);
            say(format_args!("drops {n} {gone}"));
            assert_eq!(site.forget("a", &[gone]), 1);
        }
    }
}

/// Takes and drops beside others, in a tree that all change.
fn meet(site: &Site, mailbox: &str, rounds: usize) {
    let mut taken = Vec::new();
    for n in 0..rounds {
        // Many states come again, so that one takes what another just drops.
        fs::write(site.tree.join("shared"), (n % 3).to_string()).unwrap();
        fs::create_dir_all(site.tree.join(mailbox)).unwrap();
        fs::write(site.tree.join(mailbox).join("own"), (n % 2).to_string()).unwrap();
        taken.push(site.take(mailbox, &n.to_string()).unwrap().id);
        if taken.len() > 2 {
            assert_eq!(site.forget(mailbox, &[taken.remove(0)]), 1);
        }
    }
    say("done");
}

/// Another file system is mounted at `mnt` in the tree.
fn mounted(site: &Site) {
    fs::write(site.tree.join("x"), "x").unwrap();
    fs::write(site.tree.join("mnt/y"), "y").unwrap();
    for _ in 0..2 {
        let taken = site.take("a", "").unwrap();
        let out = taken.left_out.iter().map(|out| (out.path.as_path().unwrap(), out.why));
        assert_eq!(out.collect::<Vec<_>>(), [(Path::new("mnt"), LeftOutWhy::OtherFileSystem)]);
        assert_eq!(taken.files, 1);
    }
    say("done");
}

fn mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn unreadable(site: &Site) {
    fs::create_dir(site.tree.join("a")).unwrap();
    fs::write(site.tree.join("a/x"), "x").unwrap();
    fs::write(site.tree.join("b"), "b").unwrap();
    let taken = || {
        let taken = site.take("a", "").unwrap();
        let out = taken.left_out.iter().map(|out| (out.path.as_path().unwrap().to_owned(), out.why));
        (taken.files, out.collect::<Vec<_>>())
    };
    for bits in [0o000, 0o600] {
        mode(&site.tree.join("a"), bits & 0o400);
        mode(&site.tree.join("b"), 0o000);
        let named = ["a", "b"].map(|path| (PathBuf::from(path), LeftOutWhy::Unreadable));
        // The names in a folder that can be listed but not entered are known.
        let named =
            if bits == 0 { named } else { [("a/x".into(), LeftOutWhy::Unreadable), named[1].clone()] };
        assert_eq!(taken(), (0, named.to_vec()));
        assert_eq!(taken(), (0, named.to_vec()), "when nothing changed");
    }
    mode(&site.tree.join("a"), 0o700);
    mode(&site.tree.join("b"), 0o600);
    assert_eq!(taken(), (2, Vec::new()));
    say("done");
}

fn unwritable(site: &Site) {
    fs::write(site.tree.join("x"), "1").unwrap();
    let first = site.take("a", "1").unwrap();
    fs::write(site.tree.join("x"), "2").unwrap();
    let folder = site.base.join(".agent-sessions/checkpoints");
    let all = |bits| fs::read_dir(&folder).unwrap().for_each(|entry| mode(&entry.unwrap().path(), bits));
    all(0o400);
    // As another process would, with nothing open.
    let other = Site { checkpoints: FsCheckpoints::new(&site.base), ..Site::at(site.tree.parent().unwrap()) };
    let error = other.take("a", "2").unwrap_err();
    assert_eq!(error.kind(), CheckpointErrorKind::PermissionDenied, "{error}");
    all(0o600);
    let second = other.take("a", "2").unwrap();
    let read = |id| block(other.checkpoints.read(&key("a"), id, Path::new("x"), 9)).unwrap().unwrap();
    assert_eq!((read(first.id), read(second.id)), (b"1".to_vec(), b"2".to_vec()));
    say("done");
}
