//! Random histories of runs, edits by hand, rewinds and undos, against a model that keeps whole states.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use session_core::*;

use crate::scripted::*;
use crate::shelf::*;

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    /// A prompt that edits these.
    Run(Vec<(u8, u8)>),
    /// A prompt whose runner dies when all is done.
    Die(Vec<(u8, u8)>),
    ByHand(Vec<(u8, u8)>),
    /// The last one: whether a checkpoint can be taken at its end.
    Rewind(u32, RewindMode, Conflicts, bool),
    Undo(bool),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let edits = || prop::collection::vec((0..5_u8, 0..4_u8), 0..4);
    let mode = prop::sample::select(vec![RewindMode::Both, RewindMode::Files, RewindMode::Conversation]);
    let conflicts = prop::sample::select(vec![Conflicts::Keep, Conflicts::Overwrite]);
    prop_oneof![
        5 => edits().prop_map(Step::Run),
        1 => edits().prop_map(Step::Die),
        2 => edits().prop_map(Step::ByHand),
        3 => (1..4_u32, mode, conflicts, prop::bool::weighted(0.8))
            .prop_map(|(turns, mode, conflicts, marked)| Step::Rewind(turns, mode, conflicts, marked)),
        2 => prop::bool::weighted(0.8).prop_map(Step::Undo),
        1 => Just(Step::Clear),
    ]
}

/// Edits as words: zero removes, anything else writes that. Folders come and go with what is in them.
fn words(edits: &[(u8, u8)]) -> String {
    const NAMES: [&str; 5] = ["a", "b", "d/x", "d/y", "d"];
    let word = |(name, text): &(u8, u8)| match (NAMES[usize::from(*name)], *text) {
        (name, 0) => format!("-{name}"),
        (name, text) => format!("+{name}={text}"),
    };
    edits.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// What there was at some moment.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    tree: Tree,
    said: Vec<String>,
    /// The prompts that can be taken back, as places in the model's list of what was before them.
    live: Vec<usize>,
}

#[derive(Debug, Default)]
struct Model {
    now: State,
    /// What was before each prompt and each rewind.
    before: Vec<State>,
    rewinds: Vec<usize>,
    /// What somebody touched by hand since.
    touched: Vec<BTreeSet<PathBuf>>,
    /// The tree at the end of the last step.
    ended: Tree,
    /// A runner died, and no checkpoint was taken since: what is changed counts as its own.
    dying: bool,
}

impl Model {
    fn mark(&mut self) -> usize {
        // What was done by hand and taken back by hand is nothing.
        let changed = diff(&self.ended, &self.now.tree).into_iter().map(|change| change.path);
        let by_hand: Vec<_> = changed.filter(|_| !self.dying).collect();
        self.touched.iter_mut().for_each(|touched| touched.extend(by_hand.iter().cloned()));
        self.before.push(self.now.clone());
        self.touched.push(BTreeSet::new());
        self.dying = false;
        self.before.len() - 1
    }
    fn end(&mut self) {
        self.ended = self.now.tree.clone();
    }
    /// Says what somebody touched by hand since then.
    fn go_back(&mut self, to: usize, mode: RewindMode) -> BTreeSet<PathBuf> {
        let then = self.before[to].clone();
        let at = self.mark();
        let touched = self.touched[to].clone();
        self.rewinds.push(at);
        if mode.takes_conversation() {
            self.now.said = then.said;
        }
        self.now.live = then.live;
        if mode.takes_files() {
            self.now.tree = then.tree;
        }
        touched
    }
}

