//! Where opencode keeps what, and how a state dir takes the place of that.
//!
//! From 1.15.13 on, each session of a state dir has a database of its own, named by its id: what ails one, be it
//! damage, a lock or a newer schema, is then never in the way of a new one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use session_core::history::SessionSource;
use session_core::{EnvChange, EnvMap, Link, Mount, NativeId, Purpose, StateLayout, Version};

/// Variables that tell an agent that it runs inside another one. A child never gets them. Seen in the environment of
/// tools (1.1.65 to 1.18.33); `AGENT` is left alone, as others use it, too. With the log on
/// stderr, a program that waits without end would be heard all the time. The last two belong to a server of the user's:
/// with them, 1.15.13 locks itself out of the server that it makes for a run, and says that there is no session.
pub const NESTING_MARKERS: &[&str] = &[
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_PRINT_LOGS",
    "OPENCODE_PROCESS_ROLE",
    "OPENCODE_RUN_ID",
    "OPENCODE_SERVER_PASSWORD",
    "OPENCODE_SERVER_USERNAME",
];

pub(crate) const DATABASE: &str = "OPENCODE_DB";
const DATA_HOME: &str = "XDG_DATA_HOME";
/// Takes the place of `auth.json`.
const KEYS: &str = "OPENCODE_AUTH_CONTENT";

/// What of the user's data is shown in a data folder of the key: logins, and programs that would be fetched again.
const SHARED: &[&str] = &["auth.json", "mcp-auth.json", "bin"];

/// What of the user's configuration is shown in a sandbox: the files that are read, the folders under each of their names,
/// and what plugins are made of.
const CONFIG: &[&str] = &[
    "AGENTS.md",
    "agent",
    "agents",
    "bun.lock",
    "command",
    "commands",
    "config.json",
    "mode",
    "modes",
    "node_modules",
    "opencode.json",
    "opencode.jsonc",
    "package.json",
    "plugin",
    "plugins",
    "skill",
    "skills",
    "themes",
    "tool",
    "tools",
];

/// How a version keeps sessions in a state dir.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Up to 1.1: a tree of JSON files.
    Files,
    /// Up to 1.15.12: one database in the data folder.
    Shared,
    /// One database a session.
    PerSession,
}

impl Family {
    /// An unknown version is taken for a new one.
    pub(crate) fn of(version: Option<&Version>) -> Self {
        match version {
            Some(version) if !version.at_least(1, 2, 0) => Self::Files,
            Some(version) if !version.at_least(1, 15, 13) => Self::Shared,
            _ => Self::PerSession,
        }
    }
}

/// Whether a state dir has to be the version's whole data folder. 1.15.13 reads the JSON files of the user's data
/// folder into every database that it opens; 1.18.33 does not, and versions between were not tried.
fn needs_data_home(version: Option<&Version>) -> bool {
    version.is_some_and(|version| !version.at_least(1, 18, 33))
}

/// The user's own data folder. A relative one has no meaning before the child has its folder.
pub(crate) fn data_dir(env: &EnvMap) -> Option<PathBuf> {
    below(env, DATA_HOME, ".local/share")
}

fn below(env: &EnvMap, variable: &str, otherwise: &str) -> Option<PathBuf> {
    let absolute = |value: &OsStr| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let home = || env.get("HOME").or_else(|| env.get("USERPROFILE")).and_then(absolute);
    let base = match env.get(variable) {
        Some(folder) => absolute(folder),
        None => home().map(|home| home.join(otherwise)),
    };
    base.map(|base| base.join("opencode"))
}

/// The database of a session in a state dir.
pub(crate) fn database_of(state: &Path, id: &NativeId) -> PathBuf {
    state.join(format!("{id}.db"))
}

/// Where the user's own sessions lie: a folder of files, or a database.
pub(crate) fn at_home(data: Option<PathBuf>, env: &EnvMap, version: Option<&Version>) -> Option<PathBuf> {
    let data = data?;
    Some(match (Family::of(version), env.get(DATABASE)) {
        (Family::Files, _) => data.join("storage"),
        // A relative path is one below the data folder.
        (Family::PerSession, Some(chosen)) => data.join(chosen),
        (Family::PerSession | Family::Shared, _) => data.join("opencode.db"),
    })
}

