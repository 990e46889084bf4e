//! Plays one turn of `codex exec`, as far as its sessions are concerned: 0.171, or with `silent` an older family.

mod args;
mod rollout;

use std::path::PathBuf;

use serde_json::{Value, json};
use uuid::{NoContext, Timestamp, Uuid};

use super::Stop;
use super::play::Player;
use super::script::{CodexStep, CodexStop};
use super::template::expand;
use crate::ContextReply;
use args::Args;
use rollout::Rollout;

/// Plays the turn that the command line of the call asks for.
pub(super) fn turn(player: &mut Player, step: &CodexStep) -> Result<(), Stop> {
    let args = Args::parse(&player.call.argv).map_err(|message| refuse(player, 2, &message))?;
    if player.call.prompt.trim().is_empty() {
        return Err(refuse(player, 1, "No prompt provided via stdin."));
    }
    let home = home().map_err(|message| refuse(player, 1, &message))?;
    let mut rollout = match &args.resume {
        None => Rollout::fresh(&home, &new_id()),
        Some(asked) => match open(&home, asked, step.silent) {
            Ok(rollout) => rollout,
            Err(message) => {
                let message = format!("Error: thread/resume: thread/resume failed: {message}");
                return Err(refuse(player, 1, &message));
            }
        },
    };
    let mut texts = rollout.user_texts();
    texts.push(player.call.prompt.clone());
    player.session.turn(rollout.id(), rollout.path(), texts.len());

    let id = rollout.id().to_owned();
    let say = |player: &mut Player, line: Value| player.out.write(format!("{line}\n").as_bytes());
    say(player, json!({"type": "thread.started", "thread_id": id}))?;
    if step.stop_after == Some(CodexStop::Started) {
        return Ok(());
    }
    say(player, json!({"type": "turn.started"}))?;
    let (cwd, version) = (player.call.cwd.to_string_lossy().into_owned(), version(player));
    let kept = !step.forgets;
    if kept {
        rollout.begin(&cwd, &version, &player.call.prompt);
    }
    if step.stop_after == Some(CodexStop::User) {
        return Ok(());
    }
    let text = match &step.say {
        Some(say) => expand(say, player),
        None => ContextReply::of(&texts).to_text(),
    };
    let message = json!({"id": "item_0", "type": "agent_message", "text": text});
    say(player, json!({"type": "item.completed", "item": message}))?;
    // Over the whole thread, as since 0.80.
    let calls = texts.len() as u64;
    let usage = json!({
        "input_tokens": 100 * calls,
        "cached_input_tokens": 3 * calls,
        "cache_write_input_tokens": 0,
        "output_tokens": 20 * calls,
        "reasoning_output_tokens": 0,
    });
    if kept {
        rollout.end(&text, &usage);
    }
    say(player, json!({"type": "turn.completed", "usage": usage}))
}

fn open(home: &std::path::Path, asked: &str, silent: bool) -> Result<Rollout, String> {
    // What is no id starts a new session in every version, without a word.
    let Ok(id) = Uuid::parse_str(asked) else { return Ok(Rollout::fresh(home, &new_id())) };
    match Rollout::find(home, &id.to_string()) {
        Some(rollout) => rollout,
        None if silent => Ok(Rollout::fresh(home, &new_id())),
        None => Err(format!("no rollout found for thread id {id} (code -32600)")),
    }
}

fn new_id() -> String {
    let now = jiff::Timestamp::now();
    let (seconds, nanos) = (now.as_second().unsigned_abs(), now.subsec_nanosecond().unsigned_abs());
    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanos)).to_string()
}

fn home() -> Result<PathBuf, String> {
    let chosen = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    match chosen {
        Some(home) if home.is_dir() => Ok(home),
        Some(home) => Err(format!(
            "Error finding codex home: CODEX_HOME points to {:?}, but that path does not exist",
            home.display().to_string()
        )),
        None => {
            let home = std::env::var_os("HOME").map(PathBuf::from).ok_or("Error finding codex home")?;
            Ok(home.join(".codex"))
        }
    }
}

fn version(player: &Player) -> String {
    player.version.split(' ').next_back().unwrap_or_default().to_owned()
}

fn refuse(player: &Player, code: u8, message: &str) -> Stop {
    match player.stderr(&format!("{message}\n")) {
        Ok(()) => Stop::Exit(code),
        Err(stop) => stop,
    }
}
