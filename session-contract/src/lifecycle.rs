//! The contract of the lifecycle over a store: random walks, checked against a small model of what a mailbox has to
//! remember.
//!
//! The agent of a walk has a world of its own: sessions with what they hold, files that are deleted, damaged, locked or
//! archived, versions that come and go. A walk runs prompts for two mailboxes in four folders, lets attempts fail in every
//! way, kills the runner at every step, and lets the store fail. After each run the model says what had to happen.

mod agent;
mod book;
mod check;
mod drive;
mod ending;
mod faults;
mod host;
mod invariant;
mod known;
mod model;
mod scene;
mod step;
mod walk;
mod world;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use proptest::test_runner::{
    Config, FileFailurePersistence, RngAlgorithm, RngSeed, TestCaseError, TestRng, TestRunner,
    contextualize_config,
};
use session_core::{Agent, AgentAdapter, SessionKey, SessionStore};

use crate::{Case, Scratch};
use agent::{Glass, Walker};
use invariant::{Invariant, Violation};
use step::{Setup, Step};
use walk::Walk;

type Opening = Pin<Box<dyn Future<Output = Arc<dyn SessionStore>>>>;
type Wrap = fn(Arc<dyn AgentAdapter>) -> Agent;
type Open = dyn Fn(Rc<Scratch>) -> Opening;

/// A store to walk over, and how far.
pub struct Walks {
    open: Box<Open>,
    cases: u32,
    regressions: Option<PathBuf>,
    wrap: Option<Wrap>,
    root: PathBuf,
    same: bool,
    seed: Option<u64>,
}

impl fmt::Debug for Walks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walks").field("cases", &self.cases).finish_non_exhaustive()
    }
}

impl Walks {
    /// Walks over the store that this opens: a new one in a new [`Scratch`], the same one in the same.
    pub fn new<S: SessionStore>(
        open: impl AsyncFn(&Scratch) -> S + 'static,
        root: impl Into<PathBuf>,
    ) -> Self {
        let open = Rc::new(open);
        let open = move |scratch: Rc<Scratch>| -> Opening {
            let open = open.clone();
            Box::pin(async move { Arc::new(open(&scratch).await) as Arc<dyn SessionStore> })
        };
        Self {
            open: Box::new(open),
            cases: 2000,
            regressions: None,
            wrap: None,
            root: root.into(),
            same: false,
            seed: None,
        }
    }

    /// How many walks there are: 2,000 by default, or as `PROPTEST_CASES` says.
    #[must_use]
    pub const fn cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// Where the random numbers of the walks begin, so that the same walks are made every time; `PROPTEST_RNG_SEED` stands
    /// above it. Without it, the walks are new ones every time.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The file in which walks that broke something are kept, to be walked again each time.
    #[must_use]
    pub fn regressions(mut self, file: &str) -> Self {
        self.regressions = Some(self.root.join(file));
        self
    }

    /// Puts something between the lifecycle and the agent of the walks: for those who test the suite itself.
    #[must_use]
    pub const fn agent(mut self, wrap: fn(Arc<dyn AgentAdapter>) -> Agent) -> Self {
        self.wrap = Some(wrap);
        self
    }

    /// The same walks every time: for those who test the suite itself.
    #[must_use]
    pub const fn always_the_same(mut self) -> Self {
        self.same = true;
        self
    }

    /// Walks, and finds what is broken; each finding is then shrunk.
    ///
    /// # Panics
    /// Where the store cannot be opened, read or written when nothing is to fail.
    #[must_use]
    pub fn findings(&self) -> Findings {
        let again = known::KNOWN.iter().filter_map(|known| {
            let (setup, steps) = known.walk();
            let Violation { invariant, message } = self.walk(&setup, &steps).err()?;
            Some((invariant, format!("once more, {}:\n{message}", known.name)))
        });
        let again: Vec<_> = again.collect();
        let (config, rng) = self.config();
        let broken = self.count(&config, &rng);
        let shrink = |(invariant, times): (Invariant, u32)| {
            // The same walks again, for this one alone.
            let found = self.walk_all(config.clone(), rng.clone(), |violation| match violation.invariant {
                other if other != invariant => Ok(()),
                _ => Err(TestCaseError::fail(violation.message)),
            });
            let found = found.unwrap_or_default();
            (invariant, format!("broken in {times} of {} walks; the shortest found:\n{found}", config.cases))
        };
        Findings(broken.into_iter().map(shrink).chain(again).collect())
    }

