//! Makes a plan of mounts out of what the dialect says of the agent and what the machine says of the run.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use session_core::{Content, EnvMap, Mount, MountPlan, Purpose, StateLayout};

use crate::cli_agent::files;
use crate::error::SandboxError;
use crate::grounds::{Grounds, store_around, store_in, way};
use crate::repository;

/// What programs of this machine need and what holds nothing of anybody: each is left out where it is not there.
#[cfg(target_os = "linux")]
const SYSTEM: &[&str] = &[
    "/bin",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/sbin",
    "/usr",
];
/// Elsewhere, whoever makes the sandbox knows.
#[cfg(not(target_os = "linux"))]
const SYSTEM: &[&str] = &[];

/// More links than any program is reached through.
const LINKS: usize = 40;

/// What a plan is made of.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) program: PathBuf,
    pub(crate) leading_args: Vec<OsString>,
    pub(crate) env: EnvMap,
    pub(crate) layout: StateLayout,
    pub(crate) cwd: PathBuf,
    pub(crate) state_dir: Option<PathBuf>,
}

impl Ask {
    /// Waits for the disk. Nothing that an agent wrote decides about what is shown: no link of a work tree or a state dir is
    /// followed, and a repository is one only if it says so itself.
    pub(crate) fn plan(self) -> Result<MountPlan, SandboxError> {
        let state_dir = self.state_dir.as_deref().ok_or(SandboxError::NoStateDir)?;
        let real = |path: &Path| {
            let failed = |source| SandboxError::Path { path: path.to_owned(), source };
            path.canonicalize().map_err(failed)
        };
        let cwd = real(&self.cwd)?;
        let state = real(state_dir)?;
        let home = self.env.get("HOME").or_else(|| self.env.get("USERPROFILE")).map(Path::new);
        let home = home.filter(|home| home.is_absolute() && home.parent().is_some());
        // A home that is not there holds nothing.
        let real_home = home.and_then(|home| home.canonicalize().ok());
        if real_home.as_deref() == Some(&*cwd) || cwd.parent().is_none() {
            return Err(SandboxError::Home { cwd });
        }
        if cwd.starts_with(&state) {
            return Err(SandboxError::InStateDir { cwd });
        }
        if let Some(store) = store_around(&cwd) {
            return Err(SandboxError::InStore { store: store.to_owned(), cwd });
        }
        let is_agents =
            |place: &PathBuf| place.starts_with(&cwd) && (real_home.is_none() || place.is_symlink());
        if let Some(home) = home.filter(|home| way(home).iter().any(is_agents)) {
            return Err(SandboxError::HomeInWorkTree { home: home.to_owned(), cwd });
        }
        let grounds = Grounds::of(&cwd, Some(&state));
        grounds.refuse(std::iter::once(&*self.program).chain(files(&self.leading_args)))?;
        // What may not be seen by way of a folder around it.
        let wide = |folder: &Path| {
            let apart = real_home.iter().chain([&state]);
            let holds = |folder: &PathBuf| {
                apart.clone().any(|inner| inner.starts_with(folder))
                    || (cwd != *folder && cwd.starts_with(folder))
            };
            folder.canonicalize().is_ok_and(|folder| holds(&folder))
        };
        // What is another folder than it is called: a link may lead to what is nobody's program.
        let astray = |folder: &Path| {
            let Ok(real) = folder.canonicalize() else { return false };
            let of_home = || Some(real_home.as_deref()?.join(folder.strip_prefix(home?).ok()?));
            let is_link = real != folder && of_home().is_none_or(|named| named != real);
            let is_private = real_home.as_ref().is_some_and(|home| real.starts_with(home));
            store_around(&real).is_some() || is_link && (is_private || grounds.around(folder).is_some())
        };
        let unfit = |folder: &Path| wide(folder) || astray(folder);

        let mut mounts = vec![Mount::writable(&cwd, Purpose::WorkTree)];
        mounts.extend(self.layout.mounts.iter().cloned());
        mounts.extend(SYSTEM.iter().map(|path| Mount::read_only(path, Purpose::System).optional()));
        let common = repository::of_linked_work_tree(&cwd).filter(|common| !wide(common));
        mounts.extend(common.map(|common| Mount::read_only(common, Purpose::Repository).optional()));
        mounts.extend(self.programs(&unfit));
        mounts.extend(home.map(|home| Mount::empty(home, Purpose::Private)));
        let temporary = self.env.get("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let temporary = temporary.into_iter().chain(cfg!(unix).then(|| PathBuf::from("/tmp")));
        mounts.extend(temporary.map(|path| Mount::empty(path, Purpose::Private)));
        mounts.extend(covers(&mounts, &state, real_home.as_deref()));

        let plan = slim(&MountPlan::new(&cwd, self.layout.env.clone(), mounts));
        let seen = |login: &&Mount| login.path.canonicalize().is_ok_and(|real| is_seen(&plan, &real));
        match plan.withheld().iter().find(seen) {
            Some(login) => Err(SandboxError::Login { cwd, login: login.path.clone() }),
            None => Ok(plan),
        }
    }

    /// The program with its package, files among its leading arguments, and the folders of `PATH`.
    fn programs(&self, unfit: &dyn Fn(&Path) -> bool) -> Vec<Mount> {
        let is_system = |path: &Path| SYSTEM.iter().any(|system| path.starts_with(system));
        let mut paths: Vec<PathBuf> = Vec::new();
        for hop in files(&self.leading_args).chain([&*self.program]).flat_map(hops) {
            let whole = package(&hop).or_else(|| hop.parent().filter(|_| !is_system(&hop)));
            paths.push(whole.filter(|folder| !unfit(folder)).unwrap_or(&hop).to_owned());
        }
        let path = self.env.get("PATH").unwrap_or_default();
        let folders = std::env::split_paths(path);
        paths.extend(folders.filter(|f| f.is_absolute() && f.is_dir() && !is_system(f) && !unfit(f)));
        paths.into_iter().map(|path| Mount::read_only(path, Purpose::Program).optional()).collect()
    }
}

/// The paths that a program is reached by: its own, and those that links lead to, one after the other.
fn hops(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![clean(path)];
    while let Some(last) = found.last()
        && let (Ok(target), Some(folder)) = (last.read_link(), last.parent())
        && found.len() < LINKS
    {
        // A folder that is mounted is no link any more, so that the words of the target tell where it leads.
        found.push(clean(&folder.join(target)));
    }
    found
}

/// The same without `.` and `..`.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// The outermost folder of packages around a file: a program of one finds its parts in others.
fn package(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|folder| folder.file_name().is_some_and(|name| name == "node_modules")).last()
}

