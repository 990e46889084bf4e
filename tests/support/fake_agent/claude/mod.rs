//! Plays one turn of Claude Code 2.1.332, as far as its sessions are concerned.

mod args;
mod folder;
mod lines;
mod transcript;
mod turn;

use std::path::{Path, PathBuf};

use uuid::Uuid;

pub use folder::project_folder_name;

use super::Stop;
use super::call::Call;
use super::play::Player;
use super::script::{ClaudeStep, Lookup};
use args::{Args, Format, Resume, is_session_id};
use folder::Projects;
use transcript::History;
use turn::Turn;

const USAGE: &str = "Error: --resume requires a valid session ID or session title when used with --print. \
                     Usage: claude -p --resume <session-id|title>.";
const NO_PROMPT: &str =
    "Error: Input must be provided either through stdin or as a prompt argument when using --print";
const NO_PROMPT_TO_RESUME: &str = "Error: No deferred tool marker found in the resumed session. Either the session was not deferred, the \
     marker is stale (tool already ran), or it exceeds the tail-scan window. Provide a prompt to continue the \
     conversation.";

/// The session a call is about, for the templates of its script.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Option<String>,
    pub(super) transcript: PathBuf,
    /// Known while a turn is played, whether it is saved or not.
    turns: Option<usize>,
}

impl Session {
    /// The session which the command line asks for.
    pub(super) fn asked_for(call: &Call) -> Self {
        let args = Args::parse(&call.argv);
        let id = args.wanted_id().map(str::to_owned);
        let projects = Projects::of(&call.cwd);
        let name = id.as_deref().unwrap_or_default();
        let found = if args.session_id.is_none() { projects.anywhere(name) } else { None };
        Self { transcript: found.unwrap_or_else(|| projects.own(name)), id, turns: None }
    }

    /// A turn of another agent is about this session.
    pub(super) fn turn(&mut self, id: &str, transcript: &Path, turns: usize) {
        *self = Self { id: Some(id.to_owned()), transcript: transcript.to_owned(), turns: Some(turns) };
    }

    pub(super) fn user_turns(&self) -> usize {
        self.turns.unwrap_or_else(|| {
            History::read(&self.transcript).map_or(0, |history| history.user_texts().len())
        })
    }
}

/// Plays the turn that the command line of the call asks for.
pub(super) fn turn(player: &mut Player, step: &ClaudeStep) -> Result<(), Stop> {
    let args = Args::parse(&player.call.argv);
    let projects = Projects::of(&player.call.cwd);
    let opened = match open(&args, &projects, step, &player.call.prompt) {
        Ok(opened) => opened,
        Err(refusal) => return Err(refuse(player, &args, &refusal)?),
    };
    let turns = opened.history.user_texts().len() + 1;
    player.session =
        Session { id: Some(opened.id.clone()), transcript: opened.transcript.clone(), turns: Some(turns) };
    Turn::new(player, &args, step, opened).play()
}

/// A session at the start of a turn.
#[derive(Debug)]
struct Opened {
    id: String,
    /// Where the turn is saved.
    transcript: PathBuf,
    /// What the session knows so far.
    history: History,
    /// The history must be copied to the transcript, which is a new file.
    copies: bool,
}

/// Why a call is not answered.
#[derive(Debug)]
struct Refusal {
    message: String,
    /// The `session_id` of the result line of a failed resume; other mistakes have no such line.
    resumed: Option<String>,
}

impl Refusal {
    fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), resumed: None }
    }
}

fn new_id() -> String {
    Uuid::new_v4().to_string()
}

fn open(args: &Args, projects: &Projects, step: &ClaudeStep, prompt: &str) -> Result<Opened, Refusal> {
    if args.format == Format::StreamJson && !args.verbose {
        return Err(Refusal::plain(
            "Error: When using --print, --output-format=stream-json requires --verbose",
        ));
    }
    if let Some(id) = &args.session_id {
        if args.resume.is_some() && !args.fork {
            return Err(Refusal::plain(
                "Error: --session-id with --continue or --resume also needs --fork-session.",
            ));
        }
        if !is_session_id(id) {
            return Err(Refusal::plain("Error: Invalid session ID. Must be a valid UUID."));
        }
        if projects.own(id).exists() {
            return Err(Refusal::plain(format!("Error: Session ID {id} is already in use.")));
        }
    }
    match &args.resume {
        Some(Resume::Picker) => Err(Refusal::plain(USAGE)),
        Some(Resume::Session(id)) => resume(id, args, projects, step, prompt),
        None if prompt.is_empty() => Err(Refusal::plain(NO_PROMPT)),
        None => {
            let id = args.session_id.clone().unwrap_or_else(new_id);
            Ok(Opened { transcript: projects.own(&id), id, history: History::default(), copies: false })
        }
    }
}

fn resume(
    id: &str,
    args: &Args,
    projects: &Projects,
    step: &ClaudeStep,
    prompt: &str,
) -> Result<Opened, Refusal> {
    // A fork also takes a session by its file.
    let file = Path::new(id).is_absolute() && id.ends_with(".jsonl") && args.fork;
    if !file && !is_session_id(id) {
        let message =
            format!("{USAGE} Provided value \"{id}\" is not a UUID and does not match any session title.");
        return Err(Refusal { message, resumed: Some(new_id()) });
    }
    let failed = |message| {
        // A fork that fails names the session it would have made.
        let named = if args.fork { args.session_id.clone().unwrap_or_else(new_id) } else { id.to_owned() };
        Refusal { message, resumed: Some(named) }
    };
    let path = match step.lookup {
        _ if file => PathBuf::from(id),
        Lookup::Anywhere => projects.anywhere(id).unwrap_or_else(|| projects.own(id)),
        Lookup::Cwd => projects.own(id),
    };
    let history = read(&path, id).map_err(failed)?;
    if prompt.is_empty() {
        return Err(Refusal::plain(NO_PROMPT_TO_RESUME));
    }
    if !args.fork && !step.replace_id {
        return Ok(Opened { id: id.to_owned(), transcript: path, history, copies: false });
    }
    let id = args.session_id.clone().unwrap_or_else(new_id);
    Ok(Opened { transcript: projects.own(&id), id, history, copies: true })
}

fn read(path: &Path, id: &str) -> Result<History, String> {
    if path.is_dir() {
        return Err("Failed to resume session: EISDIR: illegal operation on a directory, read".to_owned());
    }
    // For the CLI a file that it cannot read, or without any record, is no session.
    let history = History::read(path).ok().filter(|history| !history.is_empty());
    history.ok_or_else(|| format!("No conversation found with session ID: {id}"))
}

/// Says why on both outputs and gives the exit.
fn refuse(player: &mut Player, args: &Args, refusal: &Refusal) -> Result<Stop, Stop> {
    if let (Some(id), Format::StreamJson) = (&refusal.resumed, args.format) {
        let line = lines::failed_resume(id, &refusal.message);
        player.out.write(format!("{line}\n").as_bytes())?;
    }
    player.stderr(&format!("{}\n", refusal.message))?;
    Ok(Stop::Exit(1))
}
