//! Where Claude Code keeps what, and how a state dir takes the place of that.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use session_core::{EnvChange, EnvMap, Link, Mount, Purpose, StateLayout, Version};

/// Variables that tell an agent that it runs inside another one, or that belong to the outer one. A child never
/// gets them. Seen in the environment of tools (2.0.14, 2.1.197, 2.1.332), but for `CLAUDE_CODE_SSE_PORT` (set by
/// editors) and `CLAUDE_CODE_RESUME_INTERRUPTED_TURN` (runs an old prompt again). Variables that choose a login, a
/// provider or a folder are not among them.
pub const NESTING_MARKERS: &[&str] = &[
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_NOTES_DIR",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_PID",
];

/// What of the user's own configuration is shown in a state dir.
const SHARED: &[&str] =
    &["settings.json", "CLAUDE.md", "agents", "commands", "output-styles", "plugins", "rules", "skills"];

const CREDENTIALS: &str = ".credentials.json";
pub(crate) const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
const STORAGE_DIR: &str = "CLAUDE_SECURESTORAGE_CONFIG_DIR";
/// With one of these, no version tried needs a login of its own (2.0.14, 2.1.197, 2.1.332).
const KEYS: &[&str] = &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// The configuration folder of the environment. A relative one has no meaning before the child has its folder.
pub(crate) fn config_dir(env: &EnvMap) -> Option<PathBuf> {
    let absolute = |value: &OsStr| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    match env.get(CONFIG_DIR) {
        Some(dir) => absolute(dir),
        None => env
            .get("HOME")
            .or_else(|| env.get("USERPROFILE"))
            .and_then(absolute)
            .map(|home| home.join(".claude")),
    }
}

pub(crate) fn layout(state_dir: Option<&Path>, env: &EnvMap, version: Option<&Version>) -> StateLayout {
    let user = config_dir(env);
    let Some(state) = state_dir else { return at_home(user) };
    let mut layout = StateLayout {
        sessions: Some(state.join("projects")),
        env: vec![EnvChange::set(CONFIG_DIR, state)],
        mounts: vec![Mount::writable(state, Purpose::StateDir)],
        ..StateLayout::default()
    };
    // A folder of its own for the login: known to 2.1.197 and 2.1.332, unknown to 2.0.14.
    let knows_storage = version.is_none_or(|version| version.at_least(2, 1, 197));
    let storage = env.get(STORAGE_DIR).filter(|_| knows_storage).map(PathBuf::from);
    if let Some(credentials) = storage.as_ref().or(user.as_ref()).map(|dir| dir.join(CREDENTIALS)) {
        if !knows_storage {
            layout.links.push(Link { at: state.join(CREDENTIALS), target: credentials.clone() });
        }
        if KEYS.iter().all(|key| env.get(key).is_none()) {
            // Writable, as tokens are refreshed. The file and not its folder, which holds other conversations.
            layout.mounts.push(Mount::writable(credentials, Purpose::Login).optional());
        }
    }
    let Some(user) = user.filter(|user| user != state) else { return layout };
    if knows_storage && storage.is_none() {
        layout.env.push(EnvChange::set(STORAGE_DIR, &user));
    }
    for name in SHARED {
        let target = user.join(name);
        layout.mounts.push(Mount::read_only(&target, Purpose::Config).optional());
        layout.links.push(Link { at: state.join(name), target });
    }
    layout
}

/// Without a state dir nothing changes, and nothing can be shown to a sandbox: it lies among the sessions of others.
fn at_home(user: Option<PathBuf>) -> StateLayout {
    StateLayout { sessions: user.map(|user| user.join("projects")), ..StateLayout::default() }
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
    fn without_a_state_dir_nothing_changes() {
        let layout = layout(None, &env(&[("HOME", "/home/u")]), None);
        assert_eq!(layout.sessions.as_deref(), Some(Path::new("/home/u/.claude/projects")));
        assert!(layout.env.is_empty() && layout.links.is_empty() && layout.mounts.is_empty());
    }

    #[test]
    fn a_state_dir_keeps_the_login_and_shows_the_users_own_configuration() {
        let state = Path::new("/s");
        let new = layout(Some(state), &env(&[("HOME", "/home/u")]), Some(&version("2.1.332")));
        assert_eq!(
            new.env,
            [EnvChange::set(CONFIG_DIR, "/s"), EnvChange::set(STORAGE_DIR, "/home/u/.claude")]
        );
        assert!(new.links.iter().any(|link| link.at == Path::new("/s/settings.json")
            && link.target == Path::new("/home/u/.claude/settings.json")));
        assert!(!new.links.iter().any(|link| link.at.ends_with(CREDENTIALS)));

        let old = layout(Some(state), &env(&[("HOME", "/home/u")]), Some(&version("2.0.14")));
        assert_eq!(old.env, [EnvChange::set(CONFIG_DIR, "/s")]);
        assert!(old.links.iter().any(|link| link.at.ends_with(CREDENTIALS)));
    }

    #[test]
    fn a_folder_that_the_user_chose_is_the_users_own() {
        let chosen = env(&[("HOME", "/home/u"), (CONFIG_DIR, "/cfg"), (STORAGE_DIR, "/login")]);
        let layout = layout(Some(Path::new("/s")), &chosen, None);
        assert_eq!(layout.env, [EnvChange::set(CONFIG_DIR, "/s")]);
        assert!(layout.links.iter().all(|link| link.target.starts_with("/cfg")));
        assert!(layout.mounts.iter().any(|mount| mount.path == Path::new("/login/.credentials.json")));
    }

    #[test]
    fn an_empty_or_relative_folder_is_none() {
        assert_eq!(config_dir(&env(&[(CONFIG_DIR, ""), ("HOME", "/h")])), Some("/h/.claude".into()));
        assert_eq!(config_dir(&env(&[(CONFIG_DIR, "rel"), ("HOME", "/h")])), None);
        assert_eq!(config_dir(&env(&[])), None);
    }

    #[test]
    fn what_chooses_login_or_provider_is_no_marker() {
        for kept in
            ["CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", CONFIG_DIR]
        {
            assert!(!NESTING_MARKERS.contains(&kept), "{kept}");
        }
    }
}
