//! Starting children, killing them, and looking at what they left.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use session_core::{Checkpoint, Checkpointer as _, Health};

use crate::child::{Site, block, content, key};

/// A running child. It is killed when this is dropped.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(what: &str, arguments: &[&str], place: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::spawn(command.arg("child").arg(what).arg(place).args(arguments))
    }

    /// As a user who may not do all.
    fn without_power(what: &str, place: &Path) -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::start(what, &[], place);
        }
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all", "--"]).arg(std::env::current_exe().unwrap());
        Self::spawn(command.arg("child").arg(what).arg(place))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn end(mut self) {
        assert_eq!(self.line(), "done");
        assert!(self.child.wait().unwrap().success());
    }

    /// Kills it, and says what else it had told.
    fn kill(&mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::repeat_with(|| self.line()).take_while(|line| !line.is_empty()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail where it has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// All that is listed is whole, and what its label says.
fn whole(site: &Site, mailbox: &str) -> Vec<Checkpoint> {
    let list = block(site.checkpoints.list(&key(mailbox))).unwrap();
    for checkpoint in &list {
        let health = block(site.checkpoints.check(&key(mailbox), checkpoint.id)).unwrap();
        assert_eq!((&checkpoint.health, &health), (&Health::Whole, &Health::Whole));
    }
    list
}

fn killed(what: &str, lines_before: impl Iterator<Item = usize>) {
    let place = tempfile::tempdir().unwrap();
    let site = Site::at(place.path());
    // What was told to be taken, and not to be dropped, by its id.
    let mut sure: BTreeMap<String, usize> = BTreeMap::new();
    let mut unsure: Vec<String> = Vec::new();
    let mut n = 0;
    for lines in lines_before {
        let mut child = Running::start(what, &[&n.to_string()], place.path());
        let mut told: Vec<String> = (0..lines).map(|_| child.line()).collect();
        told.append(&mut child.kill());
        for line in told {
            let words: Vec<_> = line.split(' ').collect();
            n = words[1].parse::<usize>().unwrap() + 1;
            if words[0] == "took" {
                sure.insert(words[2].to_owned(), n - 1);
            } else {
                sure.remove(words[2]);
                unsure.push(words[2].to_owned());
            }
        }
        let list = whole(&site, "a");
        let listed: Vec<_> = list.iter().map(|checkpoint| checkpoint.id.to_string()).collect();
        assert!(sure.keys().all(|id| listed.contains(id)), "{sure:?} {listed:?}");
        // One more may be there that it could not tell any more, and one that it was just about to drop.
        let more = listed.iter().filter(|id| !sure.contains_key(*id) && !unsure.contains(id)).count();
        assert!(more <= 1, "{more}");
        for checkpoint in &list {
            let told: usize = checkpoint.label.prompt.as_ref().unwrap().parse().unwrap();
            let read = |path: &str| {
                block(site.checkpoints.read(&key("a"), checkpoint.id, Path::new(path), u64::MAX))
                    .unwrap()
                    .unwrap()
            };
            assert!(read("large") == content(told));
            assert_eq!(read(&format!("d{}/small", told % 5)), told.to_string().as_bytes());
            sure.insert(checkpoint.id.to_string(), told);
            n = n.max(told + 1);
        }
        // It dropped what it was about to, or did not: now that is known.
        unsure.retain(|id| !listed.contains(id));
    }
    // Nothing is left of those that were killed once the rest goes.
    block(site.checkpoints.forget(&key("a"), session_core::Forget::All)).unwrap();
    let folder = std::fs::read_dir(site.base.join(".agent-sessions/checkpoints")).unwrap();
    let path =
        folder.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "db").unwrap();
    let db = rusqlite::Connection::open(path).unwrap();
    assert_eq!(db.query_row("SELECT count(*) FROM object", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

pub(crate) fn killed_takes() {
    killed("take_for_ever", [1, 2, 0, 3, 1, 1, 0, 2].into_iter());
}

pub(crate) fn killed_forgets() {
    killed("forget_for_ever", [4, 5, 6, 5, 7, 4, 5].into_iter());
}

pub(crate) fn meeting() {
    let place = tempfile::tempdir().unwrap();
    let site = Site::at(place.path());
    let children = ["a", "b", "c"].map(|mailbox| Running::start("meet", &[mailbox, "15"], place.path()));
    children.into_iter().for_each(Running::end);
    for mailbox in ["a", "b", "c"] {
        assert_eq!(whole(&site, mailbox).len(), 2);
    }
}

/// A shell with a file system of its own at a folder of the place, which it has as `$1`, and a line that it runs there, with this
/// program as `$2`. It is mounted in a name space of the child, so that nothing is left mounted. `None`: nothing can be
/// mounted here.
#[expect(clippy::print_stderr, reason = "whoever reads the outcome should know what it stands on")]
fn with_a_disk(place: &Path, folder: &str, size: &str, line: &str) -> Option<Command> {
    std::fs::create_dir_all(place.join(folder)).unwrap();
    let shell = |options: &str, line: &str| {
        let mut command = Command::new("unshare");
        command.args(options.split(' ')).args(["sh", "-e", "-c"]);
        command.arg(format!("mount -t tmpfs -o size={size} none \"$1/{folder}\"; {line}")).arg("sh");
        command.arg(place).arg(std::env::current_exe().unwrap());
        command
    };
    let works = |options: &&str| shell(options, "true").output().is_ok_and(|output| output.status.success());
    let options = ["--mount", "--user --map-root-user --mount"].into_iter().find(works);
    if options.is_none() {
        eprintln!("note: no file system can be mounted here; nothing was tested");
    }
    Some(shell(options?, line))
}

pub(crate) fn mounted() {
    let place = tempfile::tempdir().unwrap();
    if let Some(mut command) = with_a_disk(place.path(), "tree/mnt", "1m", "exec \"$2\" child mounted \"$1\"")
    {
        Running::spawn(&mut command).end();
    }
}

/// Each step is a process of its own: one that has the database open has room in its files.
pub(crate) fn full() {
    let steps = ["take", "fill", "refused", "drop"].map(|step| format!("\"$2\" child full \"$1\" {step}"));
    let line = format!("{}; echo done", steps.join("; "));
    let place = tempfile::tempdir().unwrap();
    if let Some(mut command) = with_a_disk(place.path(), "base", "80m", &line) {
        Running::spawn(&mut command).end();
    }
}

pub(crate) fn unreadable() {
    let place = tempfile::tempdir().unwrap();
    Running::without_power("unreadable", place.path()).end();
}

pub(crate) fn unwritable() {
    let place = tempfile::tempdir().unwrap();
    Running::without_power("unwritable", place.path()).end();
}
