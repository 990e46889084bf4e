//! The contract of a [`Checkpointer`]: what a checkpoint covers and names, what going back touches, and what is left of
//! both when others edit, a key is not the owner, the store is opened again, or what it holds is damaged.
//!
//! The suite makes trees in folders of its own, reads them with a reader of its own, and compares byte for byte and mode for
//! mode. What a checkpointer does not do is a claim of its [`Subject`]; the case then asserts what holds all the same.

mod back;
mod covers;
mod damage;
mod edit;
mod keys;
mod kinds;
mod left_out;
mod meanwhile;
mod model;
mod moments;
mod paths;
mod process;
mod reading;
mod reopening;
mod repository;
mod stage;
mod step;
mod tree;
mod work;

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use session_core::{CheckpointId, Checkpointer};

use crate::agent::Cannot;
use crate::{Case, Scratch};

/// What is done to a checkpoint behind the back of its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// What tells that the checkpoint is there loses its second half.
    Cut,
    /// Nothing is left of it but its name.
    Emptied,
    /// The content of the checkpoint's files becomes another, wherever it lies.
    Content,
    /// Something lies there as a process leaves it that was killed while it took a checkpoint.
    Leftover,
}

type Later<T> = Pin<Box<dyn Future<Output = T>>>;
type Open = dyn Fn(Rc<Scratch>) -> Later<Arc<dyn Checkpointer>>;
type OnDamage = dyn Fn(Rc<Scratch>, CheckpointId, Damage) -> Later<Result<(), Cannot>>;
type Home = dyn Fn(&Path) -> PathBuf;

/// A checkpointer to try.
pub struct Subject {
    open: Box<Open>,
    damage: Option<Box<OnDamage>>,
    home: Option<Box<Home>>,
    process: Option<String>,
    covers_ignored: bool,
    sees_backdated: bool,
    file_limit: Option<u64>,
    walks: u32,
    seed: Option<u64>,
    regressions: Option<PathBuf>,
    root: PathBuf,
    same: bool,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("walks", &self.walks).finish_non_exhaustive()
    }
}

impl Subject {
    /// The checkpointer that this opens, which keeps everything in [`Scratch::dir`] or below: a new one in a new scratch, the
    /// same one in the same. `root` is where relative paths of the settings begin.
    pub fn new<C: Checkpointer>(
        open: impl AsyncFn(&Scratch) -> C + 'static,
        root: impl Into<PathBuf>,
    ) -> Self {
        let open = Rc::new(open);
        let open = move |scratch: Rc<Scratch>| -> Later<Arc<dyn Checkpointer>> {
            let open = open.clone();
            Box::pin(async move { Arc::new(open(&scratch).await) as Arc<dyn Checkpointer> })
        };
        Self {
            open: Box::new(open),
            damage: None,
            home: None,
            process: None,
            covers_ignored: false,
            sees_backdated: true,
            file_limit: None,
            walks: 32,
            seed: None,
            regressions: None,
            root: root.into(),
            same: false,
        }
    }

    /// How the suite damages a checkpoint that lies in a scratch. What cannot be done, the hook says ([`Cannot`]). Without it,
    /// files of the store are damaged one by one, whatever they are, and no more is asserted than that no content is wrong.
    #[must_use]
    pub fn damage(
        mut self,
        hook: impl AsyncFn(&Scratch, CheckpointId, Damage) -> Result<(), Cannot> + 'static,
    ) -> Self {
        let hook = Rc::new(hook);
        self.damage = Some(Box::new(move |scratch, id, damage| {
            let hook = hook.clone();
            Box::pin(async move { hook(&scratch, id, damage).await })
        }));
        self
    }

    /// The folder that the checkpointer opened in such a scratch takes for a home. Without it, that of the user who runs the
    /// tests.
    #[must_use]
    pub fn home(mut self, home: impl Fn(&Path) -> PathBuf + 'static) -> Self {
        self.home = Some(Box::new(home));
        self
    }

    /// The test that plays another process: the path of a test of this program that asserts the case
    /// `a_private_file_is_private_at_every_moment`, the name of the crate first.
    /// [`checkpoint_contract!`](crate::checkpoint_contract) says it. Without it, no other process is started.
    #[must_use]
    pub fn process(mut self, test: &str) -> Self {
        self.process = test.split_once("::").map(|(_, path)| path.to_owned());
        self
    }

