//! `rejoin diff`.

use rejoin::SessionKey;
use rejoin::core::{Change, Checkpoint, CheckpointId, Moment, Node, NodeKind};
use serde::Serialize;
use similar::TextDiff;

use crate::args;
use crate::commands::checkpoints::{failure, of, short, the_checkpoint, the_key};
use crate::exit::{Exit, Failure};
use crate::json::{KeyJson, text};
use crate::output::Output;
use crate::plain;
use crate::world::World;

/// Of a larger file, no lines are compared. In bytes.
const COMPARED: u64 = 1 << 20;

#[derive(Debug, Serialize)]
struct DiffJson {
    key: KeyJson,
    from: String,
    to: String,
    changes: Vec<ChangeJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ChangeJson {
    path: String,
    change: &'static str,
    before: Option<NodeJson>,
    after: Option<NodeJson>,
}

#[derive(Debug, Serialize)]
struct NodeJson {
    kind: &'static str,
    mode: u32,
    bytes: u64,
}

impl From<&Node> for NodeJson {
    fn from(node: &Node) -> Self {
        Self { kind: kind(node.kind), mode: node.mode, bytes: node.bytes }
    }
}

impl From<&Change> for ChangeJson {
    fn from(change: &Change) -> Self {
        Self {
            path: text(&change.path),
            change: word(change),
            before: change.before.as_ref().map(NodeJson::from),
            after: change.after.as_ref().map(NodeJson::from),
        }
    }
}

const fn kind(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::File => "file",
        NodeKind::Link => "link",
        NodeKind::Folder => "folder",
    }
}

/// The stable word for a change.
fn word(change: &Change) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "added",
        (_, None) => "removed",
        (Some(before), Some(after)) if before.kind != after.kind => "replaced",
        _ if change.is_mode_only() => "mode",
        _ => "changed",
    }
}

/// A change in a line.
pub(crate) fn told(change: &Change) -> String {
    let letter = match word(change) {
        "added" => 'A',
        "removed" => 'D',
        "replaced" => 'T',
        _ => 'M',
    };
    let path = named(change);
    let mode = match (&change.before, &change.after) {
        (Some(before), Some(after)) if before.kind == after.kind && before.mode != after.mode => {
            format!(" (mode {:03o} to {:03o})", before.mode, after.mode)
        }
        (Some(before), Some(after)) if before.kind != after.kind => {
            format!(" ({} to {})", kind(before.kind), kind(after.kind))
        }
        _ => String::new(),
    };
    format!("{letter} {path}{mode}")
}

/// The path of a change, in a line.
pub(crate) fn named(change: &Change) -> String {
    let node = change.after.or(change.before);
    let end = if node.is_some_and(|node| node.kind == NodeKind::Folder) { "/" } else { "" };
    let path = plain::path(&change.path, None);
    let path = if path.is_empty() { ".".to_owned() } else { path };
    format!("{path}{end}")
}

pub(crate) async fn run(args: &args::Diff, world: &World, out: &mut Output) -> Result<(), Failure> {
    let key = the_key(&args.key, world).await?;
    let all = of(&key, world).await?;
    let from = match &args.from {
        Some(word) => the_checkpoint(word, &all)?,
        None => all
            .iter()
            .rev()
            .find(|checkpoint| checkpoint.label.moment == Moment::BeforeRun)
            .ok_or_else(|| Failure::new(Exit::NotFound, format!("{key} has no checkpoints")))?,
    };
    let to = match &args.to {
        Some(word) => Some(the_checkpoint(word, &all)?),
        None => end_of(from, &all),
    };
    let (to, changes) = match to {
        Some(to) => {
            let changes = world.sessions.checkpoint_diff(&key, from.id, to.id).await;
            (Some(to.id), changes.map_err(|error| failure(&error))?)
        }
        // Its runner died, or it is at work: what there is by now.
        None => {
            let here = &world.around.cwd;
            let changes = world.sessions.checkpoint_diff_now(&key, from.id, here).await;
            (None, changes.map_err(|error| failure(&error))?)
        }
    };
    if out.json {
        return out.document(&DiffJson {
            key: KeyJson::from(&key),
            from: from.id.to_string(),
            to: to.map_or_else(|| "now".to_owned(), |to| to.to_string()),
            changes: changes.iter().map(ChangeJson::from).collect(),
        });
    }
    if changes.is_empty() {
        let to = to.map_or_else(|| "now".to_owned(), short);
        out.note(&format!("nothing differs between {} and {to}", short(from.id)));
    }
    for change in &changes {
        out.line(&told(change))?;
        if let (true, Some(to)) = (args.patch, to) {
            patch(&key, (from.id, to), change, world, out).await?;
        }
    }
    out.flush()
}

/// The checkpoint at the end of what this one stands before.
fn end_of<'a>(from: &Checkpoint, all: &'a [Checkpoint]) -> Option<&'a Checkpoint> {
    let of_step = |one: &&Checkpoint| one.label.step == from.label.step && one.id != from.id;
    all.iter().find(of_step).filter(|one| matches!(one.label.moment, Moment::AfterRun | Moment::AfterRewind))
}

/// The lines that differ.
async fn patch(
    key: &SessionKey,
    (from, to): (CheckpointId, CheckpointId),
    change: &Change,
    world: &World,
    out: &mut Output,
) -> Result<(), Failure> {
    let has_content = |node: &Option<Node>| node.is_some_and(|node| node.kind != NodeKind::Folder);
    if change.is_mode_only() || !(has_content(&change.before) || has_content(&change.after)) {
        return Ok(());
    }
    let large = |node: &Option<Node>| node.is_some_and(|node| node.bytes > COMPARED);
    if large(&change.before) || large(&change.after) {
        return out.line("  (large)");
    }
    let read = async |checkpoint| {
        let content = world.sessions.checkpoint_file(key, checkpoint, &change.path, COMPARED).await;
        content.map(Option::unwrap_or_default).map_err(|error| failure(&error))
    };
    let (before, after) = (read(from).await?, read(to).await?);
    let (Ok(before), Ok(after)) = (str::from_utf8(&before), str::from_utf8(&after)) else {
        return out.line("  (no text)");
    };
    let lines = TextDiff::from_lines(before, after);
    for hunk in lines.unified_diff().iter_hunks() {
        for line in hunk.to_string().lines() {
            out.line(&format!("  {}", plain::line(line)))?;
        }
    }
    Ok(())
}
