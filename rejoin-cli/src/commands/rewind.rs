//! `rejoin rewind` and `rejoin undo`.

use std::path::PathBuf;

use rejoin::core::{Apart, Change, ConversationDone, ConversationPlan, LeftOut, Prompted, Unfinished};
use rejoin::{Conflicts, RewindOutcome, RewindPreview, RewindRequest, RewindTo, Rewound, SessionKey};
use serde::Serialize;

use crate::args;
use crate::commands::checkpoints::{failure, of, short, the_checkpoint, the_key};
use crate::commands::diff::{self, ChangeJson};
use crate::exit::{Exit, Failure};
use crate::json::{KeyJson, text};
use crate::output::Output;
use crate::plain;
use crate::world::World;

/// So many paths that are not covered are named to a person.
const NAMED: usize = 10;

#[derive(Debug, Serialize)]
struct RewindJson {
    key: KeyJson,
    dry_run: bool,
    outcome: &'static str,
    target: String,
    undo: Option<String>,
    restored: Vec<String>,
    restore: Vec<ChangeJson>,
    conflicts: Vec<String>,
    left_alone: Vec<String>,
    left: Vec<LeftJson>,
    dropped: Vec<PromptedJson>,
    regained: Vec<PromptedJson>,
    unended: Vec<String>,
    not_covered: Vec<super::checkpoints::LeftOutJson>,
    not_covered_count: Option<u64>,
    conversation: ConversationJson,
    apart: ApartJson,
    audit_seq: Option<u64>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct LeftJson {
    path: Option<String>,
    why: String,
}

#[derive(Debug, Serialize)]
struct PromptedJson {
    checkpoint: String,
    prompt: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct ConversationJson {
    act: &'static str,
    session: Option<String>,
    of: Option<String>,
    turns: Option<u64>,
    reason: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct ApartJson {
    prompts: Option<usize>,
    lacks: Option<usize>,
    paths: Option<usize>,
}

impl From<Option<Apart>> for ApartJson {
    fn from(apart: Option<Apart>) -> Self {
        match apart {
            Some(Apart::ConversationStays { prompts, lacks }) => {
                Self { prompts: Some(prompts), lacks: Some(lacks), paths: None }
            }
            Some(Apart::FilesStay { paths }) => Self { paths: Some(paths), ..Self::default() },
            _ => Self::default(),
        }
    }
}

impl From<&Prompted> for PromptedJson {
    fn from(prompted: &Prompted) -> Self {
        Self { checkpoint: prompted.checkpoint.to_string(), prompt: prompted.prompt.clone() }
    }
}

impl From<&ConversationPlan> for ConversationJson {
    fn from(plan: &ConversationPlan) -> Self {
        match plan {
            ConversationPlan::Unchanged | ConversationPlan::NotAsked => {
                Self { act: "stays", ..Self::default() }
            }
            ConversationPlan::Branch { of, keep } => {
                Self { act: "branch", of: Some(of.to_string()), turns: Some(*keep), ..Self::default() }
            }
            ConversationPlan::Fresh => Self { act: "fresh", ..Self::default() },
            ConversationPlan::Rebind { session } => {
                Self { act: "rebind", session: Some(session.to_string()), ..Self::default() }
            }
            ConversationPlan::Unsupported(why) => {
                Self { act: "unsupported", reason: Some(why.clone()), ..Self::default() }
            }
            _ => Self { act: "other", ..Self::default() },
        }
    }
}

impl From<&ConversationDone> for ConversationJson {
    fn from(done: &ConversationDone) -> Self {
        match done {
            ConversationDone::Stays => Self { act: "stays", ..Self::default() },
            ConversationDone::Branched { session, of, kept } => Self {
                act: "branch",
                session: Some(session.to_string()),
                of: Some(of.to_string()),
                turns: Some(*kept),
                reason: None,
            },
            ConversationDone::Fresh => Self { act: "fresh", ..Self::default() },
            ConversationDone::Rebound { session } => {
                Self { act: "rebind", session: Some(session.to_string()), ..Self::default() }
            }
            ConversationDone::NotRecorded(_) => Self { act: "not_recorded", ..Self::default() },
            _ => Self { act: "other", ..Self::default() },
        }
    }
}

pub(crate) async fn rewind(args: &args::Rewind, world: &World, out: &mut Output) -> Result<(), Failure> {
    let key = the_key(&args.key, world).await?;
    let to = match &args.to {
        Some(word) => RewindTo::Checkpoint(the_checkpoint(word, &of(&key, world).await?)?.id),
        None => RewindTo::Turns(args.turns.unwrap_or(1)),
    };
    let conflicts = if args.overwrite { Conflicts::Overwrite } else { Conflicts::Keep };
    let cwd = folder(args.cwd.as_ref(), world);
    let request =
        RewindRequest::new(key.clone(), cwd).to(to).mode(args::mode(args.only)).conflicts(conflicts);
    out.progress("looking at the work tree …");
    if args.dry_run {
        let preview = world.sessions.foresee_rewind(&request).await.map_err(|error| failure(&error))?;
        return foreseen(&key, &preview, out);
    }
    let rewound = world.sessions.rewind(&request).await.map_err(|error| failure(&error))?;
    done(&key, &rewound, out)
}

pub(crate) async fn undo(args: &args::Undo, world: &World, out: &mut Output) -> Result<(), Failure> {
    let key = the_key(&args.key, world).await?;
    let cwd = folder(args.cwd.as_ref(), world);
    out.progress("looking at the work tree …");
    if args.dry_run {
        let preview = world.sessions.foresee_undo(&key, &cwd).await.map_err(|error| failure(&error))?;
        return foreseen(&key, &preview, out);
    }
    let rewound = world.sessions.undo(&key, &cwd).await.map_err(|error| failure(&error))?;
    done(&key, &rewound, out)
}

fn folder(named: Option<&PathBuf>, world: &World) -> PathBuf {
    let here = &world.around.cwd;
    named.map_or_else(|| here.clone(), |folder| here.join(folder))
}

fn foreseen(key: &SessionKey, preview: &RewindPreview, out: &mut Output) -> Result<(), Failure> {
    let refused = match &preview.conversation {
        ConversationPlan::Unsupported(why) if preview.mode.takes_conversation() => Some(why.clone()),
        _ => None,
    };
    let files = &preview.files;
    let paths = |changes: &[Change]| changes.iter().map(|change| text(&change.path)).collect();
    if out.json {
        out.document(&RewindJson {
            key: KeyJson::from(key),
            dry_run: true,
            outcome: if refused.is_some() { "would_be_refused" } else { "would_be_done" },
            target: preview.target.id.to_string(),
            undo: None,
            restored: Vec::new(),
            restore: files.restore.iter().map(ChangeJson::from).collect(),
            conflicts: paths(&files.conflicts),
            left_alone: paths(&files.left_alone),
            left: Vec::new(),
            dropped: preview.dropped.iter().map(PromptedJson::from).collect(),
            regained: preview.regained.iter().map(PromptedJson::from).collect(),
            unended: files.unended.iter().map(ToString::to_string).collect(),
            not_covered: preview.not_covered.iter().map(Into::into).collect(),
            not_covered_count: Some(preview.not_covered_count),
            conversation: (&preview.conversation).into(),
            apart: preview.apart.into(),
            audit_seq: None,
            warnings: Vec::new(),
        })?;
    } else {
        prompts("would take back", &preview.dropped, out)?;
        prompts("would bring back", &preview.regained, out)?;
        if preview.mode.takes_files() {
            section("would change", &files.restore, out)?;
            let conflicts = if preview.on_conflicts == Conflicts::Overwrite {
                "would change, though somebody else changed them, too, or may have"
            } else {
                "would stay, as somebody else changed them, too, or may have (--overwrite)"
            };
            section(conflicts, &files.conflicts, out)?;
            // What they differ in from the target is not what anybody did to them.
            if !files.left_alone.is_empty() {
                out.line("would stay, as only somebody else changed them:")?;
            }
            for change in &files.left_alone {
                out.line(&format!("  {}", diff::named(change)))?;
            }
            not_covered(&preview.not_covered, preview.not_covered_count, out)?;
            if !files.unended.is_empty() {
                out.line("a run or a rewind has no checkpoint at its end: what changed until the next one counts as its own")?;
            }
        }
        if refused.is_none() && preview.mode.takes_conversation() {
            out.line(&format!("conversation: {}", would(&preview.conversation)))?;
        }
        apart(preview.apart, out)?;
        out.flush()?;
    }
    match refused {
        None => Ok(()),
        Some(why) => {
            let message =
                format!("it would be refused: the conversation cannot go back: {why}; --only files can");
            Err(Failure::new(Exit::Refused, message).told_in(out.json))
        }
    }
}

fn done(key: &SessionKey, rewound: &Rewound, out: &mut Output) -> Result<(), Failure> {
    let files = &rewound.files;
    let left = left_of(&rewound.outcome);
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| text(path)).collect();
    if out.json {
        out.document(&RewindJson {
            key: KeyJson::from(key),
            dry_run: false,
            outcome: if left.is_empty() { "done" } else { "partial" },
            target: rewound.target.id.to_string(),
            undo: Some(rewound.undo.to_string()),
            restored: paths(&files.restored),
            restore: Vec::new(),
            conflicts: paths(&files.conflicts),
            left_alone: paths(&files.left_alone),
            left,
            dropped: rewound.dropped.iter().map(PromptedJson::from).collect(),
            regained: rewound.regained.iter().map(PromptedJson::from).collect(),
            unended: files.unended.iter().map(ToString::to_string).collect(),
            not_covered: Vec::new(),
            not_covered_count: None,
            conversation: (&rewound.conversation).into(),
            apart: rewound.apart.into(),
            audit_seq: rewound.audit_seq.map(|seq| seq.0),
            warnings: rewound.warnings.iter().map(ToString::to_string).collect(),
        })?;
        return match rewound.outcome {
            RewindOutcome::Done => Ok(()),
            RewindOutcome::Partial(_) => Err(Failure::new(Exit::Failed, "").told()),
        };
    }
    prompts("took back", &rewound.dropped, out)?;
    prompts("brought back", &rewound.regained, out)?;
    let restored = plain::number(files.restored.len() as u64, "path");
    out.line(&format!("{restored} put back; undo takes it back ({})", short(rewound.undo)))?;
    out.line(&format!("conversation: {}", did(&rewound.conversation)))?;
    apart(rewound.apart, out)?;
    out.flush()?;
    for warning in &rewound.warnings {
        out.note(&format!("warning: {warning}"));
    }
    if left.is_empty() {
        return Ok(());
    }
    let lines = left.iter().map(|left| match &left.path {
        Some(path) => format!("{}: {}", plain::line(path), left.why),
        None => left.why.clone(),
    });
    let lines: Vec<_> = lines.collect();
    Err(Failure::new(Exit::Failed, format!("not all went back:\n{}", lines.join("\n"))))
}

fn left_of(outcome: &RewindOutcome) -> Vec<LeftJson> {
    let RewindOutcome::Partial(unfinished) = outcome else { return Vec::new() };
    let mut left = Vec::new();
    for one in unfinished {
        match one {
            Unfinished::Conflicts(paths) => left.extend(paths.iter().map(|path| LeftJson {
                path: Some(text(path)),
                why: "somebody else changed it, too, or may have".to_owned(),
            })),
            Unfinished::Paths(paths) => left.extend(
                paths.iter().map(|one| LeftJson { path: Some(text(&one.path)), why: one.why.to_string() }),
            ),
            Unfinished::CutOff(why) => {
                left.push(LeftJson {
                    path: None,
                    why: format!("cut off: {why}; --dry-run finishes it, or the next run"),
                });
            }
            Unfinished::Conversation => left.push(LeftJson {
                path: None,
                why: "the conversation stays as it was: its record could not be written".to_owned(),
            }),
            _ => left.push(LeftJson { path: None, why: "something else is left".to_owned() }),
        }
    }
    left
}

fn prompts(word: &str, prompts: &[Prompted], out: &mut Output) -> Result<(), Failure> {
    for prompted in prompts {
        let prompt = prompted.prompt.as_deref().map_or_else(|| "a prompt".to_owned(), plain::line);
        out.line(&format!("{word}: {prompt}"))?;
    }
    Ok(())
}

fn section(word: &str, changes: &[Change], out: &mut Output) -> Result<(), Failure> {
    if !changes.is_empty() {
        out.line(&format!("{word}:"))?;
    }
    for change in changes {
        out.line(&format!("  {}", diff::told(change)))?;
    }
    Ok(())
}

fn not_covered(left_out: &[LeftOut], count: u64, out: &mut Output) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    out.line("not covered, stays as it is:")?;
    for left in left_out.iter().take(NAMED) {
        out.line(&format!("  {} ({})", plain::line(&left.path.to_string()), left.why))?;
    }
    match count.saturating_sub(NAMED as u64) {
        0 => Ok(()),
        more => out.line(&format!("  and {more} more")),
    }
}

fn apart(apart: Option<Apart>, out: &mut Output) -> Result<(), Failure> {
    match apart {
        Some(Apart::ConversationStays { prompts, lacks }) => {
            if prompts > 0 {
                let prompts = plain::number(prompts as u64, "prompt");
                out.line(&format!("the conversation may still tell of {prompts} whose files go back"))?;
            }
            if lacks > 0 {
                let lacks = plain::number(lacks as u64, "prompt");
                out.line(&format!("the conversation may not know {lacks} whose files come back"))?;
            }
            Ok(())
        }
        Some(Apart::FilesStay { paths }) => {
            let paths = plain::number(paths as u64, "path");
            out.line(&format!("the files still show it: {paths}"))
        }
        _ => Ok(()),
    }
}

fn would(plan: &ConversationPlan) -> String {
    match plan {
        ConversationPlan::Branch { keep, .. } => {
            format!("the next run would continue a branch with {}", plain::turns(*keep))
        }
        ConversationPlan::Fresh => "the next run would begin a new session".to_owned(),
        ConversationPlan::Rebind { session } => format!("session {session} would be in force again"),
        ConversationPlan::Unsupported(why) => format!("cannot go back: {why}"),
        _ => "stays as it is".to_owned(),
    }
}

fn did(done: &ConversationDone) -> String {
    match done {
        ConversationDone::Branched { session, kept, .. } => {
            format!("the next run continues {session}, with {}", plain::turns(*kept))
        }
        ConversationDone::Fresh => "the next run begins a new session".to_owned(),
        ConversationDone::Rebound { session } => format!("session {session} is in force again"),
        _ => "stays as it is".to_owned(),
    }
}