    /// Whether what an ignore rule of git names is covered all the same; it is not by default.
    #[must_use]
    pub const fn covers_ignored(mut self, covers: bool) -> Self {
        self.covers_ignored = covers;
        self
    }

    /// Whether a change is seen that leaves the size and the time of a file as they were; it is by default.
    #[must_use]
    pub const fn sees_backdated(mut self, sees: bool) -> Self {
        self.sees_backdated = sees;
        self
    }

    /// The size in bytes above which a file is not covered; `None`, the default: there is none.
    #[must_use]
    pub const fn file_limit(mut self, limit: Option<u64>) -> Self {
        self.file_limit = limit;
        self
    }

    /// How many random walks are compared with the model: 32 by default, or as `PROPTEST_CASES` says.
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

    /// The same walks every time, and nothing is shrunk: for those who test the suite itself.
    #[must_use]
    pub const fn always_the_same(mut self) -> Self {
        self.same = true;
        self
    }
}

/// Makes tests of the cases: `checkpoint_contract!(name, open)`, where `open` is an `async fn(&Scratch) -> Checkpointer` that
/// keeps everything in `scratch.dir()`.
///
/// `name` is the name of the module that the tests stand in. Every setting is a method of
/// [`Subject`](crate::checkpoint::Subject), as in `checkpoint_contract!(mine, open, covers_ignored = true, walks = 64)`.
#[macro_export]
macro_rules! checkpoint_contract {
    ($name:ident, $open:expr $(, $setting:ident = $value:expr)* $(,)?) => {
        fn $name() -> Box<$crate::checkpoint::Subject> {
            let subject = $crate::checkpoint::Subject::new($open, env!("CARGO_MANIFEST_DIR"))
                .process(concat!(
                    module_path!(), "::", stringify!($name), "::a_private_file_is_private_at_every_moment"
                ));
            Box::new(subject$(.$setting($value))*)
        }
        $crate::__checkpoint_cases! { $crate::__tests $name $crate::checkpoint::CHECKPOINT_CASES }
    };
}

/// The list of the cases: the one place where they are named.
#[doc(hidden)]
#[macro_export]
macro_rules! __checkpoint_cases {
    ($krate:tt :: $then:ident $($with:tt)*) => {
        $krate::$then! { [$($with)*]
            covers: a_tree_comes_back, a_checkpoint_tells_its_tree, shell_edits_are_taken_back,
                an_empty_folder_comes_back, names_of_any_bytes_come_back, a_backdated_change_is_seen,
                known_changes_are_enough;
            kinds: modes_come_back, a_change_of_mode_is_told, setuid_stays_off, links_come_back_as_links,
                what_stands_at_a_path_changes_its_kind;
            left_out: what_is_no_file_is_named, what_is_too_large_is_named, what_may_not_be_read_is_named,
                what_is_ignored_is_named, what_is_left_out_by_now_is_told, a_nested_repository_is_covered,
                the_store_is_not_covered, a_home_is_refused;
            paths: only_the_given_paths_are_touched, a_hard_link_keeps_its_content, nothing_goes_through_a_link,
                nothing_outside_is_touched, every_path_is_told;
            meanwhile: what_changed_meanwhile_is_left, what_is_there_already_is_done,
                a_folder_with_something_new_is_left, what_somebody_else_made_is_kept;
            back: a_restore_is_taken_back, a_dropped_restore_is_finished, a_dropped_take_is_whole_or_nothing;
            reading: a_content_is_read_as_it_was, a_diff_tells_what_changed, a_list_is_in_order;
            reopening: what_was_taken_is_there_again, an_id_is_never_used_again, a_failed_take_heals,
                what_is_taken_at_once_is_whole;
            keys: no_key_sees_anothers, what_was_forgotten_is_gone, forgetting_takes_nothing_from_the_kept,
                two_trees_are_apart;
            damage: damage_is_never_wrong_content, a_damaged_checkpoint_is_listed_as_such;
            repository: the_top_of_a_tree_is_found, nothing_is_written_by_looking, the_repository_is_as_it_was,
                hooks_and_filters_do_not_run, the_store_is_private;
            process: a_private_file_is_private_at_every_moment, modes_come_back_under_any_umask;
            model: every_walk_ends_as_the_model_says;
        }
    };
}

/// Every case of the contract.
pub const CHECKPOINT_CASES: &[Case<Subject>] = crate::__checkpoint_cases! { crate::__table };
