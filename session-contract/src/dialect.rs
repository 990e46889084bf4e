//! The contract of a [`CliDialect`]: what it builds, what it reads, how it judges.

mod claims;
mod commands;
mod fixtures;
mod prompts;
mod state;
mod stream;
mod turns;
mod verdicts;

use std::fmt;
use std::path::PathBuf;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use session_core::{CliDialect, CommandSpec, NativeId, Version};

use crate::Case;
pub use fixtures::Fixture;

/// How the prompt that the model will get is found in a command: the last of the commands of a turn.
pub type PromptOf = fn(&CommandSpec, Option<&Version>) -> Option<String>;

/// A dialect, and what the suite has to know to try it.
pub struct Subject {
    dialect: Box<dyn CliDialect>,
    root: PathBuf,
    fixtures: Vec<Fixture>,
    versions: Vec<Version>,
    ids: Vec<NativeId>,
    prompt_of: Option<PromptOf>,
    gives_up_resuming: Vec<Version>,
    starts_anew: Vec<Version>,
    divisor: u32,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dialect, fixtures, versions, .. } = self;
        f.debug_struct("Subject")
            .field("dialect", dialect.id())
            .field("fixtures", &fixtures.len())
            .field("versions", versions)
            .finish_non_exhaustive()
    }
}

impl Subject {
    /// This dialect. Paths of fixtures begin at `root`: the folder of the crate that is tested.
    pub fn new(dialect: impl CliDialect, root: impl Into<PathBuf>) -> Self {
        Self {
            dialect: Box::new(dialect),
            root: root.into(),
            fixtures: Vec::new(),
            versions: Vec::new(),
            ids: Vec::new(),
            prompt_of: None,
            gives_up_resuming: Vec::new(),
            starts_anew: Vec::new(),
            divisor: 1,
        }
    }

    /// Recorded runs of the real program, as `<folder>/<version>/<scenario>/{meta.json, stdout.jsonl, stderr.txt}`. Their
    /// versions are tried, and so are the ids in them. See the crate's README for the form.
    ///
    /// # Panics
    /// Where there are none, or one that is not whole.
    #[must_use]
    pub fn fixtures(mut self, folder: &str) -> Self {
        self.fixtures = fixtures::load(&self.root.join(folder));
        let named = self.fixtures.iter().flat_map(Fixture::ids).filter(|id| self.dialect.accepts_id(id));
        self.ids.extend(named);
        self.ids.sort();
        self.ids.dedup();
        let versions: Vec<_> = self.fixtures.iter().map(|fixture| fixture.version.clone()).collect();
        self.add_versions(versions);
        self
    }

    /// More versions to try, such as the oldest one that is known at all.
    ///
    /// # Panics
    /// Where one is no version.
    #[must_use]
    pub fn versions(mut self, versions: &[&str]) -> Self {
        self.add_versions(versions.iter().map(|text| version(text)).collect());
        self
    }

    /// More ids that the agent could have given a session: two different ones are needed.
    #[must_use]
    pub fn ids(mut self, ids: &[&str]) -> Self {
        self.ids.extend(ids.iter().map(|id| NativeId::new(*id)));
        self
    }

    /// How to find the prompt in a command, where stdin is neither the prompt itself nor lines of JSON whose members
    /// `text`, joined, are the prompt.
    #[must_use]
    pub fn prompt_of(mut self, prompt_of: PromptOf) -> Self {
        self.prompt_of = Some(prompt_of);
        self
    }

    /// A version that cannot resume any more, though the one before could.
    ///
    /// # Panics
    /// Where it is no version.
    #[must_use]
    pub fn gives_up_resuming(mut self, text: &str) -> Self {
        self.gives_up_resuming.push(version(text));
        self
    }

    /// Versions that begin another session, without a word, where they do not have the one to be continued. A fixture of
    /// that takes the place of one that finds nothing.
    ///
    /// # Panics
    /// Where one is no version.
    #[must_use]
    pub fn starts_anew(mut self, versions: &[&str]) -> Self {
        self.starts_anew.extend(versions.iter().map(|text| version(text)));
        self
    }

