//! A project in which an agent's own tool and its shell change files, with all around them that a rewind must leave alone.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::stage::Stage;

/// A word in the prompt of the second turn, and nowhere else.
pub(crate) const BY_TOOL: &str = "quagga";
/// A word in the prompt of the third turn, and nowhere else.
pub(crate) const BY_SHELL: &str = "pangolin";

/// A file that the ignore rules name.
pub(crate) const IGNORED: &str = "build.log";
/// A file that git tracks.
pub(crate) const TRACKED: &str = "tracked.txt";

/// What the shell does.
const SHELL: &str = "printf 'two\\n' >> tracked.txt && printf 'more\\n' >> made.txt && printf 'new\\n' > shell.txt && \
    rm gone.txt && chmod 755 script.sh && mv old new && ln -s tracked.txt link && mkdir -p deep/er && \
    printf 'x' > deep/er/file && printf 'built\\n' >> build.log && printf 'two\\n' >> untracked.txt";

/// What the second and the third turn change, without what is ignored.
pub(crate) const CHANGED: [&str; 14] = [
    "deep",
    "deep/er",
    "deep/er/file",
    "gone.txt",
    "link",
    "made.txt",
    "new",
    "new/name.txt",
    "old",
    "old/name.txt",
    "script.sh",
    "shell.txt",
    TRACKED,
    "untracked.txt",
];

/// The prompts: nothing, the agent's own tool, its shell.
pub(crate) fn prompts(stage: &Stage) -> [String; 3] {
    let (cli, agent) = (&stage.cli, stage.cli.under_test());
    let made = stage.place.project().join("made.txt");
    [
        "alpha".to_owned(),
        format!("{BY_TOOL} {}", agent.edit_call(cli, &made, "by its own tool")),
        format!("{BY_SHELL} {}", agent.tool_call(cli, SHELL)),
    ]
}

/// A repository with files of every sort, and with a hook and a filter that leave a trace when git runs them.
pub(crate) fn lay_out(stage: &Stage) {
    let project = stage.place.project();
    let files = [
        (".gitattributes", "*.txt filter=trap\n"),
        (".gitignore", "*.log\n"),
        (TRACKED, "one\n"),
        ("gone.txt", "gone\n"),
        ("script.sh", "exit\n"),
        ("old/name.txt", "name\n"),
    ];
    std::fs::create_dir(project.join("old")).unwrap();
    for (name, text) in files {
        std::fs::write(project.join(name), text).unwrap();
    }
    stage.git(&["add", "."]);
    stage.git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "files"]);
    for name in [IGNORED, "untracked.txt"] {
        std::fs::write(project.join(name), "one\n").unwrap();
    }
    let spring =
        format!("echo \"$HOME $(tr '\\0' ' ' < /proc/$PPID/cmdline)\" >> '{}'", trap(stage).display());
    for side in ["clean", "smudge"] {
        stage.git(&["config", &format!("filter.trap.{side}"), &format!("{spring}; cat")]);
    }
    std::fs::create_dir_all(project.join(".git/hooks")).unwrap();
    for name in ["post-index-change", "post-checkout", "reference-transaction"] {
        let hook = project.join(".git/hooks").join(name);
        std::fs::write(&hook, format!("#!/bin/sh\n{spring}\n")).unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// The trace.
fn trap(stage: &Stage) -> PathBuf {
    stage.place.root.join("tmp/sprung")
}

/// Sets the trap.
pub(crate) fn set_trap(stage: &Stage) {
    let _ = std::fs::remove_file(trap(stage));
}

/// The gits that ran a hook or a filter since, without those of the CLI.
pub(crate) fn sprung(stage: &Stage) -> Vec<String> {
    let traces = std::fs::read_to_string(trap(stage)).unwrap_or_default();
    let of_cli = format!("{} ", stage.place.home().display());
    traces.lines().filter(|trace| !trace.starts_with(&of_cli)).map(str::to_owned).collect()
}

/// What stands at a path: its type and its permissions, and its content or target.
type Stand = (u32, Vec<u8>);

/// All that is in a folder, byte for byte and mode for mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture(BTreeMap<PathBuf, Stand>);

impl Picture {
    pub(crate) fn of(folder: &Path) -> Self {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                let content = match metadata.file_type() {
                    kind if kind.is_symlink() => path.read_link().unwrap().as_os_str().as_bytes().to_vec(),
                    kind if kind.is_file() => std::fs::read(&path).unwrap(),
                    _ => Vec::new(),
                };
                let within = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(within, (metadata.permissions().mode(), content));
                if metadata.is_dir() {
                    folders.push(path);
                }
            }
        }
        Self(found)
    }

    /// Only what git keeps.
    pub(crate) fn of_git(&self) -> Self {
        self.filtered(|path| path.starts_with(".git"))
    }

    /// Of that, what a git of the CLI leaves alone that only looks at files, or keeps them.
    pub(crate) fn of_quiet_git(&self) -> Self {
        let quiet =
            ["HEAD", "config", "hooks", "packed-refs", "refs"].map(|name| Path::new(".git").join(name));
        self.filtered(|path| quiet.iter().any(|quiet| path.starts_with(quiet)))
    }

    /// Only what a checkpoint covers.
    pub(crate) fn covered(&self) -> Self {
        self.filtered(|path| !path.starts_with(".git") && path != Path::new(IGNORED))
    }

    fn filtered(&self, wanted: impl Fn(&Path) -> bool) -> Self {
        let wanted = self.0.iter().filter(|(path, _)| wanted(path));
        Self(wanted.map(|(path, stand)| (path.clone(), stand.clone())).collect())
    }

    /// The paths that differ, in the order of paths.
    pub(crate) fn differing(&self, other: &Self) -> Vec<PathBuf> {
        let paths: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        paths.into_iter().filter(|path| self.0.get(*path) != other.0.get(*path)).cloned().collect()
    }

    /// The content of a file.
    pub(crate) fn content(&self, path: &str) -> &[u8] {
        &self.0[Path::new(path)].1
    }
}
