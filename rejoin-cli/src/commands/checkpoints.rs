//! `rejoin checkpoints`, and what its neighbours share: which key, which checkpoint.

use rejoin::SessionKey;
use rejoin::core::{Checkpoint, CheckpointId, Health, Label, Moment, Timestamp};
use rejoin::error::RewindError;
use serde::Serialize;

use crate::args;
use crate::commands::explain;
use crate::exit::{Exit, Failure};
use crate::json::KeyJson;
use crate::output::{Output, Style};
use crate::plain;
use crate::when;
use crate::world::World;

/// The hexadecimal digits of an id that a person sees.
pub(crate) const SHOWN: usize = 8;

#[derive(Debug, Serialize)]
struct CheckpointsJson {
    key: KeyJson,
    checkpoints: Vec<CheckpointJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CheckpointJson {
    id: String,
    moment: &'static str,
    step: String,
    at: Timestamp,
    root: String,
    prompt: Option<String>,
    session: Option<String>,
    turns: Option<u64>,
    files: u64,
    bytes: u64,
    left_out: Vec<LeftOutJson>,
    left_out_count: u64,
    damaged: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct LeftOutJson {
    path: String,
    why: &'static str,
}

impl From<&rejoin::core::LeftOut> for LeftOutJson {
    fn from(left: &rejoin::core::LeftOut) -> Self {
        Self { path: left.path.to_string(), why: left.why.code() }
    }
}

impl From<&Checkpoint> for CheckpointJson {
    fn from(checkpoint: &Checkpoint) -> Self {
        let Checkpoint { id, label, at, root, files, bytes, left_out, left_out_count, health, .. } =
            checkpoint;
        Self {
            id: id.to_string(),
            moment: moment(label.moment),
            step: label.step.to_string(),
            at: *at,
            root: root.to_string(),
            prompt: label.prompt.clone(),
            session: label.spot.as_ref().map(|spot| spot.native_id.to_string()),
            turns: label.spot.as_ref().map(|spot| spot.turns),
            files: *files,
            bytes: *bytes,
            left_out: left_out.iter().map(LeftOutJson::from).collect(),
            left_out_count: *left_out_count,
            damaged: match health {
                Health::Whole => None,
                Health::Damaged(why) => Some(why.clone()),
            },
        }
    }
}

/// The stable word for what a checkpoint was taken at.
const fn moment(moment: Moment) -> &'static str {
    match moment {
        Moment::BeforeRun => "before_run",
        Moment::AfterRun => "after_run",
        Moment::BeforeRewind => "before_rewind",
        Moment::AfterRewind => "after_rewind",
        Moment::Asked => "asked",
        _ => "other",
    }
}

/// Whether it is one to go back to, where nobody asks for others.
const fn is_shown(label: &Label) -> bool {
    matches!(label.moment, Moment::BeforeRun | Moment::BeforeRewind | Moment::Asked) && !label.is_look()
}

pub(crate) async fn run(args: &args::Checkpoints, world: &World, out: &mut Output) -> Result<(), Failure> {
    let key = the_key(&args.key, world).await?;
    let mut all = of(&key, world).await?;
    all.retain(|checkpoint| args.all || is_shown(&checkpoint.label));
    if out.json {
        let checkpoints = all.iter().map(CheckpointJson::from).collect();
        return out.document(&CheckpointsJson { key: KeyJson::from(&key), checkpoints });
    }
    if all.is_empty() {
        out.note(&format!("{key} has no checkpoints"));
    }
    let now = when::now();
    for checkpoint in all.iter().rev() {
        let line = told(checkpoint, now);
        let line = out.columns.map_or(line.clone(), |columns| plain::cut(&line, columns));
        let damaged = matches!(checkpoint.health, Health::Damaged(_));
        let line = if damaged { out.styled(Style::Warn, &line) } else { line };
        out.line(&line)?;
    }
    out.flush()
}

/// A checkpoint in a line.
fn told(checkpoint: &Checkpoint, now: Timestamp) -> String {
    let what = match (checkpoint.label.moment, &checkpoint.label.prompt) {
        (Moment::BeforeRun, Some(prompt)) => format!("before: {}", plain::line(prompt)),
        (Moment::AfterRun, Some(prompt)) => format!("after: {}", plain::line(prompt)),
        (Moment::BeforeRun, None) => "before a prompt".to_owned(),
        (Moment::AfterRun, None) => "after a prompt".to_owned(),
        (Moment::BeforeRewind, _) => "before a rewind".to_owned(),
        (Moment::AfterRewind, _) => "after a rewind".to_owned(),
        _ => "asked for".to_owned(),
    };
    let left_out = match checkpoint.left_out_count {
        0 => String::new(),
        several => format!(" · {several} left out"),
    };
    let damaged = match &checkpoint.health {
        Health::Whole => String::new(),
        Health::Damaged(why) => format!(" · damaged: {}", plain::line(why)),
    };
    let id = short(checkpoint.id);
    let files = plain::number(checkpoint.files, "file");
    format!("{id}  {:>4}  {what} · {files}{left_out}{damaged}", when::ago(checkpoint.at, now))
}

/// As much of an id as people see.
pub(crate) fn short(id: CheckpointId) -> String {
    id.to_string().chars().take(SHOWN).collect()
}

/// The checkpoints of a key, oldest first.
pub(crate) async fn of(key: &SessionKey, world: &World) -> Result<Vec<Checkpoint>, Failure> {
    world.sessions.checkpoints(key).await.map_err(|error| failure(&error))
}

/// The one key that a word means: as in `issue-42@claude`, or a mailbox that one agent worked for.
pub(crate) async fn the_key(word: &str, world: &World) -> Result<SessionKey, Failure> {
    let mut keys = explain::known(word, world).await?;
    match keys.len() {
        0 => Err(Failure::new(Exit::NotFound, format!("nothing is known of {}", plain::line(word)))),
        1 => Ok(keys.remove(0)),
        _ => {
            let message = format!(
                "several agents worked for {}; in its place, give the key of one, as in {}",
                plain::line(word),
                plain::line(&keys[0].to_string())
            );
            let candidates = keys.iter().map(ToString::to_string).collect();
            Err(Failure::new(Exit::Ambiguous, message).with_candidates(candidates))
        }
    }
}

/// The checkpoint that a word means: its id, or the beginning of it.
pub(crate) fn the_checkpoint<'a>(word: &str, all: &'a [Checkpoint]) -> Result<&'a Checkpoint, Failure> {
    let word = word.to_ascii_lowercase();
    let found: Vec<_> = all.iter().filter(|one| one.id.to_string().starts_with(&word)).collect();
    match found.as_slice() {
        _ if word.is_empty() => Err(Failure::usage("the checkpoint is named by an empty word")),
        [] => Err(Failure::new(Exit::NotFound, format!("there is no checkpoint {}", plain::line(&word)))),
        [one] => Ok(one),
        several => {
            let candidates = several.iter().map(|one| one.id.to_string()).collect();
            let message = format!("several checkpoints begin with {word}");
            Err(Failure::new(Exit::Ambiguous, message).with_candidates(candidates))
        }
    }
}

/// Why going back failed, with the exit that says so.
pub(crate) fn failure(error: &RewindError) -> Failure {
    let exit = match error {
        RewindError::Busy { .. } => Exit::Busy,
        RewindError::NoSuchCheckpoint { .. }
        | RewindError::NoSession { .. }
        | RewindError::NoSuchSession { .. }
        | RewindError::NothingToUndo { .. }
        | RewindError::Folder(_) => Exit::NotFound,
        RewindError::OtherProject { .. } => Exit::OtherProject,
        RewindError::Unsupported { .. }
        | RewindError::OtherTree { .. }
        | RewindError::NotATarget { .. }
        | RewindError::NotSoMany { .. }
        | RewindError::NotRejoinable { .. }
        | RewindError::Unsettled { .. }
        | RewindError::Taken { .. }
        | RewindError::NotAForkOf { .. } => Exit::Refused,
        RewindError::Agent(_) => Exit::NoAgent,
        _ => Exit::Failed,
    };
    Failure::caused(exit, error)
}
