//! What cannot work is refused before anything is started.

use std::path::PathBuf;

/// Flags that the adapter sets itself, that would take the conversation out of its hands, or that take every argument
/// behind them.
const OURS: &[&str] = &[
    "--add-dir",
    "--all",
    "--cd",
    "--config",
    "--dangerously-bypass-approvals-and-sandbox",
    "--disable",
    "--enable",
    "--ephemeral",
    "--full-auto",
    "--help",
    "--image",
    "--json",
    "--last",
    "--model",
    "--profile",
    "--remote",
    "--sandbox",
    "--skip-git-repo-check",
    "--version",
    "--worktree",
];

/// Their short forms. Short flags can be joined, so every letter of a group counts.
const OURS_SHORT: &[char] = &['C', 'V', 'c', 'h', 'i', 'm', 'p', 's'];

/// Words that `codex exec` takes for another command.
const COMMANDS: &[&str] = &["fork", "help", "resume", "review"];

/// Keys of the configuration that the adapter sets itself.
const OUR_KEYS: &[&str] = &["model", "model_provider", "profile", "projects", "sqlite_home", "sandbox_mode"];

/// Options that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A flag or key that the adapter sets itself.
    #[error("{name} is set by the adapter; use the option or the request for it")]
    Reserved {
        /// The flag or key.
        name: String,
    },
    /// Not an argument that could stand on its own.
    #[error("{arg:?} cannot be an extra argument")]
    Argument {
        /// The argument.
        arg: String,
    },
    /// Not one word of letters, digits, `-`, `_` and `.`.
    #[error("{text:?} is no {what}")]
    Word {
        /// What it was to be.
        what: &'static str,
        /// The text given.
        text: String,
    },
    /// Not a path that means the same in every run.
    #[error("{} is not an absolute path", path.display())]
    Path {
        /// The path given.
        path: PathBuf,
    },
}

pub(super) fn check_word(what: &'static str, text: String) -> Result<String, OptionsError> {
    let fits = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if text.is_empty() || text.starts_with(['-', '.']) || !fits {
        return Err(OptionsError::Word { what, text });
    }
    Ok(text)
}

pub(super) fn check_key(key: String) -> Result<String, OptionsError> {
    let key = check_word("configuration key", key)?;
    if OUR_KEYS.contains(&key.as_str()) || key.starts_with("projects.") {
        return Err(OptionsError::Reserved { name: key });
    }
    Ok(key)
}

pub(super) fn check_url(url: String) -> Result<String, OptionsError> {
    if url.is_empty() || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(OptionsError::Word { what: "address", text: url });
    }
    Ok(url)
}

pub(super) fn check_path(path: PathBuf) -> Result<PathBuf, OptionsError> {
    if path.is_absolute() { Ok(path) } else { Err(OptionsError::Path { path }) }
}

/// Extra arguments stand before `resume`: a word of its own would be taken for a command or for the prompt.
pub(super) fn check_args(args: &[String]) -> Result<(), OptionsError> {
    let mut after_flag = false;
    for arg in args {
        let is_flag = arg.starts_with('-') && arg.len() > 1;
        let bare = !is_flag && (!after_flag || COMMANDS.contains(&arg.as_str()));
        if arg == "--" || arg.contains('\0') || bare {
            return Err(OptionsError::Argument { arg: arg.clone() });
        }
        let flag = arg.split_once('=').map_or(arg.as_str(), |(flag, _)| flag);
        let short = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        if OURS.contains(&flag) || short.is_some_and(|group| group.chars().any(|c| OURS_SHORT.contains(&c))) {
            return Err(OptionsError::Reserved { name: flag.to_owned() });
        }
        after_flag = is_flag && !arg.contains('=');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{CodexOptions, CodexProvider};
    use super::*;

    #[test]
    fn arguments_that_would_take_the_conversation_away_are_refused() {
        for arg in [
            "--last",
            "--all",
            "-c",
            "--config=model=x",
            "-i",
            "--image=a.png",
            "--ephemeral",
            "--cd",
            "-C/x",
            "-sdanger",
        ] {
            assert!(
                matches!(CodexOptions::new().extra_args([arg]), Err(OptionsError::Reserved { .. })),
                "{arg}"
            );
        }
        for args in
            [&["--"][..], &["resume"], &["--color", "resume"], &["words"], &["--color", "x", "y"], &["-"]]
        {
            let found = CodexOptions::new().extra_args(args.iter().copied());
            assert!(matches!(found, Err(OptionsError::Argument { .. })), "{args:?}");
        }
        let options =
            CodexOptions::new().extra_args(["--color", "never", "--output-schema=/s.json"]).unwrap();
        assert_eq!(options.extra_args.len(), 3);
    }

    #[test]
    fn words_keys_and_paths_are_checked() {
        for bad in ["", "-x", "a b", "a=b", "a\nb"] {
            assert!(CodexOptions::new().profile(bad).is_err(), "{bad:?}");
            assert!(CodexOptions::new().reasoning_effort(bad).is_err(), "{bad:?}");
            assert!(CodexOptions::new().config(bad, "1").is_err(), "{bad:?}");
            assert!(CodexProvider::new(bad, "http://localhost:1").is_err(), "{bad:?}");
        }
        for ours in OUR_KEYS {
            let found = CodexOptions::new().config(*ours, "1");
            assert!(matches!(found, Err(OptionsError::Reserved { .. })), "{ours}");
        }
        assert!(CodexOptions::new().config("projects.x", "1").is_err());
        assert!(CodexOptions::new().config("tools.web_search", "true").is_ok());
        assert!(CodexOptions::new().add_dir("rel").is_err());
        assert!(CodexProvider::new("fake", "http://a b").is_err());
    }
}
