//! The contract of a [`SessionStore`]: documents, guards, lists, logs, leases, state dirs, and what is left of them when
//! the store is opened again, a writer races another one, or a process dies.
//!
//! Every case states the [capability](session_core::StoreCapabilities) that it needs; where the store does not claim it, the
//! case asserts that the store says so: `None` in place of a state dir, no name in place of one that is made up.

mod aside;
mod audit;
mod damage;
mod documents;
mod fences;
mod guards;
mod keys;
mod leases;
mod leftovers;
mod model;
mod pages;
mod process;
mod races;
mod reopening;
mod stage;
mod state;
mod step;

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use session_core::{SessionKey, SessionStore};

use crate::agent::Cannot;
use crate::{Case, Scratch};

/// What is done to a store behind its back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The key's document loses its end, as after a crash of a disk that did not keep its word.
    Cut,
    /// One byte of the key's document becomes another one.
    Altered,
    /// The key's document becomes one that a newer version of the store wrote.
    Newer,
    /// The whole store goes out of reach: a disk that is not mounted, a server that is down.
    Away,
    /// It is back, as it was.
    Back,
}

type Later<T> = Pin<Box<dyn Future<Output = T>>>;
type Shared = Arc<dyn Any + Send + Sync>;
type Open = dyn Fn(Rc<Scratch>) -> Later<Opened>;
type OnDamage = dyn Fn(Rc<Scratch>, SessionKey, Damage) -> Later<Result<(), Cannot>>;
type OnKept = dyn Fn(Shared, String) -> Later<Option<Vec<u8>>>;

/// A handle of the store, as the port and as what it is.
struct Opened {
    store: Arc<dyn SessionStore>,
    typed: Shared,
}

/// A store to try.
pub struct Subject {
    open: Box<Open>,
    damage: Option<Box<OnDamage>>,
    kept: Option<Box<OnKept>>,
    process: Option<String>,
    walks: u32,
    seed: Option<u64>,
    regressions: Option<PathBuf>,
    root: PathBuf,
    same: bool,
    patience: Duration,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("walks", &self.walks).finish_non_exhaustive()
    }
}

impl Subject {
    /// The store that this opens: a new one in a new [`Scratch`], the same one in the same, if it is durable. `root` is
    /// where relative paths of the settings begin.
    pub fn new<S: SessionStore>(
        open: impl AsyncFn(&Scratch) -> S + 'static,
        root: impl Into<PathBuf>,
    ) -> Self {
        let open = Rc::new(open);
        let open = move |scratch: Rc<Scratch>| -> Later<Opened> {
            let open = open.clone();
            Box::pin(async move {
                let store = Arc::new(open(&scratch).await);
                Opened { store: store.clone(), typed: store }
            })
        };
        Self {
            open: Box::new(open),
            damage: None,
            kept: None,
            process: None,
            walks: 128,
            seed: None,
            regressions: None,
            root: root.into(),
            same: false,
            patience: Duration::from_secs(20),
        }
    }

    /// How the suite damages what the store in a scratch holds. What cannot be done, the hook says ([`Cannot`]). Without
    /// it, the cases about damage assert that nothing is called damaged that is not.
    #[must_use]
    pub fn damage(
        mut self,
        hook: impl AsyncFn(&Scratch, &SessionKey, Damage) -> Result<(), Cannot> + 'static,
    ) -> Self {
        let hook = Rc::new(hook);
        self.damage = Some(Box::new(move |scratch, key, damage| {
            let hook = hook.clone();
            Box::pin(async move { hook(&scratch, &key, damage).await })
        }));
        self
    }

    /// How the bytes are read that were set aside at a place. Without it, a place that is the path of a file has to hold
    /// them, and any other is taken at its word.
    #[must_use]
    pub fn kept<S: SessionStore>(
        mut self,
        hook: impl AsyncFn(&S, &str) -> Option<Vec<u8>> + 'static,
    ) -> Self {
        let hook = Rc::new(hook);
        self.kept = Some(Box::new(move |typed, place| {
            let hook = hook.clone();
            Box::pin(async move {
                let store = typed.downcast::<S>().unwrap_or_else(|_| panic!("the hook is of another store"));
                hook(&store, &place).await
            })
        }));
        self
    }

    /// How many random walks are compared with the model: 128 by default, or as `PROPTEST_CASES` says.
    #[must_use]
    pub const fn walks(mut self, walks: u32) -> Self {
        self.walks = walks;
        self
    }

    /// Where the random numbers of the walks begin, so that the same walks are made every time; `PROPTEST_RNG_SEED`
    /// stands above it. Without it, the walks are new ones every time.
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