    /// Divides how much is tried, and tries the same every time: for those who test the suite itself.
    ///
    /// # Panics
    /// Where it is zero.
    #[must_use]
    pub fn divided_by(mut self, divisor: u32) -> Self {
        assert!(divisor > 0, "nothing can be divided by zero");
        self.divisor = divisor;
        self
    }

    /// So many random cases, none of them kept.
    pub(crate) fn random(&self, cases: u32) -> TestRunner {
        let cases = (cases / self.divisor).max(32);
        let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
        if self.divisor == 1 {
            return TestRunner::new(config);
        }
        // A table of who fails what has to come out the same every time.
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::default()))
    }

    fn add_versions(&mut self, versions: Vec<Version>) {
        self.versions.extend(versions);
        self.versions.sort_by_key(|version| version.numbers);
        self.versions.dedup_by_key(|version| version.numbers);
    }

    /// Two ids of the agent's shape.
    pub(crate) fn two_ids(&self) -> (NativeId, NativeId) {
        match self.ids.as_slice() {
            [one, .., two] => (one.clone(), two.clone()),
            _ => {
                panic!("two ids of the agent's shape are needed: in fixtures, or as `ids = &[\"…\", \"…\"]`")
            }
        }
    }
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap_or_else(|| panic!("{text:?} is no version"))
}

/// Makes tests of the cases: `dialect_contract!(name, dialect, fixtures = "fixtures")`.
///
/// `name` is the name of the module that the tests stand in. Every setting is a method of
/// [`Subject`](crate::dialect::Subject).
#[macro_export]
macro_rules! dialect_contract {
    ($name:ident, $dialect:expr $(, $setting:ident = $value:expr)* $(,)?) => {
        fn $name() -> Box<$crate::dialect::Subject> {
            Box::new($crate::dialect::Subject::new($dialect, env!("CARGO_MANIFEST_DIR"))$(.$setting($value))*)
        }
        $crate::__dialect_cases! { $crate::__tests $name $crate::dialect::DIALECT_CASES }
    };
}

/// The list of the cases: the one place where they are named.
#[doc(hidden)]
#[macro_export]
macro_rules! __dialect_cases {
    ($krate:tt :: $then:ident $($with:tt)*) => {
        $krate::$then! { [$($with)*]
            commands: a_fresh_command_mentions_no_session, a_resume_carries_its_id_once, a_malformed_id_is_refused,
                a_command_depends_on_its_turn_alone, a_name_is_no_flag, the_version_probe_prompts_nothing;
            prompts: the_prompt_is_no_argument, the_prompt_reaches_the_agent_verbatim, any_prompt_reaches_the_agent_verbatim,
                a_prompt_over_the_limit_is_refused, nothing_secret_is_shown;
            state: sessions_lie_in_the_state_dir, two_state_dirs_share_nothing, without_a_state_dir_nothing_is_changed;
            stream: any_bytes_are_read, the_same_lines_are_the_same_events, noise_says_nothing, a_huge_line_is_survived;
            verdicts: every_fixture_has_its_verdict, a_cut_stream_neither_completes_nor_condemns,
                a_missing_session_is_never_completed, one_sign_alone_is_no_success, unknown_words_condemn_nothing,
                the_words_of_the_model_condemn_nothing, a_failed_resume_names_no_other_session;
            claims: a_chosen_id_is_carried_or_refused, a_new_id_has_the_agents_shape, a_fork_is_carried_or_refused, a_resume_is_carried_or_refused,
                an_unknown_version_has_the_newest_rules, no_version_loses_the_resume_unsaid,
                the_id_of_a_resume_is_as_claimed, what_is_claimed_as_verified_is_shown;
        }
    };
}

/// Every case of the contract.
pub const DIALECT_CASES: &[Case<Subject>] = crate::__dialect_cases! { crate::__table };
