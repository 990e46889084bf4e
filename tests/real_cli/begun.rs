//! Stages in which a conversation was begun, handed from trial to trial.
//!
//! Most trials are about what comes after the first turns, and these are the same every time. So a stage is begun once, a copy
//! of its home and its store is kept, and each trial gets what the CLI wrote, at the same paths, to the byte.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rejoin::LlmResult;

use crate::pinned::Pinned;
use crate::stage::{Kept, Stage};

/// The prompts of the turns.
const PROMPTS: [&str; 2] = ["alpha", "beta"];

/// Those that no trial uses.
static IDLE: Mutex<Vec<Beginning>> = Mutex::new(Vec::new());

struct Beginning {
    stage: Stage,
    /// By the number of turns less one: what came of them, and what they left.
    turns: Vec<(LlmResult, Kept)>,
    /// How many turns of the model the first run took.
    fresh_turns: usize,
    /// What lay in the folders that are not copied.
    around: BTreeSet<PathBuf>,
}

/// A stage in which a conversation of one or two turns was begun. Where a trial leaves the project as it was, other trials get it
/// afterwards.
pub(crate) struct Begun {
    beginning: Option<Beginning>,
    turns: usize,
}

impl Begun {
    /// A session with the one turn `alpha`.
    pub(crate) async fn alpha(cli: &Pinned) -> Self {
        Self::with(cli, 1).await
    }

    /// A session with the turns `alpha` and `beta`.
    pub(crate) async fn alpha_and_beta(cli: &Pinned) -> Self {
        Self::with(cli, 2).await
    }

    async fn with(cli: &Pinned, turns: usize) -> Self {
        let mut beginning = match take(cli) {
            Some(beginning) => beginning,
            None => Beginning::new(cli).await,
        };
        let last = turns.min(beginning.turns.len());
        beginning.stage.put_back(&beginning.turns[last - 1].1);
        for prompt in &PROMPTS[last..turns] {
            beginning.run(prompt).await;
        }
        beginning.stage.model.clear();
        Self { beginning: Some(beginning), turns }
    }

    fn beginning(&self) -> &Beginning {
        self.beginning.as_ref().expect("it is there until it is dropped")
    }

    /// The result of the last turn.
    pub(crate) fn last(&self) -> &LlmResult {
        &self.beginning().turns[self.turns - 1].0
    }

    /// How many turns of the model a fresh run takes.
    pub(crate) fn fresh_turns(&self) -> usize {
        self.beginning().fresh_turns
    }

    /// Makes it what it was when the trial got it.
    pub(crate) fn again(&self) {
        let beginning = self.beginning();
        beginning.stage.put_back(&beginning.turns[self.turns - 1].1);
    }
}

impl Deref for Begun {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.beginning().stage
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let Some(beginning) = self.beginning.take() else { return };
        // Nobody knows what a trial left that failed.
        if !std::thread::panicking() && beginning.can_be_put_back() {
            beginning.stage.model.refuse(None);
            idle().push(beginning);
        }
    }
}

impl Beginning {
    async fn new(cli: &Pinned) -> Self {
        let stage = Stage::new(cli);
        let mut beginning = Self { stage, turns: Vec::new(), fresh_turns: 0, around: BTreeSet::new() };
        beginning.run(PROMPTS[0]).await;
        beginning.fresh_turns = beginning.stage.turns();
        beginning.around = around(&beginning.stage);
        beginning
    }

    async fn run(&mut self, prompt: &str) {
        let result = self.stage.run(prompt).await.unwrap();
        self.turns.push((result, self.stage.keep()));
    }

    /// Whether nothing runs, and nothing was changed that is not copied.
    fn can_be_put_back(&self) -> bool {
        self.stage.processes().is_empty() && around(&self.stage) == self.around
    }
}

/// What lies beside the folders that are copied, in the project, and in what git keeps of it.
fn around(stage: &Stage) -> BTreeSet<PathBuf> {
    let project = stage.place.project();
    let folders: [&Path; 4] =
        [&stage.place.root, &project, &project.join(".git"), &project.join(".git/refs/heads")];
    let entries = folders.into_iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn idle() -> std::sync::MutexGuard<'static, Vec<Beginning>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(cli: &Pinned) -> Option<Beginning> {
    let mut idle = idle();
    let is_of =
        |known: &Beginning| (&known.stage.cli.agent, &known.stage.cli.version) == (&cli.agent, &cli.version);
    let at = idle.iter().position(is_of)?;
    Some(idle.swap_remove(at))
}

/// Removes what no trial will use any more: what is static is never dropped.
pub(crate) fn clear() {
    idle().clear();
}