    /// The names of the cases that fail in the walks up to the first one that breaks this case: for those who test the
    /// suite itself.
    ///
    /// # Panics
    /// As [`findings`](Self::findings).
    #[must_use]
    pub fn broken_until(&self, case: &str) -> Vec<&'static str> {
        let (mut config, rng) = self.config();
        config.max_shrink_iters = 0;
        let broken: RefCell<BTreeSet<Invariant>> = RefCell::default();
        self.walk_all(config, rng, |violation| {
            broken.borrow_mut().insert(violation.invariant);
            if violation.invariant.name() == case {
                Err(TestCaseError::fail(case.to_owned()))
            } else {
                Ok(())
            }
        });
        broken.into_inner().into_iter().map(Invariant::name).collect()
    }

    fn config(&self) -> (Config, TestRng) {
        // Without optimisation, the default algorithm takes as long as the walks.
        let rng_algorithm = RngAlgorithm::XorShift;
        let rng_seed = self.seed.map_or(RngSeed::Random, RngSeed::Fixed);
        let config = Config {
            cases: self.cases,
            max_shrink_iters: 4096,
            rng_algorithm,
            rng_seed,
            ..Config::default()
        };
        let mut config = contextualize_config(config);
        config.failure_persistence = self.regressions.as_ref().map(|file| {
            let path: &'static str = Box::leak(file.to_string_lossy().into_owned().into_boxed_str());
            Box::new(FileFailurePersistence::Direct(path)) as _
        });
        if self.same {
            config.cases = self.cases;
            return (config, TestRng::deterministic_rng(rng_algorithm));
        }
        let rng = TestRunner::new(config.clone()).rng().clone();
        (config, rng)
    }

    /// How many walks break what.
    fn count(&self, config: &Config, rng: &TestRng) -> BTreeMap<Invariant, u32> {
        let broken: RefCell<BTreeMap<Invariant, u32>> = RefCell::default();
        let all = self.walk_all(config.clone(), rng.clone(), |violation| {
            *broken.borrow_mut().entry(violation.invariant).or_default() += 1;
            Ok(())
        });
        assert!(all.is_none(), "{all:?}");
        broken.into_inner()
    }

    fn walk_all(
        &self,
        config: Config,
        rng: TestRng,
        judge: impl Fn(Violation) -> Result<(), TestCaseError>,
    ) -> Option<String> {
        let mut runner = TestRunner::new_with_rng(config, rng);
        let outcome = runner.run(&step::walks(), |(setup, steps)| match self.walk(&setup, &steps) {
            Ok(()) => Ok(()),
            Err(violation) => judge(violation),
        });
        outcome.err().map(|error| error.to_string())
    }

    fn walk(&self, setup: &Setup, steps: &[Step]) -> Result<(), Violation> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
        runtime.block_on(async { Walk::new(&*self.open, self.wrap, setup).await.steps(steps).await })
    }
}

/// What walks have shown: the invariants that were broken, each with the shortest walk that was found.
#[derive(Debug, Default)]
pub struct Findings(BTreeMap<Invariant, String>);

impl Findings {
    fn assert(&self, invariant: Invariant) {
        if let Some(finding) = self.0.get(&invariant) {
            panic!("{finding}");
        }
    }
}

/// The key of a mailbox of a walk.
fn key(mailbox: usize) -> SessionKey {
    SessionKey::new(format!("issue-{mailbox}"), "walker").unwrap_or_else(|error| panic!("{error}"))
}

/// Makes tests of the invariants: `lifecycle_contract!(name, open)`, where `open` is an `async fn(&Scratch) -> Store`.
///
/// `name` is the name of the module that the tests stand in. All of them look at the same walks. Every setting is a
/// method of [`Walks`](crate::lifecycle::Walks).
#[macro_export]
macro_rules! lifecycle_contract {
    ($name:ident, $open:expr $(, $setting:ident = $value:expr)* $(,)?) => {
        fn $name() -> &'static $crate::lifecycle::Findings {
            static FINDINGS: std::sync::OnceLock<$crate::lifecycle::Findings> = std::sync::OnceLock::new();
            FINDINGS.get_or_init(|| {
                $crate::lifecycle::Walks::new($open, env!("CARGO_MANIFEST_DIR"))$(.$setting($value))*.findings()
            })
        }
        $crate::__lifecycle_cases! { $crate::__tests $name $crate::lifecycle::LIFECYCLE_CASES }
    };
}

/// The list of the cases: the one place where they are named.
#[doc(hidden)]
#[macro_export]
macro_rules! __lifecycle_cases {
    ($krate:tt :: $then:ident $($with:tt)*) => {
        $krate::$then! { [$($with)*]
            invariant: no_session_of_another_mailbox, no_other_project_without_a_yes, the_policy_is_kept,
                one_fallback_at_most, no_prompt_runs_twice, a_newer_record_is_left_alone, only_a_cure_falls_back,
                a_resume_is_the_same_conversation, every_reason_is_true, recording_spoils_no_result,
                a_good_session_is_never_lost, a_condemned_session_is_left, three_failures_in_a_row_are_enough,
                one_runner_at_a_time, a_named_session_is_noted, what_a_dead_runner_left_is_ended, what_is_stored_can_be_read,
                a_closed_mailbox_is_forgotten, the_log_says_the_same;
        }
    };
}

/// Every case of the contract.
pub const LIFECYCLE_CASES: &[Case<Findings>] = crate::__lifecycle_cases! { crate::__table };
