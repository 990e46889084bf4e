//! What can happen, as data: every list of steps is a walk, so that a walk can be shrunk by leaving steps out.

use proptest::prelude::*;
use proptest::sample::select;
use session_core::ResumePolicy;
use session_core::decide::{Activity, Verdict};

use super::host::FOLDERS;
use super::world::VERSIONS;

/// The format of a record that nobody here can read yet.
pub(crate) const VERSIONS_OF_THE_RECORD: &str = r#"{"major":900,"minor":0}"#;

/// How many mailboxes there are.
pub(crate) const MAILBOXES: usize = 2;

/// What holds for a whole walk.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// Whether anybody looks at session files.
    pub(crate) catalog: bool,
    /// The installed version at first.
    pub(crate) version: usize,
}

/// What a session's file has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Sound,
    /// Deleted.
    Gone,
    /// There, without a turn.
    Empty,
    /// There, and no conversation.
    Damaged,
    /// There, and not to be read for now.
    Locked,
    /// In use by another process of the agent.
    Busy,
    /// In the agent's archive.
    Archived,
    /// Not in the agent's index.
    Unindexed,
    /// Of another provider than the agent is set to.
    OtherProvider,
}

impl Health {
    /// Whether the file is lost for good.
    pub(crate) const fn is_lost(self) -> bool {
        matches!(self, Self::Gone | Self::Empty | Self::Damaged)
    }
}

/// Where an attempt stops until the walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The agent has said nothing.
    Silent,
    /// It named its session.
    Named,
    /// It kept the turn.
    Kept,
}

/// In which conversation an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The one asked for.
    Own,
    /// A new one that nobody asked for.
    Stray,
    /// The one of the other mailbox, as it says; nothing is kept there.
    Foreign,
}

/// What an attempt does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Carries the turn out and keeps it.
    Work,
    /// Carries the turn out and keeps nothing.
    Forget,
    /// Fails.
    Fail { verdict: Verdict, activity: Activity, keeps: bool },
    /// Cannot be started.
    CannotStart,
    /// Stops there until the walk goes on.
    Stop(Point),
}

/// One attempt, where its session can be had; else it says why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Act {
    pub(crate) place: Place,
    pub(crate) deed: Deed,
}

impl Act {
    pub(crate) const WORK: Self = Self { place: Place::Own, deed: Deed::Work };
}

/// Where the store fails in a run, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Lease,
    Load,
    /// The first write of the run.
    FirstSave,
    /// Every write but the first.
    LaterSaves,
    Saves,
    SetAside,
    Audit,
    /// The removal of the record.
    Remove,
    /// The removal of the state dir.
    RemoveState,
    /// The runner dies at this operation of the store, before or after it takes effect.
    Death {
        at: u8,
        after: bool,
    },
}

/// What is done when an attempt stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The runner dies at once.
    Kill,
    /// The runner dies when what was heard is noted.
    KillLater,
    /// The caller cancels.
    Cancel,
    /// It goes on.
    Release,
    /// A second runner comes for the same mailbox; then it goes on.
    Rival,
}

#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) mailbox: usize,
    pub(crate) folder: usize,
    pub(crate) policy: ResumePolicy,
    pub(crate) consent: bool,
    /// As a copy of the other mailbox's conversation, where there is none yet.
    pub(crate) fork: bool,
    pub(crate) acts: Vec<Act>,
    pub(crate) fault: Option<Fault>,
    pub(crate) then: Then,
    /// How often in a row.
    pub(crate) times: u8,
}

/// A session: the mailbox, and how many of its sessions are newer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Which {
    pub(crate) mailbox: usize,
    pub(crate) back: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Run(Run),
    /// Something befalls a session's file.
    Befall(Which, Health),
    /// Somebody takes the last turn out of a session's file.
    Truncate(Which),
    /// All that can be well again is.
    HealAll,
    /// Another version is installed.
    Install(usize),
    /// A folder gets another path.
    Move(usize),
    /// A folder is removed.
    Remove(usize),
    /// A folder is where it was at first.
    PutBack(usize),
    /// The record becomes unreadable.
    Corrupt(usize),
    /// A newer version of the library writes the record.
    Upgrade(usize),
    /// That version is gone, and the record as it was.
    Downgrade(usize),
    /// The runner starts anew.
    Restart,
    /// The mailbox is closed, and the store may fail in that.
    Close(usize, Option<Fault>),
}