async fn walk(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (yard, mut model) = (yard(), Model::default());
    for (at, step) in steps.into_iter().enumerate() {
        match step {
            Step::Run(edits) => {
                let prompt = format!("p{at} {}", words(&edits));
                let place = model.mark();
                model.now.live.push(place);
                play(&mut model.now.tree, &prompt);
                model.now.said.push(prompt.clone());
                model.end();
                let result = yard.run(&prompt).await;
                prop_assert_eq!(&result.text, &model.now.said.len().to_string());
                prop_assert!(result.warnings.iter().all(|one| matches!(one, Warning::Reclaimed(_))));
            }
            Step::Die(edits) => {
                let prompt = format!("p{at} {}", words(&edits));
                let place = model.mark();
                model.now.live.push(place);
                play(&mut model.now.tree, &prompt);
                model.now.said.push(prompt.clone());
                yard.agent.will([Act::Hang]);
                let calls = yard.agent.calls().len();
                let mut run = Box::pin(yard.lifecycle.run(request(&prompt)));
                while yard.agent.calls().len() == calls {
                    let poll = std::future::poll_fn(|context| {
                        std::task::Poll::Ready(run.as_mut().poll(context).is_ready())
                    });
                    prop_assert!(!poll.await);
                }
                drop(run);
                model.dying = true;
            }
            Step::ByHand(edits) => {
                yard.by_hand(&words(&edits));
                play(&mut model.now.tree, &words(&edits));
            }
            Step::Clear => {
                yard.lifecycle.clear(&key()).await.unwrap();
                model.now.said.clear();
            }
            Step::Rewind(turns, mode, conflicts, marked) => {
                let wish = back(turns).mode(mode).conflicts(conflicts);
                let Some(place) = model.now.live.len().checked_sub(turns as usize) else {
                    prop_assert!(yard.lifecycle.rewind(&wish).await.is_err());
                    continue;
                };
                let to = model.now.live[place];
                yard.shelf.inner().fails_at = (!marked).then_some(Moment::AfterRewind);
                compare(&yard, &mut model, (to, mode), &wish).await?;
                model.dying = !marked;
            }
            Step::Undo(marked) => {
                let Some(&to) = model.rewinds.last() else {
                    prop_assert!(yard.lifecycle.undo(&key(), Path::new("/w/demo")).await.is_err());
                    continue;
                };
                let foreseen = yard.lifecycle.foresee_undo(&key(), Path::new("/w/demo")).await.unwrap();
                yard.shelf.inner().fails_at = (!marked).then_some(Moment::AfterRewind);
                let undone = yard.undo().await;
                settle(&yard, &mut model, (to, RewindMode::Both), (foreseen, undone)).await?;
                model.dying = !marked;
            }
        }
        prop_assert_eq!(&yard.shelf.tree(), &model.now.tree);
        prop_assert_eq!(&yard.said().await, &model.now.said);
    }
    Ok(())
}

async fn compare(
    yard: &Yard,
    model: &mut Model,
    to: (usize, RewindMode),
    wish: &RewindRequest,
) -> Result<(), TestCaseError> {
    let foreseen = yard.lifecycle.foresee_rewind(wish).await.unwrap();
    let rewound = yard.lifecycle.rewind(wish).await.unwrap();
    settle(yard, model, to, (foreseen, rewound)).await
}

/// What was foreseen is what came; what nobody else touched is as it was; all else is as it was before the rewind.
async fn settle(
    yard: &Yard,
    model: &mut Model,
    (to, mode): (usize, RewindMode),
    (foreseen, rewound): (RewindPreview, Rewound),
) -> Result<(), TestCaseError> {
    let was = model.now.tree.clone();
    let then = model.before[to].tree.clone();
    let touched = model.go_back(to, mode);
    prop_assert_eq!(foreseen.target.id, rewound.target.id);
    prop_assert_eq!(&foreseen.dropped, &rewound.dropped);
    let tree = yard.shelf.tree();
    if mode.takes_files() {
        let goes = foreseen.files.restore.iter().map(|change| change.path.clone());
        let mut goes: Vec<_> = match foreseen.on_conflicts {
            Conflicts::Keep => goes.collect(),
            _ => goes.chain(foreseen.files.conflicts.iter().map(|change| change.path.clone())).collect(),
        };
        goes.sort();
        let mut done = rewound.files.restored.clone();
        done.extend(rewound.files.left.iter().map(|left| left.path.clone()));
        done.sort();
        prop_assert_eq!(&goes, &done);
        for path in was.keys().chain(then.keys()) {
            let gone_back = rewound.files.restored.contains(path);
            prop_assert_eq!(tree.get(path), if gone_back { then.get(path) } else { was.get(path) });
        }
        for path in rewound.files.restored.iter().filter(|path| touched.contains(*path)) {
            // To make a folder again that something goes back into takes nothing from anybody.
            prop_assert!(
                !was.contains_key(path) || foreseen.on_conflicts == Conflicts::Overwrite,
                "{:?}",
                path
            );
        }
        if touched.is_empty() {
            prop_assert_eq!(&rewound.outcome, &RewindOutcome::Done);
            prop_assert_eq!(&tree, &then);
        }
        model.now.tree = tree;
    }
    model.end();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_as_the_model_says(steps in prop::collection::vec(step(), 1..16)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(walk(steps))?;
    }
}
