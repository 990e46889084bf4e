//! Stages in which a conversation was begun, handed from trial to trial.
//!
//! Most trials are about what comes after the first turns, and these are the same every time. So a stage is begun once, a copy
//! of its home and its store is kept, and each trial gets what the CLI wrote, at the same paths, to the byte.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rejoin::LlmResult;

use crate::pinned::Pinned;
use crate::stage::{Kept, Stage};
use crate::workshop::{self, Picture};

/// What was done in the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Story {
    /// Words were said.
    Talk,
    /// Files were changed, and checkpoints taken, in the project of the [`workshop`].
    Work,
}

/// Those that no trial uses.
static IDLE: Mutex<Vec<Beginning>> = Mutex::new(Vec::new());

struct Beginning {
    story: Story,
    stage: Stage,
    prompts: Vec<String>,
    /// By the number of turns less one.
    turns: Vec<Turn>,
    /// How many turns of the model the first run took.
    fresh_turns: usize,
    /// What lay in the folders that are not copied.
    around: BTreeSet<PathBuf>,
}

/// What came of a turn, and what it left.
struct Turn {
    result: LlmResult,
    kept: Kept,
    picture: Picture,
}

/// A stage in which a conversation was begun. Where a trial leaves what is around it as it was, other trials get it afterwards.
pub(crate) struct Begun {
    beginning: Option<Beginning>,
    turns: usize,
}

impl Begun {
    /// A session with the one turn `alpha`.
    pub(crate) async fn alpha(cli: &Pinned) -> Self {
        Self::with(cli, Story::Talk, 1).await
    }

    /// A session with the turns `alpha` and `beta`.
    pub(crate) async fn alpha_and_beta(cli: &Pinned) -> Self {
        Self::with(cli, Story::Talk, 2).await
    }

    /// A session with the turns of [`workshop::prompts`].
    pub(crate) async fn work(cli: &Pinned) -> Self {
        Self::with(cli, Story::Work, 3).await
    }

    async fn with(cli: &Pinned, story: Story, turns: usize) -> Self {
        let mut beginning = match take(cli, story) {
            Some(beginning) => beginning,
            None => Beginning::new(cli, story).await,
        };
        let last = turns.min(beginning.turns.len());
        beginning.stage.put_back(&beginning.turns[last - 1].kept);
        while beginning.turns.len() < turns {
            beginning.run().await;
        }
        beginning.stage.model.clear();
        Self { beginning: Some(beginning), turns }
    }

    fn beginning(&self) -> &Beginning {
        self.beginning.as_ref().expect("it is there until it is dropped")
    }

    /// The result of the last turn.
    pub(crate) fn last(&self) -> &LlmResult {
        &self.beginning().turns[self.turns - 1].result
    }

    /// The prompts of its turns.
    pub(crate) fn prompts(&self) -> &[String] {
        &self.beginning().prompts[..self.turns]
    }

    /// The project after so many turns.
    pub(crate) fn picture(&self, turns: usize) -> &Picture {
        &self.beginning().turns[turns - 1].picture
    }

    /// How many turns of the model a fresh run takes.
    pub(crate) fn fresh_turns(&self) -> usize {
        self.beginning().fresh_turns
    }

    /// Makes it what it was when the trial got it.
    pub(crate) fn again(&self) {
        let beginning = self.beginning();
        beginning.stage.put_back(&beginning.turns[self.turns - 1].kept);
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
    async fn new(cli: &Pinned, story: Story) -> Self {
        let stage = Stage::new(cli);
        let prompts = match story {
            Story::Talk => ["alpha", "beta"].map(str::to_owned).to_vec(),
            Story::Work => {
                workshop::lay_out(&stage);
                workshop::prompts(&stage).to_vec()
            }
        };
        let (turns, around) = (Vec::new(), BTreeSet::new());
        let mut beginning = Self { story, stage, prompts, turns, fresh_turns: 0, around };
        beginning.run().await;
        beginning.fresh_turns = beginning.stage.turns();
        beginning.around = around_of(&beginning);
        beginning
    }

    /// Runs the next turn.
    async fn run(&mut self) {
        let stage = &self.stage;
        let lifecycle = match self.story {
            Story::Talk => stage.lifecycle(true),
            Story::Work => stage.checkpointed(),
        };
        let result = lifecycle.run(stage.request(&self.prompts[self.turns.len()])).await.unwrap();
        let kept = match self.story {
            Story::Talk => stage.keep(),
            Story::Work => stage.keep_with_project(),
        };
        self.turns.push(Turn { result, kept, picture: Picture::of(&stage.place.project()) });
    }

    /// Whether nothing runs, and nothing was changed that is not copied.
    fn can_be_put_back(&self) -> bool {
        self.stage.processes().is_empty() && around_of(self) == self.around
    }
}

/// What lies beside the folders that are copied; and in the project and in what git keeps of it, where that is not.
fn around_of(beginning: &Beginning) -> BTreeSet<PathBuf> {
    let Beginning { stage, story, .. } = beginning;
    let project = stage.place.project();
    let of_project = [project.clone(), project.join(".git"), project.join(".git/refs/heads")];
    let of_project = of_project.into_iter().filter(|_| *story == Story::Talk);
    let folders = [stage.place.root.clone()].into_iter().chain(of_project);
    let entries = folders.flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn idle() -> std::sync::MutexGuard<'static, Vec<Beginning>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(cli: &Pinned, story: Story) -> Option<Beginning> {
    let mut idle = idle();
    let is_of = |known: &Beginning| {
        let of = (&known.stage.cli.agent, &known.stage.cli.version, known.story);
        of == (&cli.agent, &cli.version, story)
    };
    let at = idle.iter().position(is_of)?;
    Some(idle.swap_remove(at))
}

/// Removes what no trial will use any more: what is static is never dropped.
pub(crate) fn clear() {
    idle().clear();
}
