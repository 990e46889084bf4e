//! The contract of an [`AgentAdapter`]: verdicts, ids, processes, prompts.
//!
//! The suite cannot make an agent crash, or lose a session: an [`AgentFixture`] does. What it cannot stage, it says
//! ([`Cannot`]); the case then asserts what can be asserted without.

mod ends;
mod processes;
mod sessions;
mod stage;
mod turns;

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;

use session_core::{AgentAdapter, NativeId, async_trait};

use crate::{Case, Scratch};

/// What the agent does in the turns that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Play {
    /// It carries turns out and keeps them, and is honest about what it has.
    Works,
    /// The same; the model's answer is this.
    Says(String),
    /// It names its session, calls the model, and then does not come to an end by itself.
    Stops,
    /// It dies after the model was called.
    Dies,
    /// It dies before it says anything.
    DiesAtOnce,
    /// It ends in order and says nothing.
    EndsInSilence,
    /// It fails to continue a session, and prints another id meanwhile.
    FailsNaming(NativeId),
    /// It carries the turn out, and leaves something running.
    LeavesSomething,
}

/// Something that cannot be staged, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cannot(pub &'static str);

/// An agent on a stage: how a case makes it do what it is about, and what really happened.
#[async_trait]
pub trait AgentFixture: fmt::Debug + Send + Sync {
    /// The adapter.
    fn adapter(&self) -> &dyn AgentAdapter;

    /// The same adapter where its agent is not there. `None`: its agent is always there.
    fn without_agent(&self) -> Option<Box<dyn AgentAdapter>>;

    /// The folder for turns.
    fn cwd(&self) -> &Path;

    /// The state dir for turns, where the agent takes one.
    fn state_dir(&self) -> Option<&Path>;

    /// From now on, the agent does this.
    ///
    /// # Errors
    /// [`Cannot`], with the reason.
    async fn stage(&self, play: &Play) -> Result<(), Cannot>;

    /// Deletes a session behind the agent's back.
    ///
    /// # Errors
    /// [`Cannot`], with the reason.
    async fn delete(&self, id: &NativeId) -> Result<(), Cannot>;

    /// Waits until a turn that [stops](Play::Stops) has come so far.
    async fn stopped(&self);

    /// The prompts of a session, as the model is shown them, oldest first. Empty where there is no such session.
    async fn conversation(&self, id: &NativeId) -> Vec<String>;

    /// How often the agent was started: each turn that reached it counts.
    async fn started(&self) -> usize;

    /// What is still running of all that the adapter started, in processes or tasks.
    async fn running(&self) -> usize;

    /// Whether what was started goes on when its runner dies.
    fn outlives_its_runner(&self) -> bool;
}

type Making = Pin<Box<dyn Future<Output = Box<dyn AgentFixture>>>>;

/// An adapter to try.
pub struct Subject {
    make: Box<dyn Fn(Rc<Scratch>) -> Making>,
    still: bool,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}

impl Subject {
    /// The adapter on a stage that this makes, anew for every case.
    pub fn new<F: AgentFixture + 'static>(make: impl AsyncFn(&Scratch) -> F + 'static) -> Self {
        let make = Rc::new(make);
        let make = move |scratch: Rc<Scratch>| -> Making {
            let make = make.clone();
            Box::pin(async move { Box::new(make(&scratch).await) as Box<dyn AgentFixture> })
        };
        Self { make: Box::new(make), still: false }
    }

    /// Lets tokio's clock jump to whatever is waited for next: for adapters that wait for nothing else.
    #[must_use]
    pub const fn still_clock(mut self, still: bool) -> Self {
        self.still = still;
        self
    }
}

/// Makes tests of the cases: `agent_contract!(name, make)`, where `make` is an `async fn(&Scratch) -> Fixture`.
///
/// `name` is the name of the module that the tests stand in. Every setting is a method of
/// [`Subject`](crate::agent::Subject).
#[macro_export]
macro_rules! agent_contract {
    ($name:ident, $make:expr $(, $setting:ident = $value:expr)* $(,)?) => {
        fn $name() -> Box<$crate::agent::Subject> {
            Box::new($crate::agent::Subject::new($make)$(.$setting($value))*)
        }
        $crate::__agent_cases! { $crate::__tests $name $crate::agent::AGENT_CASES }
    };
}

/// The list of the cases: the one place where they are named.
#[doc(hidden)]
#[macro_export]
macro_rules! __agent_cases {
    ($krate:tt :: $then:ident $($with:tt)*) => {
        $krate::$then! { [$($with)*]
            turns: a_turn_is_carried_out, the_prompt_reaches_the_model_verbatim, the_events_are_those_of_the_report,
                the_agent_is_the_same_every_time, what_is_no_id_is_not_accepted;
            sessions: a_resume_continues_the_session, a_chosen_id_is_taken, a_fork_leaves_its_original,
                a_deleted_session_is_missing, a_failed_resume_names_no_other_session,
                an_id_in_the_words_of_the_model_is_none;
            ends: a_death_in_mid_turn_is_a_verdict, a_death_at_once_is_a_verdict, an_end_in_silence_is_no_success,
                what_cannot_be_started_is_an_error, a_limit_ends_a_turn;
            processes: cancel_ends_a_turn_in_order, a_cancelled_turn_starts_nothing, a_dropped_turn_leaves_nothing,
                a_turn_that_returned_leaves_nothing, what_a_dead_runner_left_is_ended;
        }
    };
}

/// Every case of the contract.
pub const AGENT_CASES: &[Case<Subject>] = crate::__agent_cases! { crate::__table };
