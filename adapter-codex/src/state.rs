//! Where Codex keeps what, and how a state dir takes the place of that.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use session_core::{EnvChange, EnvMap, Link, Mount, Purpose, StateLayout};

use crate::options::CodexOptions;

/// Variables that tell a tool which agent it runs in. A child never gets them. Seen in the environment of tools: 0.98
/// and 0.130 set `CODEX_CI` and `CODEX_THREAD_ID`, 0.171 the others as well. Variables that choose a login or a folder
/// are not among them.
pub const NESTING_MARKERS: &[&str] = &[
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
    "CODEX_CI",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
];

/// What of the user's own configuration is shown in a state dir. All of it may be read-only: no version tried fails of
/// that (0.63, 0.98, 0.130, 0.171).
const SHARED: &[&str] = &[
    "config.toml",
    "AGENTS.md",
    "AGENTS.override.md",
    "hooks.json",
    "plugins",
    "prompts",
    "rules",
    "skills",
];

/// The login. Never copied: a refreshed token makes the other copy worthless.
const LOGIN: &str = "auth.json";

pub(crate) const HOME: &str = "CODEX_HOME";
const INDEX_HOME: &str = "CODEX_SQLITE_HOME";
/// A key of its own stands above the login in every version tried (0.63, 0.98, 0.130, 0.171).
const KEY: &str = "CODEX_API_KEY";

/// The agent's own folder. A relative one has no meaning before the child has its folder.
pub(crate) fn home(env: &EnvMap) -> Option<PathBuf> {
    let absolute = |value: &OsStr| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    match env.get(HOME) {
        Some(dir) => absolute(dir),
        None => env
            .get("HOME")
            .or_else(|| env.get("USERPROFILE"))
            .and_then(absolute)
            .map(|home| home.join(".codex")),
    }
}

/// Where in a state dir the databases lie.
///
/// They hold nothing that a session needs and the agent does not make anew, but the absolute paths of its files: with
/// them, a home that was moved is "not found", one that was copied writes into the original, and one whose index is
/// damaged or locked cannot be continued (0.171). So every run begins without. Seen on 0.130 and 0.171: a resume finds
/// its session, also in a home that was moved or copied; 0.63 and 0.98 have none.
pub(crate) fn index_dir(state: &Path) -> PathBuf {
    state.join("index")
}

pub(crate) fn layout(state_dir: Option<&Path>, env: &EnvMap, options: &CodexOptions) -> StateLayout {
    let user = home(env);
    let Some(state) = state_dir else { return at_home(user) };
    let index = index_dir(state);
    let mut layout = StateLayout {
        sessions: Some(state.join("sessions")),
        env: vec![EnvChange::set(HOME, state), EnvChange::set(INDEX_HOME, &index)],
        scratch: vec![index],
        mounts: vec![Mount::writable(state, Purpose::StateDir)],
        ..StateLayout::default()
    };
    let Some(user) = user.filter(|user| user != state) else { return layout };
    let has_key = env.get(KEY).is_some() || options.provider.as_ref().is_some_and(|own| own.has_key());
    let needs_login = options.share_login && !has_key;
    if !needs_login {
        // An earlier run may have had it.
        layout.hidden.push(state.join(LOGIN));
    }
    let mut show = |name: &str, mount: fn(PathBuf, Purpose) -> Mount, purpose| {
        let target = user.join(name);
        layout.mounts.push(mount(target.clone(), purpose).optional());
        layout.links.push(Link { at: state.join(name), target });
    };
    if needs_login {
        // Writable, as tokens are refreshed. The file and not its folder, which holds other conversations.
        show(LOGIN, Mount::writable, Purpose::Login);
    }
    for name in SHARED {
        show(name, Mount::read_only, Purpose::Config);
    }
    // 0.171 has a profile in a file of its own.
    if let Some(profile) = &options.profile {
        show(&format!("{profile}.config.toml"), Mount::read_only, Purpose::Config);
    }
    layout
}

/// Without a state dir nothing changes, and nothing can be shown to a sandbox: it lies among the sessions of others.
fn at_home(user: Option<PathBuf>) -> StateLayout {
    StateLayout { sessions: user.map(|user| user.join("sessions")), ..StateLayout::default() }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
