//! What holds in every walk, by name: each is a case of the contract.

use super::Findings;

macro_rules! invariants {
    ($($(#[$doc:meta])* $variant:ident = $name:ident;)*) => {
        /// What a walk can break.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Invariant { $($(#[$doc])* $variant,)* }

        impl Invariant {
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name),)* }
            }
        }

        $($(#[$doc])* pub(super) fn $name(findings: &Findings) {
            findings.assert(Invariant::$variant);
        })*
    };
}

invariants! {
    /// A session of one mailbox is never continued for another (P1).
    NoSessionOfAnotherMailbox = no_session_of_another_mailbox;
    /// A session of another project is continued only with an explicit yes (P1).
    NoOtherProjectWithoutAYes = no_other_project_without_a_yes;
    /// `Never` never resumes, `Require` never runs fresh (P2).
    ThePolicyIsKept = the_policy_is_kept;
    /// A run falls back once at most (P3).
    OneFallbackAtMost = one_fallback_at_most;
    /// Once the model was called, the prompt is not run again (P4, R5).
    NoPromptRunsTwice = no_prompt_runs_twice;
    /// A record of a newer version stays as it is (P5).
    ANewerRecordIsLeftAlone = a_newer_record_is_left_alone;
    /// What a fresh session would not cure never falls back (P6).
    OnlyACureFallsBack = only_a_cure_falls_back;
    /// What is reported as resumed is the conversation of this mailbox and place, with every turn of it (P7, R8).
    AResumeIsTheSameConversation = a_resume_is_the_same_conversation;
    /// Everything but plain success says why, and the reason is true (P8).
    EveryReasonIsTrue = every_reason_is_true;
    /// A store that fails never turns a good result into an error (P9).
    RecordingSpoilsNoResult = recording_spoils_no_result;
    /// A session that is sound and within reach is resumed by the next run that nothing stands against: no run that
    /// failed, no kill, no other folder or version takes it away (P10, P11, R4, R6).
    AGoodSessionIsNeverLost = a_good_session_is_never_lost;
    /// What was found to be beyond continuing is not tried again (R6).
    ACondemnedSessionIsLeft = a_condemned_session_is_left;
    /// After three failed resumes in a row there is a fresh run without a try (P12).
    ThreeFailuresInARowAreEnough = three_failures_in_a_row_are_enough;
    /// A second runner of a mailbox is told so, and nothing is run.
    OneRunnerAtATime = one_runner_at_a_time;
    /// A session is in the record as soon as the agent names it, so that a kill leaves a binding that is right (R4).
    ANamedSessionIsNoted = a_named_session_is_noted;
    /// What a runner that died has left running is ended before the next turn (R15).
    WhatADeadRunnerLeftIsEnded = what_a_dead_runner_left_is_ended;
    /// The record can be read after every run, however that ended, and says how it ended (R11).
    WhatIsStoredCanBeRead = what_is_stored_can_be_read;
    /// What is closed is forgotten, with a word in the log; closing that fails leaves all, or what the next one finishes.
    AClosedMailboxIsForgotten = a_closed_mailbox_is_forgotten;
    /// Result, record and log say the same (R7).
    TheLogSaysTheSame = the_log_says_the_same;
}

/// An invariant that a walk broke.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) invariant: Invariant,
    pub(crate) message: String,
}

/// Asserts in a walk.
pub(crate) fn ensure(
    holds: bool,
    invariant: Invariant,
    message: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { invariant, message: message() }) }
}
