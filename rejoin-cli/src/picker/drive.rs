//! The picker on a terminal: reads sessions and keys, carries out effects, draws.

use std::io;
use std::sync::Arc;

use rejoin::error::Chain;
use rejoin::history::{Depth, ListQuery, ListedSession, PageQuery, SessionsQuery};
use rejoin::{AgentId, Sessions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::fuzzy::Searcher;
use super::row::Row;
use super::state::{Effect, Input, Picker};
use super::terminal::{Keys, Screen};
use super::view::Theme;
use crate::args::ScopeChoice;
use crate::exit::{Exit, Failure};
use crate::folders::Folders;
use crate::signals::Ending;
use crate::talk::{self, Detail, Line};
use crate::when;
use crate::world::World;

/// Turns that a preview shows.
const TURNS: usize = 4;

/// How the picker begins.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) scope: ScopeChoice,
    pub(crate) query: String,
    /// The session that is open now.
    pub(crate) current: Option<String>,
    pub(crate) color: bool,
}

type Told = io::Result<Input>;

/// Has a person pick a session. `None`: it was left without one.
pub(crate) async fn pick(world: &World, start: &Start) -> Result<Option<ListedSession>, Failure> {
    if world.around.is_dumb {
        let message = "a session is picked on a terminal that knows escape codes, and TERM is dumb: name one, as rejoin list has it";
        return Err(Failure::usage(message));
    }
    let (sender, mut told) = unbounded_channel::<Told>();
    let mut signals = Ending::listen()?;
    let folders = Folders::around(&world.around.cwd);
    let mut picker = Picker::new(folders, start.scope, &start.query, when::now());
    let mut screen = Screen::take(Theme { color: start.color }).map_err(|error| no_terminal(&error))?;
    // The first frame waits for nothing.
    screen.draw(&mut picker).map_err(|error| no_terminal(&error))?;
    let keys = sender.clone();
    let _keys = Keys::read(move |input| keys.send(input).is_ok());
    let found = sender.clone();
    let searcher = Searcher::start(move |number, rows| {
        let _ = found.send(Ok(Input::Found { number, rows }));
    });
    let _reading = Task(tokio::spawn(read(
        world.sessions.clone(),
        ids(world),
        start.clone(),
        world.around.home.clone(),
        sender.clone(),
    )));
    let mut preview: Option<Task<()>> = None;
    loop {
        let first = tokio::select! {
            input = told.recv() => input,
            exit = signals.next() => return Err(Failure::new(exit, "")),
        };
        // This side holds a sender, so it never ends.
        let Some(first) = first else { return Ok(None) };
        for input in std::iter::once(first).chain(waiting(&mut told)) {
            for effect in picker.step(input.map_err(|error| no_terminal(&error))?) {
                match effect {
                    Effect::Search(query) => searcher.search(query),
                    Effect::Preview(row) => {
                        // The one that is not wanted any more ends.
                        drop(preview.replace(look(&world.sessions, row, sender.clone())));
                    }
                    Effect::Choose(row) => return Ok(Some(row.listed.clone())),
                    Effect::Leave => return Ok(None),
                }
            }
        }
        screen.draw(&mut picker).map_err(|error| no_terminal(&error))?;
    }
}

/// What else has happened already: one frame is enough for all of it.
fn waiting(told: &mut UnboundedReceiver<Told>) -> Vec<Told> {
    std::iter::from_fn(|| told.try_recv().ok()).collect()
}

fn ids(world: &World) -> Vec<AgentId> {
    world.agents.iter().map(|agent| agent.adapter().id().clone()).collect()
}

fn no_terminal(error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("the terminal cannot be used: {error}"))
}

/// A task that ends with its handle.
#[derive(Debug)]
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads the lists of all agents beside each other: first what is had quickly, then all of it.
async fn read(
    sessions: Sessions,
    agents: Vec<AgentId>,
    start: Start,
    home: Option<std::path::PathBuf>,
    told: UnboundedSender<Told>,
) {
    let mut tasks = tokio::task::JoinSet::new();
    for agent in agents {
        let (sessions, told, start, home) = (sessions.clone(), told.clone(), start.clone(), home.clone());
        tasks.spawn(async move {
            for depth in [Depth::Quick, Depth::Exact] {
                let list = ListQuery { depth, ..ListQuery::default() };
                let query = SessionsQuery { agents: vec![agent.clone()], list };
                let input = match sessions.list(&query).await {
                    Ok(listing) => {
                        if let Some(unlisted) = listing.unlisted.first() {
                            let text = format!("{} not listed: {}", unlisted.agent, unlisted.reason);
                            let _ = told.send(Ok(Input::Trouble(text)));
                        }
                        let rows = Row::of(listing.sessions, start.current.as_deref(), home.as_deref());
                        Input::Listed { agent: agent.clone(), rows }
                    }
                    Err(error) => Input::Trouble(Chain(&error).to_string()),
                };
                // Nobody is left who wants it once the picker is gone.
                let _ = told.send(Ok(input));
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    let _ = told.send(Ok(Input::Complete));
}

/// Reads the last turns of a session.
fn look(sessions: &Sessions, row: Arc<Row>, told: UnboundedSender<Told>) -> Task<()> {
    let sessions = sessions.clone();
    Task(tokio::spawn(async move {
        let lines: Vec<Line> = match sessions.page(&row.listed, &PageQuery::Last { turns: TURNS }).await {
            Ok(page) => page.entries.iter().flat_map(|one| talk::lines(&one.entry, Detail::Brief)).collect(),
            Err(error) => vec![(None, crate::plain::line(&Chain(&error).to_string()))],
        };
        let _ = told.send(Ok(Input::Preview { row, lines }));
    }))
}
