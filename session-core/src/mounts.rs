//! What a sandbox around a run has to show, as a value.

use std::path::{Path, PathBuf};

use crate::EnvChange;

/// Why a sandbox has to show something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// The key's state dir: the only place that outlives the run, besides the work tree.
    StateDir,
    /// The folder to work in.
    WorkTree,
    /// The repository that a linked work tree belongs to.
    Repository,
    /// The agent's program, and the folders of its `PATH`.
    Program,
    /// What programs of this machine need: libraries, certificates, the resolver. A container has its own.
    System,
    /// A part of the user's own configuration of the agent.
    Config,
    /// A file with a login. Never shown unless asked for: see [`MountPlan::with_logins`].
    Login,
    /// The session to fork, of another state dir.
    Original,
    /// A folder of the run's own, for what it need not find again: home, temporary files, caches.
    Private,
    /// A folder of the run's own over something in a folder that is shown, and may not be seen.
    Cover,
}

/// What lies at the path of a [`Mount`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// What lies at the same path on the host. A link there is followed.
    Host,
    /// An empty folder, which ends with the run.
    Empty,
}

/// A directory or file that a sandbox has to show to the agent. Its path inside is the one on the host: agents name
/// session files by the folder that they run in, and note paths that a later run, or a look from outside, has to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it lies, absolute.
    pub path: PathBuf,
    /// What lies there.
    pub content: Content,
    /// Whether the agent must not write there.
    pub read_only: bool,
    /// Whether the agent runs without it: where it is not there, it is left out.
    pub optional: bool,
    /// Why it is shown.
    pub purpose: Purpose,
}

impl Mount {
    /// What lies at this path of the host, to be read and written.
    pub fn writable(path: impl Into<PathBuf>, purpose: Purpose) -> Self {
        Self { path: path.into(), content: Content::Host, read_only: false, optional: false, purpose }
    }

    /// What lies at this path of the host, to be read.
    pub fn read_only(path: impl Into<PathBuf>, purpose: Purpose) -> Self {
        Self { read_only: true, ..Self::writable(path, purpose) }
    }

    /// An empty folder.
    pub fn empty(path: impl Into<PathBuf>, purpose: Purpose) -> Self {
        Self { content: Content::Empty, ..Self::writable(path, purpose) }
    }

    /// The same, left out where it is not there.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

/// All that the runs of one key need to see of the machine, to be carried out by a sandbox. Whatever it does not name is
/// not to be there, with two exceptions that every sandbox makes by itself: `/proc` and `/dev`, both of its own.
///
/// No record, audit log or lock of the key's store is in it, no state dir but the key's own, and no file with a login, as far
/// as the store is an embedded one, or lies apart from the work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct MountPlan {
    cwd: PathBuf,
    env: Vec<EnvChange>,
    mounts: Vec<Mount>,
    withheld: Vec<Mount>,
}

impl MountPlan {
    /// A plan of these mounts for a run in this folder; logins among them are withheld.
    pub fn new(
        cwd: impl Into<PathBuf>,
        env: Vec<EnvChange>,
        mounts: impl IntoIterator<Item = Mount>,
    ) -> Self {
        let (withheld, mounts) = mounts.into_iter().partition(|mount| mount.purpose == Purpose::Login);
        let mut plan = Self { cwd: cwd.into(), env, mounts, withheld };
        plan.arrange();
        plan
    }

    /// The folder to start the agent in: a real path, without links.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Changes to the agent's environment that make it use what is shown, in order. A [`CommandSpec`](crate::CommandSpec)
    /// adds its own.
    #[must_use]
    pub fn env(&self) -> &[EnvChange] {
        &self.env
    }

    /// The mounts, each path once, and a folder before what lies in it: mounted in this order, none hides another.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// Files with logins that the agent would read, and that are not shown. Empty where its environment carries the login.
    #[must_use]
    pub fn withheld(&self) -> &[Mount] {
        &self.withheld
    }

    /// Shows the files with logins, too. The agent, and every command that a model has it run, can then read them.
    pub fn with_logins(mut self) -> Self {
        self.mounts.append(&mut self.withheld);
        self.arrange();
        self
    }

