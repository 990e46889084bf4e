//! A turn as a command: arguments, environment, stdin.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};
use session_core::error::CommandError;
use session_core::{AgentRetention, CommandSpec, EnvChange, Mode, NativeId, Turn, Version};

use crate::options::ClaudeOptions;
use crate::state::NESTING_MARKERS;
use crate::transcript::is_session_id;

/// What 2.1.197 and 2.1.332 take on stdin, in bytes. 2.0.14 has no such limit.
pub(crate) const STDIN_LIMIT: usize = 10 * 1000 * 1000;

/// Ten years: long, and a value that every version tried takes.
const RETENTION_DAYS: u32 = 3650;
/// What holds where nothing is set.
const DEFAULT_RETENTION_DAYS: u32 = 30;

pub(crate) fn version_probe() -> CommandSpec {
    CommandSpec { args: vec!["--version".into()], env: unnest().collect(), stdin: Vec::new() }
}

pub(crate) fn of(options: &ClaudeOptions, turn: &Turn<'_>) -> Result<CommandSpec, CommandError> {
    let version = turn.installation.version.as_ref();
    let (input, stdin) = prompt(turn)?;
    let mut args: Vec<OsString> =
        vec!["-p".into(), "--output-format".into(), "stream-json".into(), "--verbose".into()];
    let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    if input == Input::Blocks {
        push(&["--input-format", "stream-json"]);
    }
    if options.partial_messages && known(version, 1, 0, 109) {
        push(&["--include-partial-messages"]);
    }
    match turn.mode {
        Mode::Fresh { id: None } => {}
        Mode::Fresh { id: Some(id) } => {
            if !known(version, 1, 0, 60) {
                return Err(unsupported(version, "take the id of a new session"));
            }
            push(&["--session-id", checked(id)?]);
        }
        // Two arguments and never the flag alone: that opens a picker, or the latest session.
        Mode::Resume { id } => {
            if !known(version, 0, 2, 93) {
                return Err(unsupported(version, "continue a session"));
            }
            push(&["--resume", checked(id)?]);
        }
        Mode::Fork { source, transcript, id } => {
            if !known(version, 1, 0, 120) {
                return Err(unsupported(version, "fork a session"));
            }
            let path = transcript.map(|path| path.to_str().filter(|_| path.is_absolute()).ok_or(path));
            match path {
                None => push(&["--resume", checked(source)?]),
                Some(Ok(path)) if path.ends_with(".jsonl") => push(&["--resume", path]),
                Some(Ok(path)) => return Err(CommandError::Id { id: path.to_owned() }),
                Some(Err(path)) => return Err(CommandError::Id { id: path.to_string_lossy().into_owned() }),
            }
            push(&["--fork-session"]);
            if let Some(id) = id {
                if !known(version, 2, 0, 73) {
                    return Err(unsupported(version, "take the id of a fork"));
                }
                push(&["--session-id", checked(id)?]);
            }
        }
    }
    // A resumed session has its name already.
    let is_new = !matches!(turn.mode, Mode::Resume { .. });
    if let Some(name) = turn.name.filter(|_| is_new && known(version, 2, 1, 76)) {
        push(&[&format!("--name={name}")]);
    }
    if let Some(model) = turn.model {
        push(&["--model", model]);
    }
    recipe(turn, &mut push)?;
    if let Some(mode) = &options.permission_mode {
        push(&["--permission-mode", mode]);
    }
    if let Some(turns) = options.max_turns {
        push(&["--max-turns", &turns.to_string()]);
    }
    if let Some(settings) = settings(options, version) {
        push(&["--settings", &settings]);
    }
    args.extend(options.extra_args.iter().map(OsString::from));

    let mut env: Vec<_> = unnest().collect();
    if let Some(url) = &options.api_base_url {
        env.push(EnvChange::set("ANTHROPIC_BASE_URL", url));
    }
    if let Some(retries) = options.retries {
        env.push(EnvChange::set("CLAUDE_CODE_MAX_RETRIES", retries.to_string()));
    }
    if options.essential_traffic_only {
        env.push(EnvChange::set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"));
        env.push(EnvChange::set("DISABLE_AUTOUPDATER", "1"));
    }
    Ok(CommandSpec { args, env, stdin })
}

/// What the recipe says, each in one argument, so that nothing of it is read as a flag. Other users of the machine can see it.
///
/// 2.1.332 notes the system prompt of a session at its first request, and would send that again whatever a later run says.
fn recipe(turn: &Turn<'_>, push: &mut impl FnMut(&[&str])) -> Result<(), CommandError> {
    let version = turn.installation.version.as_ref();
    if let Some(text) = turn.recipe.system_prompt {
        if text.contains('\0') {
            return Err(unsupported(version, "take a system prompt with a NUL character"));
        }
        push(&[&format!("--append-system-prompt={text}")]);
        if known(version, 2, 1, 332) {
            push(&["--system-prompt-snapshot=off"]);
        }
    }
    if let Some(tools) = turn.recipe.tools {
        let odd = |c: char| c == ',' || c.is_control();
        if tools.iter().any(|tool| tool.trim().is_empty() || tool.contains(odd)) {
            return Err(unsupported(version, "take a tool whose name is empty, or holds a comma"));
        }
        push(&[&format!("--tools={}", tools.join(","))]);
    }
    Ok(())
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

fn checked(id: &NativeId) -> Result<&str, CommandError> {
    if is_session_id(id.as_str()) {
        Ok(id.as_str())
    } else {
        Err(CommandError::Id { id: id.as_str().to_owned() })
    }
}

/// After how many days this version, called with these options, deletes sessions that nobody uses: where only such runs
/// come, and where the user's come, too, which go by the user's settings. 0 was taken without a word and deleted nothing
/// (2.1.332), so what other values than days do is not known.
pub(crate) fn retention(options: &ClaudeOptions, version: Option<&Version>) -> AgentRetention {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    // Seen in 2.0.14 to 2.1.332; older ones were not tried.
    if !known(version, 2, 0, 14) {
        return AgentRetention::NONE;
    }
    let ours = match options.settings.get("cleanupPeriodDays") {
        Some(days) => days.as_u64().and_then(|days| u32::try_from(days).ok()).filter(|days| *days > 0),
        None if options.keep_retention => Some(RETENTION_DAYS),
        None => Some(DEFAULT_RETENTION_DAYS),
    };
    let theirs = ours.map_or(DEFAULT_RETENTION_DAYS, |ours| ours.min(DEFAULT_RETENTION_DAYS));
    AgentRetention { in_state_dir: ours.map(|days| DAY * days), in_own_place: Some(DAY * theirs) }
}

fn settings(options: &ClaudeOptions, version: Option<&Version>) -> Option<String> {
    let mut settings = options.settings.clone();
    // Older versions may not know the flag; there is nothing below 2.0.14 where it was tried.
    if options.keep_retention && known(version, 2, 0, 14) {
        settings.entry("cleanupPeriodDays").or_insert_with(|| RETENTION_DAYS.into());
    }
    (!settings.is_empty()).then(|| Value::Object(settings).to_string())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Text,
    Blocks,
}

/// The prompt on stdin, so that the model gets it verbatim.
///
/// Text on stdin reaches the model byte for byte, white space and line ends included, unless its first byte is
/// a slash: then it is read as a command (2.0.14, 2.1.197, 2.1.332; `/clear` even leaves the session). There is
/// no flag against that which leaves the text alone. Of a message of several blocks, only the last one is read
/// for commands, and it is none when it does not begin with a slash: so the leading slashes go into a block of
/// their own. The blocks, joined, are the prompt.
fn prompt(turn: &Turn<'_>) -> Result<(Input, Vec<u8>), CommandError> {
    let (text, version) = (turn.prompt, turn.installation.version.as_ref());
    if let Some(limit) = turn.installation.capabilities.prompt_limit.filter(|limit| text.len() > *limit) {
        return Err(CommandError::PromptTooLarge { length: text.len(), limit });
    }
    if !text.starts_with('/') {
        return Ok((Input::Text, text.as_bytes().to_vec()));
    }
    let rest = text.trim_start_matches('/');
    // A block without a visible character is refused by the model API.
    if rest.trim().is_empty() {
        return Err(unsupported(
            version,
            "take a prompt of nothing but slashes without reading it as a command",
        ));
    }
    if !known(version, 1, 0, 60) {
        return Err(unsupported(
            version,
            "take a prompt that begins with a slash without reading it as a command",
        ));
    }
    let slashes = &text[..text.len() - rest.len()];
    let content = json!([{"type": "text", "text": slashes}, {"type": "text", "text": rest}]);
    let message = json!({"type": "user", "message": {"role": "user", "content": content}});
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    Ok((Input::Blocks, line))
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