    /// The test that plays another process: the path of a test of this program that asserts the case
    /// `a_lease_ends_with_its_process`, the name of the crate first. [`store_contract!`](crate::store_contract) says it.
    /// Without it, no other process is started.
    #[must_use]
    pub fn process(mut self, test: &str) -> Self {
        self.process = test.split_once("::").map(|(_, path)| path.to_owned());
        self
    }

    /// How long the store may take to notice that a lease is over, as when its process was killed: 20 seconds by default.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same walks every time, and nothing is shrunk: for those who test the suite itself.
    #[must_use]
    pub const fn always_the_same(mut self) -> Self {
        self.same = true;
        self
    }
}

/// Makes tests of the cases: `store_contract!(name, open)`, where `open` is an `async fn(&Scratch) -> Store`.
///
/// `name` is the name of the module that the tests stand in. Every setting is a method of
/// [`Subject`](crate::store::Subject):
///
/// ```
/// use session_contract::{Scratch, store_contract};
/// use session_core::MemoryStore;
///
/// // A store with a place of its own opens it in `scratch.dir()`: twice in one scratch is the same store again.
/// async fn open(_scratch: &Scratch) -> MemoryStore { MemoryStore::new() }
/// store_contract!(my_store, open, walks = 64, regressions = "proptest-regressions/store.txt");
/// ```
#[macro_export]
macro_rules! store_contract {
    ($name:ident, $open:expr $(, $setting:ident = $value:expr)* $(,)?) => {
        fn $name() -> Box<$crate::store::Subject> {
            let subject = $crate::store::Subject::new($open, env!("CARGO_MANIFEST_DIR"))
                .process(concat!(module_path!(), "::", stringify!($name), "::a_lease_ends_with_its_process"));
            Box::new(subject$(.$setting($value))*)
        }
        $crate::__store_cases! { $crate::__tests $name $crate::store::STORE_CASES }
    };
}

/// The list of the cases: the one place where they are named.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_cases {
    ($krate:tt :: $then:ident $($with:tt)*) => {
        $krate::$then! { [$($with)*]
            documents: nothing_is_absent, a_document_comes_back, the_last_document_stands, any_bytes_come_back,
                a_large_document_comes_back, the_claims_are_the_same_every_time;
            guards: absent_writes_once, a_revision_guards_its_document, a_failed_guard_changes_nothing,
                a_revision_is_never_used_again, a_removed_document_is_gone, a_removal_keeps_its_guard;
            keys: no_two_keys_share_a_document, no_two_keys_share_a_log, no_two_keys_share_a_lease;
            pages: pages_make_up_the_whole, a_page_keeps_its_limit, what_was_removed_is_not_listed,
                a_list_goes_on_after_a_removed_key, a_list_is_whole_while_others_write;
            audit: entries_keep_their_order, entries_are_read_after_a_number, a_log_outlives_its_document,
                text_in_a_log_is_opaque;
            leases: one_runner_holds_a_key, a_refused_lease_names_its_holder, a_dropped_lease_is_free,
                grants_are_numbered, a_lease_stops_no_writer, a_dropped_question_leaves_no_lease,
                a_lease_excludes_every_handle;
            fences: who_lost_a_lease_writes_nothing, a_lease_is_good_until_the_next_grant,
                a_dropped_write_is_over_before_the_next_grant;
            process: a_lease_ends_with_its_process, what_a_killed_process_wrote_is_there;
            aside: what_is_set_aside_is_kept, what_is_set_aside_is_gone, setting_aside_keeps_its_guard;
            damage: damage_is_no_absence, damage_is_not_written_over, damage_can_be_set_aside,
                damage_stays_with_its_key, a_newer_document_is_left_alone, a_store_out_of_reach_is_not_empty;
            state: state_dirs_are_apart, a_state_dir_stays_where_it_is, a_state_dir_is_private,
                what_is_planted_is_no_state_dir, a_removed_state_dir_is_gone_and_no_other_is;
            leftovers: a_state_dir_is_measured, leftovers_are_what_no_document_leads_to,
                a_removed_leftover_is_gone_and_told, a_leftover_that_is_run_is_left, a_leftover_that_changed_is_left,
                what_is_no_leftover_is_left;
            reopening: what_was_written_is_there_again, what_was_removed_stays_removed,
                revisions_are_new_after_reopening, numbers_go_on_after_reopening, a_lost_lease_stays_lost;
            races: one_of_many_writers_wins, one_of_many_removals_is_done, no_update_is_lost, no_entry_is_lost,
                one_of_many_runners_holds, a_reader_sees_whole_documents, a_dropped_write_is_whole_or_nothing;
            model: every_walk_ends_as_the_model_says;
        }
    };
}

/// Every case of the contract.
pub const STORE_CASES: &[Case<Subject>] = crate::__store_cases! { crate::__table };