fn act() -> impl Strategy<Value = Act> {
    let verdicts: Vec<_> =
        Verdict::ALL.iter().copied().filter(|verdict| *verdict != Verdict::Completed).collect();
    let activity =
        prop_oneof![2 => Just(Activity::None), 1 => Just(Activity::ModelCalled), 1 => Just(Activity::Acted)];
    let telling =
        select(vec![Verdict::Missing, Verdict::Incompatible, Verdict::ContextOverflow, Verdict::Unknown]);
    let verdict = prop_oneof![1 => telling, 2 => select(verdicts)];
    let fail = (verdict, activity, any::<bool>()).prop_map(|(verdict, activity, keeps)| {
        let keeps = keeps && (activity != Activity::None || verdict == Verdict::Crashed);
        Deed::Fail { verdict, activity, keeps }
    });
    let deed = prop_oneof![
        6 => Just(Deed::Work),
        2 => Just(Deed::Forget),
        12 => fail,
        1 => Just(Deed::CannotStart),
        6 => select(vec![Point::Silent, Point::Named, Point::Kept]).prop_map(Deed::Stop),
    ];
    let place = prop_oneof![8 => Just(Place::Own), 1 => Just(Place::Stray), 1 => Just(Place::Foreign)];
    (place, deed).prop_map(|(place, deed)| Act { place, deed })
}

fn death() -> impl Strategy<Value = Fault> {
    (0..8_u8, any::<bool>()).prop_map(|(at, after)| Fault::Death { at, after })
}

fn fault() -> impl Strategy<Value = Fault> {
    let whole = [
        Fault::Lease,
        Fault::Load,
        Fault::FirstSave,
        Fault::LaterSaves,
        Fault::Saves,
        Fault::SetAside,
        Fault::Audit,
    ];
    prop_oneof![select(whole.to_vec()), death()]
}

fn close() -> impl Strategy<Value = Step> {
    let whole = [Fault::Lease, Fault::Load, Fault::SetAside, Fault::Audit, Fault::Remove, Fault::RemoveState];
    let fault =
        prop_oneof![2 => Just(None), 1 => select(whole.to_vec()).prop_map(Some), 1 => death().prop_map(Some)];
    (0..MAILBOXES, fault).prop_map(|(mailbox, fault)| Step::Close(mailbox, fault))
}

fn run() -> impl Strategy<Value = Step> {
    let policy = prop_oneof![
        6 => Just(ResumePolicy::Prefer),
        1 => Just(ResumePolicy::Require),
        1 => Just(ResumePolicy::Never),
    ];
    let acts = prop_oneof![Just(Vec::new()), prop::collection::vec(act(), 1..3)];
    let then = select(vec![Then::Kill, Then::KillLater, Then::Cancel, Then::Release, Then::Rival]);
    let mailbox = prop_oneof![4 => Just(0), 1 => Just(1_usize)];
    let fault = prop_oneof![8 => Just(None), 1 => fault().prop_map(Some)];
    let flags = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    let times = prop_oneof![9 => Just(1_u8), 1 => 3..5_u8];
    (mailbox, 0..FOLDERS, policy, flags, acts, fault, then, times).prop_map(
        |(mailbox, folder, policy, (consent, fork), acts, fault, then, times)| {
            Step::Run(Run { mailbox, folder, policy, consent, fork, acts, fault, then, times })
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let mailbox = || prop_oneof![4 => Just(0), 1 => Just(1_usize)];
    let which = || (mailbox(), 0..4_usize).prop_map(|(mailbox, back)| Which { mailbox, back });
    let health = select(vec![
        Health::Gone,
        Health::Empty,
        Health::Damaged,
        Health::Locked,
        Health::Busy,
        Health::Archived,
        Health::Unindexed,
        Health::OtherProvider,
    ]);
    prop_oneof![
        24 => run(),
        3 => (which(), health).prop_map(|(which, health)| Step::Befall(which, health)),
        1 => which().prop_map(Step::Truncate),
        2 => Just(Step::HealAll),
        3 => (0..VERSIONS.len()).prop_map(Step::Install),
        1 => (0..FOLDERS).prop_map(Step::Move),
        1 => (0..FOLDERS).prop_map(Step::Remove),
        2 => (0..FOLDERS).prop_map(Step::PutBack),
        1 => mailbox().prop_map(Step::Corrupt),
        1 => mailbox().prop_map(Step::Upgrade),
        2 => mailbox().prop_map(Step::Downgrade),
        1 => Just(Step::Restart),
        1 => close(),
    ]
}

/// Every walk.
pub(crate) fn walks() -> impl Strategy<Value = (Setup, Vec<Step>)> {
    let setup = (prop::bool::weighted(0.85), 0..VERSIONS.len())
        .prop_map(|(catalog, version)| Setup { catalog, version });
    (setup, prop::collection::vec(step(), 1..40))
}