/// What a person's environment needs for a session that lies there.
pub(crate) fn attended(source: &SessionSource) -> Vec<EnvChange> {
    let Some(state) = &source.state_dir else { return Vec::new() };
    // The data folder of the versions that have one in a state dir; beside it, each session has a database of its own.
    if source.path.starts_with(state.join("opencode")) {
        vec![EnvChange::remove(DATABASE), EnvChange::set(DATA_HOME, state)]
    } else {
        vec![EnvChange::set(DATABASE, &source.path)]
    }
}

pub(crate) fn layout(state_dir: Option<&Path>, env: &EnvMap, version: Option<&Version>) -> StateLayout {
    match state_dir {
        None => StateLayout { sessions: at_home(data_dir(env), env, version), ..StateLayout::default() },
        Some(state) if needs_data_home(version) => with_data_home(state, env, version),
        // Logins, snapshots and logs stay the user's, beside other conversations.
        Some(state) => StateLayout {
            sessions: Some(state.to_owned()),
            mounts: mounts(state, env),
            ..StateLayout::default()
        },
    }
}

/// The user's data folder holds what is said in other conversations (logs, outputs of tools, snapshots), so that a sandbox
/// shows none of it, and every version gets a data folder in the state dir.
pub(crate) fn sandboxed(state: &Path, env: &EnvMap, version: Option<&Version>) -> StateLayout {
    // The database that is copied is opened to be written (1.15.13, 1.18.33).
    StateLayout { writes_original: true, ..with_data_home(state, env, version) }
}

fn with_data_home(state: &Path, env: &EnvMap, version: Option<&Version>) -> StateLayout {
    let own = state.join("opencode");
    let mut layout = StateLayout {
        sessions: Some(state.to_owned()),
        // A database that the user chose would lead out of the state dir.
        env: vec![EnvChange::remove(DATABASE), EnvChange::set(DATA_HOME, state)],
        mounts: mounts(state, env),
        ..StateLayout::default()
    };
    if let Some(user) = data_dir(env).filter(|user| *user != own) {
        let link = |name: &&str| Link { at: own.join(name), target: user.join(name) };
        layout.links.extend(SHARED.iter().map(link));
    }
    if Family::of(version) != Family::PerSession {
        layout.sessions = Some(own);
    }
    layout
}