/// Whether what lies at this real path of the host can be seen in one of the mounts, whatever that is called.
fn is_seen(plan: &MountPlan, real: &Path) -> bool {
    let shown = |path: &Path| plan.shown_by(path).is_some_and(|mount| mount.content == Content::Host);
    plan.mounts().iter().filter(|mount| mount.content == Content::Host).any(|mount| {
        let source = mount.path.canonicalize();
        let rest = source.as_deref().ok().and_then(|source| real.strip_prefix(source).ok());
        rest.is_some_and(|rest| shown(&mount.path.join(rest)))
    })
}

/// What hides stores and the home where a folder around them is shown: of a store, all that leads to the state dir. Where the
/// agent may write, it could rename a folder that leads to one, and find what was hidden in the next run: the first is hidden.
fn covers(mounts: &[Mount], state: &Path, home: Option<&Path>) -> Vec<Mount> {
    let mut covers = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.content == Content::Host) {
        let Ok(real) = mount.path.canonicalize() else { continue };
        if let Some(first) = state.strip_prefix(&real).ok().and_then(|rest| rest.components().next()) {
            covers.push(Mount::empty(mount.path.join(first), Purpose::Cover));
        }
        if let Some(rest) = home.and_then(|home| home.strip_prefix(&real).ok()) {
            let first = rest.components().next().filter(|_| !mount.read_only);
            let hidden = first.map_or(rest, |first| Path::new(first.as_os_str()));
            covers.push(Mount::empty(mount.path.join(hidden), Purpose::Cover));
        }
        if mount.purpose != Purpose::StateDir {
            covers.extend(store_in(&mount.path).map(|store| Mount::empty(store, Purpose::Cover)));
        }
    }
    covers
}

/// Without what is seen already as a part of the work tree, and would only be made unwritable.
fn slim(plan: &MountPlan) -> MountPlan {
    let within = |mount: &Mount| {
        let around = mount.path.parent().and_then(|folder| plan.shown_by(folder));
        around.is_some_and(|around| around.purpose == Purpose::WorkTree)
    };
    let parts = [Purpose::Program, Purpose::Config, Purpose::Repository];
    let kept = plan.mounts().iter().filter(|mount| !(parts.contains(&mount.purpose) && within(mount)));
    MountPlan::new(plan.cwd(), plan.env().to_vec(), kept.chain(plan.withheld()).cloned())
}
