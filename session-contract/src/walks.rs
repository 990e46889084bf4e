//! How random walks are made, kept and told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config, FileFailurePersistence, RngAlgorithm, RngSeed, TestCaseError, TestRng, TestRunner,
    contextualize_config,
};

/// What a subject says of its random walks.
#[derive(Debug)]
pub(crate) struct Walks<'a> {
    pub(crate) count: u32,
    pub(crate) seed: Option<u64>,
    pub(crate) regressions: Option<&'a Path>,
    /// The same walks every time, and nothing is shrunk.
    pub(crate) same: bool,
    /// So often a walk that broke something is made shorter.
    pub(crate) shrinks: u32,
}

impl Walks<'_> {
    /// Makes them all. A panic of a walk is told with its steps, once they are the fewest that bring it about.
    pub(crate) fn make<S: Strategy>(&self, steps: &S, walk: impl Fn(S::Value)) {
        let outcome = self.runner().run(steps, |steps| {
            // The message of the last one is told with the steps; the others of the search are of no interest.
            catch_unwind(AssertUnwindSafe(|| walk(steps))).map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                TestCaseError::fail(text.unwrap_or_default())
            })
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    }

    fn runner(&self) -> TestRunner {
        // Without optimisation, the default algorithm takes as long as the walks.
        let rng_algorithm = RngAlgorithm::XorShift;
        let rng_seed = self.seed.map_or(RngSeed::Random, RngSeed::Fixed);
        let config = Config { cases: self.count, rng_algorithm, rng_seed, ..Config::default() };
        if self.same {
            let config = Config { max_shrink_iters: 0, failure_persistence: None, ..config };
            return TestRunner::new_with_rng(config, TestRng::deterministic_rng(rng_algorithm));
        }
        let mut config = contextualize_config(Config { max_shrink_iters: self.shrinks, ..config });
        config.failure_persistence = self.regressions.map(|file| {
            let path: &'static str = Box::leak(file.to_string_lossy().into_owned().into_boxed_str());
            Box::new(FileFailurePersistence::Direct(path)) as _
        });
        TestRunner::new(config)
    }
}