/// Nothing that opencode caches is shown: programs are among it, which a run could exchange for others.
fn mounts(state: &Path, env: &EnvMap) -> Vec<Mount> {
    let mut mounts = vec![Mount::writable(state, Purpose::StateDir)];
    let shown = |path: PathBuf| Mount::read_only(path, Purpose::Config).optional();
    let absolute = |name| env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    mounts.extend(absolute("OPENCODE_CONFIG").map(shown));
    let folders = below(env, "XDG_CONFIG_HOME", ".config").into_iter().chain(absolute("OPENCODE_CONFIG_DIR"));
    for folder in folders {
        mounts.extend(CONFIG.iter().map(|name| shown(folder.join(name))));
        // It writes a `.gitignore` there, and 1.18.33 ends where the file system is read-only.
        mounts.push(Mount::empty(folder, Purpose::Private));
    }
    for (variable, otherwise) in [("XDG_CACHE_HOME", ".cache"), ("XDG_STATE_HOME", ".local/state")] {
        mounts.extend(below(env, variable, otherwise).map(|path| Mount::empty(path, Purpose::Private)));
    }
    if let Some(user) = data_dir(env).filter(|user| *user != state.join("opencode")) {
        mounts.push(Mount::read_only(user.join("bin"), Purpose::Program).optional());
        // Writable, as tokens are refreshed.
        let login = |name| Mount::writable(user.join(name), Purpose::Login).optional();
        mounts.extend(env.get(KEYS).is_none().then(|| login("auth.json")));
        mounts.push(login("mcp-auth.json"));
    }
    mounts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> EnvMap {
        pairs.iter().copied().collect()
    }

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn a_person_is_told_where_the_session_of_a_state_dir_lies() {
        let at = |path: &str, state: Option<&str>| {
            attended(&SessionSource { path: path.into(), state_dir: state.map(Into::into) })
        };
        assert_eq!(at("/s/ses_1.db", Some("/s")), [EnvChange::set(DATABASE, "/s/ses_1.db")]);
        let data = [EnvChange::remove(DATABASE), EnvChange::set(DATA_HOME, "/s")];
        assert_eq!(at("/s/opencode/opencode.db", Some("/s")), data);
        assert_eq!(at("/s/opencode/storage/session/p/ses_1.json", Some("/s")), data);
        assert_eq!(at("/home/u/.local/share/opencode/opencode.db", None), []);
    }

    #[test]
    fn without_a_state_dir_nothing_changes() {
        let layout = layout(None, &env(&[("HOME", "/home/u")]), None);
        assert_eq!(layout.sessions.as_deref(), Some(Path::new("/home/u/.local/share/opencode/opencode.db")));
        assert!(layout.env.is_empty() && layout.links.is_empty() && layout.mounts.is_empty());
    }

    #[test]
    fn the_newest_version_leaves_the_data_folder_where_it_is() {
        let home = env(&[("HOME", "/home/u"), (DATABASE, "/home/u/other.db")]);
        let layout = layout(Some(Path::new("/s")), &home, Some(&version("1.18.33")));
        assert!(layout.env.is_empty() && layout.links.is_empty());
        assert_eq!(layout.sessions.as_deref(), Some(Path::new("/s")));
    }

    #[test]
    fn in_a_sandbox_every_version_has_a_data_folder_of_its_own() {
        let home = env(&[("HOME", "/home/u")]);
        for text in ["1.1.65", "1.15.13", "1.18.33"] {
            let layout = sandboxed(Path::new("/s"), &home, Some(&version(text)));
            assert!(layout.env.contains(&EnvChange::set(DATA_HOME, "/s")), "{text}");
            let without = super::layout(Some(Path::new("/s")), &home, Some(&version(text)));
            assert_eq!(layout.sessions, without.sessions, "{text}: a look from outside finds them");
            let data = Path::new("/home/u/.local/share/opencode");
            let of_user = layout.mounts.iter().filter(|mount| data.starts_with(&mount.path));
            assert_eq!(of_user.count(), 0, "{text}: other conversations lie there");
            let logins = layout.mounts.iter().filter(|mount| mount.purpose == Purpose::Login);
            let logins: Vec<_> = logins.map(|mount| mount.path.strip_prefix(data).unwrap()).collect();
            assert_eq!(logins, ["auth.json", "mcp-auth.json"].map(Path::new), "{text}");
        }
    }

    #[test]
    fn keys_in_the_environment_take_the_place_of_the_file() {
        let home = env(&[("HOME", "/home/u"), (KEYS, "{}")]);
        let layout = sandboxed(Path::new("/s"), &home, Some(&version("1.18.33")));
        assert!(
            !layout
                .mounts
                .iter()
                .any(|mount| mount.path.ends_with("auth.json") && !mount.path.ends_with("mcp-auth.json"))
        );
    }

    #[test]
    fn older_ones_have_a_data_folder_of_their_own_with_the_users_login() {
        let home = env(&[("HOME", "/home/u"), (DATA_HOME, "/data"), (DATABASE, "/home/u/other.db")]);
        for (text, sessions) in [("1.1.65", "/s/opencode"), ("1.2.1", "/s/opencode"), ("1.15.13", "/s")] {
            let layout = layout(Some(Path::new("/s")), &home, Some(&version(text)));
            assert_eq!(layout.env, [EnvChange::remove(DATABASE), EnvChange::set(DATA_HOME, "/s")]);
            assert_eq!(layout.sessions.as_deref(), Some(Path::new(sessions)), "{text}");
            let link = Link { at: "/s/opencode/auth.json".into(), target: "/data/opencode/auth.json".into() };
            assert!(layout.links.contains(&link), "{:?}", layout.links);
        }
    }

    #[test]
    fn a_state_dir_that_is_the_users_own_place_is_not_linked_to_itself() {
        let layout = layout(Some(Path::new("/s")), &env(&[(DATA_HOME, "/s")]), Some(&version("1.2.1")));
        assert!(layout.links.is_empty());
    }

    #[test]
    fn an_empty_or_relative_folder_is_none() {
        assert_eq!(
            data_dir(&env(&[(DATA_HOME, ""), ("HOME", "/h")])),
            Some("/h/.local/share/opencode".into())
        );
        assert_eq!(data_dir(&env(&[(DATA_HOME, "rel"), ("HOME", "/h")])), None);
        assert_eq!(data_dir(&env(&[])), None);
    }

    #[test]
    fn the_families_follow_the_versions() {
        for (text, family) in [
            ("1.1.65", Family::Files),
            ("1.2.0", Family::Shared),
            ("1.15.12", Family::Shared),
            ("1.15.13", Family::PerSession),
            ("1.18.33", Family::PerSession),
        ] {
            assert_eq!(Family::of(Some(&version(text))), family, "{text}");
        }
        assert_eq!(Family::of(None), Family::PerSession);
    }
}
