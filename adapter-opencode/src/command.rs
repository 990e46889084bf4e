//! A turn as commands: arguments, environment, stdin.
//!
//! `--print-logs` is never asked for, though it would tell why the model does not answer: a line of it every few
//! seconds would be heard as a sign of life, so that no limit but the total one could end the waiting, and up to 1.15.13
//! those lines hold the prompt.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;
use session_core::error::CommandError;
use session_core::{CommandSpec, EnvChange, Mode, NativeId, RunId, Turn, Version};

use crate::capabilities;
use crate::options::OpencodeOptions;
use crate::state::{DATABASE, Family, NESTING_MARKERS, database_of};
use crate::transcript::is_session_id;

pub(crate) fn version_probe() -> CommandSpec {
    let mut env = environment(None);
    // 1.1.65 and 1.2.1 would ask the network.
    env.push(EnvChange::set("OPENCODE_DISABLE_MODELS_FETCH", "1"));
    CommandSpec { args: vec!["--version".into()], env, stdin: Vec::new() }
}

pub(crate) fn of(options: &OpencodeOptions, turn: &Turn<'_>) -> Result<CommandSpec, CommandError> {
    let version = turn.installation.version.as_ref();
    if capabilities::is_refused(version) {
        return Err(unsupported(version, "be run: it is another program, and was not tried"));
    }
    if !turn.installation.capabilities.headless_resume && !matches!(turn.mode, Mode::Fresh { .. }) {
        return Err(unsupported(
            version,
            "continue a session: it would wait for ever for one that is not there",
        ));
    }
    let mut args: Vec<OsString> = vec!["run".into(), "--format".into(), "json".into()];
    let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    match turn.mode {
        Mode::Fresh { id: None } => {
            if let Some(name) = turn.name {
                // One word, so that a name cannot be read as a flag.
                push(&[&format!("--title={name}")]);
            }
        }
        // A preparation made it.
        Mode::Fresh { id: Some(id) } => {
            if !turn.installation.capabilities.caller_chosen_id {
                return Err(unsupported(version, "take the id of a new session"));
            }
            push(&["-s", checked(id)?]);
        }
        // Never `-c`, and never an empty id: both start a new session without a word (1.1.65 to 1.18.33).
        Mode::Resume { id } => push(&["-s", checked(id)?]),
        Mode::Fork { source, transcript, id } => {
            if transcript.is_some() && !copies_databases(turn) {
                return Err(unsupported(version, "fork the session of another mailbox"));
            }
            if id.is_some() {
                return Err(unsupported(version, "take the id of a fork"));
            }
            push(&["-s", checked(source)?, "--fork"]);
        }
    }
    if let Some(model) = turn.model {
        push(&[&format!("--model={model}")]);
    }
    if options.auto_approve {
        push(&[if known(version, 1, 18, 33) {
            "--auto"
        } else if known(version, 1, 14, 34) {
            "--dangerously-skip-permissions"
        } else {
            return Err(unsupported(version, "approve everything by a flag; give it permission rules"));
        }]);
    }
    args.extend(options.extra_args.iter().map(OsString::from));

    let mut env = environment(Some(turn.cwd));
    env.extend(database(turn).map(|path| EnvChange::set(DATABASE, path)));
    if !options.models_fetch {
        env.push(EnvChange::set("OPENCODE_DISABLE_MODELS_FETCH", "1"));
    }
    if let Some(rules) = &options.permission {
        env.push(EnvChange::set("OPENCODE_PERMISSION", rules));
    }
    Ok(CommandSpec { args, env, stdin: turn.prompt.as_bytes().to_vec() })
}

/// What is done before, without a call of the model: a new session is brought in under its id, so that the id is known
/// before anything is spent; a session of another mailbox is copied, so that it can be forked.
pub(crate) fn preparations(turn: &Turn<'_>) -> Result<Vec<CommandSpec>, CommandError> {
    match turn.mode {
        Mode::Fresh { id: Some(id) } => Ok(vec![import(turn, checked(id)?)]),
        Mode::Fork { transcript: Some(path), .. } if copies_databases(turn) => Ok(vec![copy(turn, path)?]),
        Mode::Fresh { id: None } | Mode::Resume { .. } | Mode::Fork { .. } => Ok(Vec::new()),
    }
}

/// `opencode import` of a session without messages. Versions from 1.15.13 on put the folder and the project in
/// themselves; 1.1.65 keeps what it is given here.
fn import(turn: &Turn<'_>, id: &str) -> CommandSpec {
    let title = turn.name.map_or_else(|| id.to_owned(), ToString::to_string);
    let version = turn.installation.version.as_ref().map_or("0.0.0", |version| version.text.as_str());
    let session = json!({
        "info": {
            "id": id,
            "slug": id,
            "projectID": "global",
            "directory": turn.cwd.to_string_lossy(),
            "title": title,
            "version": version,
            "time": {"created": 1, "updated": 1},
        },
        "messages": [],
    });
    let mut env = environment(Some(turn.cwd));
    env.extend(database(turn).map(|path| EnvChange::set(DATABASE, path)));
    env.push(EnvChange::set("OPENCODE_DISABLE_MODELS_FETCH", "1"));
    CommandSpec {
        args: vec!["import".into(), "/dev/stdin".into()],
        env,
        stdin: session.to_string().into_bytes(),
    }
}

/// A copy of another database, in one piece and with what lies in its log. It fails where the copy is there already.
fn copy(turn: &Turn<'_>, from: &Path) -> Result<CommandSpec, CommandError> {
    let to = database(turn).unwrap_or_default();
    let text = to.to_str().ok_or_else(|| CommandError::Id { id: to.to_string_lossy().into_owned() })?;
    let statement = format!("VACUUM INTO '{}'", text.replace('\'', "''"));
    let mut env = environment(Some(turn.cwd));
    env.push(EnvChange::set(DATABASE, from));
    env.push(EnvChange::set("OPENCODE_DISABLE_MODELS_FETCH", "1"));
    Ok(CommandSpec { args: vec!["db".into(), statement.into()], env, stdin: Vec::new() })
}

/// The database of the turn, where there is a state dir and the version takes one.
fn database(turn: &Turn<'_>) -> Option<PathBuf> {
    let state = turn.state_dir?;
    if Family::of(turn.installation.version.as_ref()) != Family::PerSession {
        return None;
    }
    Some(match turn.mode {
        Mode::Fresh { id: Some(id) } | Mode::Resume { id } => database_of(state, id),
        // The agent chooses the id; the catalog finds the file, and gives it its name before the first resume.
        Mode::Fresh { id: None } | Mode::Fork { .. } => state.join(unnamed(turn.run)),
    })
}

fn unnamed(run: RunId) -> String {
    format!("new-{run}.db")
}

/// Whether a fork gets a copy of the original's database.
fn copies_databases(turn: &Turn<'_>) -> bool {
    matches!(turn.mode, Mode::Fork { transcript: Some(_), .. }) && database(turn).is_some()
}

/// What every command needs. The folder is told twice, because 1.15.13 and 1.18.33 believe `PWD`, and not the system.
fn environment(cwd: Option<&Path>) -> Vec<EnvChange> {
    let unnest = NESTING_MARKERS.iter().map(EnvChange::remove);
    let folder = cwd.map(|cwd| EnvChange::set("PWD", cwd));
    // A program that changes between two runs is not the one that was asked for its version.
    let own = EnvChange::set("OPENCODE_DISABLE_AUTOUPDATE", "1");
    unnest.chain(folder).chain([own]).collect()
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

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