    /// Shows this, too. Where the plan has something at that path already, this takes its place.
    pub fn show(mut self, mount: Mount) -> Self {
        self.mounts.retain(|known| known.path != mount.path);
        self.mounts.push(mount);
        self.arrange();
        self
    }

    /// Leaves out all that is shown for this purpose. A container that brings its own system leaves out
    /// [`Purpose::System`].
    pub fn without(mut self, purpose: Purpose) -> Self {
        self.mounts.retain(|mount| mount.purpose != purpose);
        self
    }

    /// Lets the agent write where something is shown for this purpose, such as [`Purpose::Repository`], without which
    /// nothing can be committed in a linked work tree.
    pub fn writable(mut self, purpose: Purpose) -> Self {
        self.mounts
            .iter_mut()
            .filter(|mount| mount.purpose == purpose)
            .for_each(|mount| mount.read_only = false);
        self
    }

    /// The mount that shows this path: the innermost one around it.
    #[must_use]
    pub fn shown_by(&self, path: &Path) -> Option<&Mount> {
        self.mounts.iter().rfind(|mount| path.starts_with(&mount.path))
    }

    /// Of two at one path, what the run needs most stays: what lies on the host, then what may be written.
    fn arrange(&mut self) {
        self.mounts.sort_by(|a, b| {
            let rank = |mount: &Mount| (mount.content == Content::Empty, mount.read_only, mount.purpose);
            a.path.cmp(&b.path).then_with(|| rank(a).cmp(&rank(b)))
        });
        self.mounts.dedup_by(|later, kept| later.path == kept.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(plan: &MountPlan) -> Vec<&str> {
        plan.mounts().iter().map(|mount| mount.path.to_str().unwrap()).collect()
    }

    #[test]
    fn a_folder_comes_before_what_lies_in_it_and_each_path_once() {
        let plan = MountPlan::new(
            "/w",
            Vec::new(),
            [
                Mount::writable("/h/s/m/a", Purpose::StateDir),
                Mount::read_only("/w", Purpose::Program),
                Mount::empty("/h", Purpose::Private),
                Mount::writable("/w", Purpose::WorkTree),
                Mount::empty("/w", Purpose::Private),
                Mount::read_only("/h-else", Purpose::Config),
            ],
        );
        assert_eq!(paths(&plan), ["/h", "/h/s/m/a", "/h-else", "/w"]);
        let work = plan.shown_by(Path::new("/w/src/x")).unwrap();
        assert_eq!((work.purpose, work.content, work.read_only), (Purpose::WorkTree, Content::Host, false));
        assert_eq!(plan.shown_by(Path::new("/h/s/m/b")).unwrap().content, Content::Empty);
        assert_eq!(plan.shown_by(Path::new("/elsewhere")), None);
    }

    #[test]
    fn a_login_is_shown_only_where_it_is_asked_for() {
        let login = Mount::writable("/h/.agent/login", Purpose::Login).optional();
        let plan =
            MountPlan::new("/w", Vec::new(), [Mount::writable("/w", Purpose::WorkTree), login.clone()]);
        assert_eq!((paths(&plan), plan.withheld()), (vec!["/w"], &[login][..]));
        let plan = plan.with_logins();
        assert_eq!(paths(&plan), ["/h/.agent/login", "/w"]);
        assert_eq!(plan.withheld(), []);
    }

    #[test]
    fn a_plan_can_be_made_wider_and_narrower() {
        let plan = MountPlan::new("/w", Vec::new(), [Mount::read_only("/r/.git", Purpose::Repository)])
            .show(Mount::read_only("/opt/tools", Purpose::Program))
            .show(Mount::empty("/opt/tools", Purpose::Private))
            .writable(Purpose::Repository);
        assert_eq!(paths(&plan), ["/opt/tools", "/r/.git"]);
        assert_eq!(plan.mounts()[0].content, Content::Empty);
        assert!(!plan.mounts()[1].read_only);
        assert_eq!(paths(&plan.without(Purpose::Private)), ["/r/.git"]);
    }
}
