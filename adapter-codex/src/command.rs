//! A turn as a command: arguments, environment, stdin.

use std::ffi::OsString;
use std::path::Path;

use session_core::error::CommandError;
use session_core::{CommandSpec, EnvChange, Mode, NativeId, Turn, Version};

use crate::options::{CodexOptions, SandboxMode, toml_text};
use crate::state::{NESTING_MARKERS, index_dir};
use crate::transcript::is_thread_id;

/// What 0.130 and 0.171 take as a prompt, in characters. 0.63 and 0.98 have no such limit.
pub(crate) const PROMPT_LIMIT: usize = 1 << 20;

/// The byte order mark.
const MARK: char = '\u{feff}';

pub(crate) fn version_probe() -> CommandSpec {
    CommandSpec { args: vec!["--version".into()], env: unnest().collect(), stdin: Vec::new() }
}

/// Flags stand before `resume` and `fork`: `resume` itself takes few of them before 0.80, and no `--sandbox` after 0.122.
pub(crate) fn of(options: &CodexOptions, turn: &Turn<'_>) -> Result<CommandSpec, CommandError> {
    let version = turn.installation.version.as_ref();
    if !known(version, 0, 45, 0) {
        return Err(unsupported(version, "be run: its stream does not name the session"));
    }
    let stdin = prompt(turn)?;
    let mut args: Vec<OsString> = Vec::new();
    for (key, value) in configuration(options, turn) {
        args.push("-c".into());
        args.push(format!("{key}={value}").into());
    }
    args.push("exec".into());
    // A flag of these that lacks its value finds a flag there, and the agent refuses it. Before `resume`, it would
    // take that word.
    args.extend(options.extra_args.iter().map(OsString::from));
    let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    push(&["--json"]);
    if options.skip_git_repo_check {
        push(&["--skip-git-repo-check"]);
    }
    match options.sandbox {
        _ if options.bypass => push(&["--dangerously-bypass-approvals-and-sandbox"]),
        Some(mode) => push(&["--sandbox", mode.flag()]),
        None => {}
    }
    if let Some(model) = turn.model {
        // In one argument, so that no model is read as a flag.
        push(&[&format!("--model={model}")]);
    }
    if let Some(profile) = &options.profile {
        push(&["--profile", profile]);
    }
    for dir in &options.add_dirs {
        args.extend(["--add-dir".into(), dir.into()]);
    }
    let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    match turn.mode {
        Mode::Fresh { id: None } => {}
        Mode::Fresh { id: Some(_) } => return Err(unsupported(version, "take the id of a new session")),
        Mode::Resume { id } => push(&["resume", checked(id)?]),
        Mode::Fork { id: Some(_), .. } => return Err(unsupported(version, "take the id of a fork")),
        // A session is forked by its id, which is found in the agent's own folder alone.
        Mode::Fork { transcript: Some(_), .. } => {
            return Err(unsupported(version, "fork a session out of another state dir"));
        }
        Mode::Fork { source, transcript: None, id: None } => {
            if !known(version, 0, 148, 0) {
                return Err(unsupported(version, "fork a session"));
            }
            push(&["fork", checked(source)?]);
        }
    }
    // The prompt is what comes on stdin. Said in so many words, as nothing is then joined to anything.
    push(&["-"]);
    Ok(CommandSpec { args, env: unnest().collect(), stdin })
}

fn unnest() -> impl Iterator<Item = EnvChange> {
    NESTING_MARKERS.iter().map(EnvChange::remove)
}

/// Whether the version has what came with the given one. An unknown version is taken for a new one.
fn known(version: Option<&Version>, major: u64, minor: u64, patch: u64) -> bool {
    version.is_none_or(|version| version.at_least(major, minor, patch))
}

fn unsupported(version: Option<&Version>, what: &'static str) -> CommandError {
    let version = version.map_or_else(|| "unknown".to_owned(), ToString::to_string);
    CommandError::Unsupported { version, what }
}

/// What is no canonical id starts a new session without a word, in every version tried: it never gets that far.
fn checked(id: &NativeId) -> Result<&str, CommandError> {
    if is_thread_id(id.as_str()) {
        Ok(id.as_str())
    } else {
        Err(CommandError::Id { id: id.as_str().to_owned() })
    }
}

/// What stands above the user's configuration in this run. Keys that a version does not know it leaves alone (seen for
/// all of these on 0.63, 0.98, 0.130 and 0.171).
fn configuration(options: &CodexOptions, turn: &Turn<'_>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut set = |key: &str, value: String| all.push((key.to_owned(), value));
    // The configuration stands above the variable that the layout sets (0.130, 0.171).
    if let Some(index) = turn.state_dir.map(index_dir).as_deref().and_then(Path::to_str) {
        set("sqlite_home", toml_text(index));
    }
    if let Some(provider) = &options.provider {
        set("model_provider", toml_text(&provider.id));
        set(&format!("model_providers.{}", provider.id), provider.table());
    }
    if let Some(effort) = &options.effort {
        set("model_reasoning_effort", toml_text(effort));
    }
    let trust = options.trust.or_else(|| would_note_trust(options, turn).then_some(false));
    if let (Some(trust), Some(cwd)) = (trust, turn.cwd.to_str()) {
        let level = if trust { "trusted" } else { "untrusted" };
        set("projects", format!("{{{}={{trust_level=\"{level}\"}}}}", toml_text(cwd)));
    }
    if !options.unbounded_retries {
        set("features.unbounded_connection_retries", "false".to_owned());
    }
    if options.hide_secrets {
        set("shell_environment_policy.ignore_default_excludes", "false".to_owned());
    }
    if options.essential_traffic_only {
        set("analytics.enabled", "false".to_owned());
        set("features.plugins", "false".to_owned());
        // 0.98 asks for a list of models three times, 5 s each where nobody answers.
        set("features.remote_models", "false".to_owned());
        set("check_for_update_on_startup", "false".to_owned());
    }
    all.extend(options.config.iter().cloned());
    all
}

/// Whether the run would note its folder as trusted in the user's own configuration, which a state dir shows: 0.130 does
/// so where commands may write and nothing is said of the folder; 0.98 and 0.171 do not.
fn would_note_trust(options: &CodexOptions, turn: &Turn<'_>) -> bool {
    let version = turn.installation.version.as_ref();
    let may_write = options.bypass || options.sandbox != Some(SandboxMode::ReadOnly);
    turn.state_dir.is_some() && may_write && known(version, 0, 98, 1) && !known(version, 0, 171, 0)
}

/// The prompt on stdin, so that the model gets it verbatim.
///
/// Text on stdin reaches the model byte for byte, white space and line ends included, and is never read as a command
/// or a flag (0.63, 0.98, 0.130, 0.171); but from 0.98 on, a byte order mark at its beginning is taken away, so that
/// one more is put before it. Where between 0.63 and 0.98 that began was not tried: there, the mark may be lost.
fn prompt(turn: &Turn<'_>) -> Result<Vec<u8>, CommandError> {
    let (text, version) = (turn.prompt, turn.installation.version.as_ref());
    if let Some(limit) = turn.installation.capabilities.prompt_limit
        // Characters are counted, not bytes.
        && text.len() > limit
        && text.chars().count() > limit
    {
        return Err(CommandError::PromptTooLarge { length: text.len(), limit });
    }
    if text.trim().is_empty() {
        return Err(unsupported(version, "take a prompt of nothing but white space"));
    }
    if text.starts_with(MARK) && known(version, 0, 98, 0) {
        return Ok(format!("{MARK}{text}").into_bytes());
    }
    Ok(text.as_bytes().to_vec())
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
