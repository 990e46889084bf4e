use super::*;
use crate::CodexProvider;

fn env(pairs: &[(&str, &str)]) -> EnvMap {
    pairs.iter().copied().collect()
}

fn in_state(pairs: &[(&str, &str)], options: &CodexOptions) -> StateLayout {
    layout(Some(Path::new("/s")), &env(pairs), options)
}

fn shows(layout: &StateLayout, name: &str) -> bool {
    layout.links.iter().any(|link| link.at == Path::new("/s").join(name))
}

#[test]
fn without_a_state_dir_nothing_changes() {
    let found = layout(None, &env(&[("HOME", "/home/u")]), &CodexOptions::new());
    assert_eq!(found.sessions.as_deref(), Some(Path::new("/home/u/.codex/sessions")));
    assert!(found.env.is_empty() && found.links.is_empty() && found.scratch.is_empty());
    assert!(found.mounts.is_empty(), "a sandbox would show the sessions of others");
}

#[test]
fn a_state_dir_is_the_home_and_begins_without_an_index() {
    let found = in_state(&[("HOME", "/home/u")], &CodexOptions::new());
    assert_eq!(
        found.env,
        [EnvChange::set("CODEX_HOME", "/s"), EnvChange::set("CODEX_SQLITE_HOME", "/s/index")]
    );
    assert_eq!(found.scratch, [Path::new("/s/index")]);
    assert_eq!(found.sessions.as_deref(), Some(Path::new("/s/sessions")));
    assert!(found.scratch.iter().all(|dir| !found.sessions.as_ref().unwrap().starts_with(dir)));
}

#[test]
fn a_state_dir_shows_the_users_own_configuration_and_login() {
    let found = in_state(&[("HOME", "/home/u")], &CodexOptions::new().profile("fast").unwrap());
    for name in ["config.toml", "AGENTS.md", "skills", "auth.json", "fast.config.toml"] {
        assert!(shows(&found, name), "{name}");
        let target = Path::new("/home/u/.codex").join(name);
        let mount = found.mounts.iter().find(|mount| mount.path == target).unwrap();
        assert_eq!((mount.optional, mount.read_only), (true, name != LOGIN));
        assert_eq!(mount.purpose == Purpose::Login, name == LOGIN);
    }
    // What others have talked of, and what points into another home, is no configuration.
    for name in ["sessions", "archived_sessions", "session_index.jsonl", "state_5.sqlite", "history.jsonl"] {
        assert!(!shows(&found, name), "{name}");
    }
}

#[test]
fn the_login_is_shown_only_where_it_is_needed() {
    let home = [("HOME", "/home/u")];
    let hides = |layout: &StateLayout| layout.hidden == [Path::new("/s/auth.json")];
    assert!(hides(&in_state(&home, &CodexOptions::new().share_login(false))));
    assert!(in_state(&home, &CodexOptions::new()).hidden.is_empty());
    assert!(in_state(&[("CODEX_HOME", "/s")], &CodexOptions::new().share_login(false)).hidden.is_empty());
    assert!(!shows(&in_state(&home, &CodexOptions::new().share_login(false)), LOGIN));
    let with_key = [("HOME", "/home/u"), ("CODEX_API_KEY", "k")];
    let by_key = in_state(&with_key, &CodexOptions::new());
    assert!(!shows(&by_key, LOGIN) && by_key.mounts.iter().all(|mount| mount.purpose != Purpose::Login));
    let provider = CodexProvider::new("own", "http://localhost:1").unwrap();
    let with_login = CodexOptions::new().provider(provider.clone());
    assert!(shows(&in_state(&home, &with_login), LOGIN));
    let without = CodexOptions::new().provider(provider.env_key("OWN_KEY").unwrap());
    assert!(!shows(&in_state(&home, &without), LOGIN));
}

#[test]
fn a_home_that_the_user_chose_is_the_users_own() {
    let found = in_state(&[("HOME", "/home/u"), ("CODEX_HOME", "/c")], &CodexOptions::new());
    assert!(found.links.iter().all(|link| link.target.starts_with("/c")));
    let same = in_state(&[("CODEX_HOME", "/s")], &CodexOptions::new());
    assert!(same.links.is_empty() && !same.env.is_empty());
}

#[test]
fn an_empty_or_relative_home_is_none() {
    assert_eq!(home(&env(&[("CODEX_HOME", ""), ("HOME", "/h")])), Some("/h/.codex".into()));
    assert_eq!(home(&env(&[("CODEX_HOME", "rel"), ("HOME", "/h")])), None);
    assert_eq!(home(&env(&[])), None);
}

#[test]
fn what_chooses_login_or_folder_is_no_marker() {
    for kept in [HOME, INDEX_HOME, KEY, "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN"] {
        assert!(!NESTING_MARKERS.contains(&kept), "{kept}");
    }
}
