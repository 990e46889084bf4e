//! An independent reading of the rules: lists of rows, first match wins, written from the design and not from
//! the functions.

use session_core::decide::*;

use crate::product::{attempt_facts, plan_facts, settle_facts};

type PlanRow = (fn(&PlanFacts) -> bool, Why);

/// What stands against a resume, in the order in which a caller should hear it.
const OBSTACLES: &[PlanRow] = &[
    (|f| f.policy == Policy::Never, Why::ResumeDisabled),
    (|f| f.policy == Policy::Rerun, Why::RecipeRerun),
    (|f| f.record == RecordFact::Unavailable, Why::StoreUnavailable),
    (|f| f.record == RecordFact::Newer, Why::RecordNewer),
    (|f| f.record == RecordFact::Corrupt, Why::RecordCorrupt),
    (|f| [RecordFact::Absent, RecordFact::Closed].contains(&f.record), Why::NoPriorSession),
    (|f| f.support == Support::AgentCannot, Why::AgentCannotResume),
    (|f| f.support == Support::VersionCannot, Why::VersionCannotResume),
    (|f| f.id == IdShape::Malformed, Why::IdMalformed),
    (|f| f.workdir == Workdir::OtherProject && f.consent == Consent::No, Why::ProjectDiffers),
    (|f| f.history == History::Poisoned, Why::LastRunPoisoned),
    (|f| f.history == History::KeepsFailing, Why::ResumeKeepsFailing),
    (|f| f.history == History::Expired, Why::Expired),
    (|f| f.history == History::TooLarge, Why::TooLarge),
    (|f| f.transcript == Transcript::OtherHome, Why::HomeDiffers),
    (
        |f| {
            f.record == RecordFact::Pending
                && [Transcript::Missing, Transcript::Empty].contains(&f.transcript)
        },
        Why::SessionNotStarted,
    ),
    (|f| f.transcript == Transcript::Missing, Why::SessionMissing),
    (|f| f.transcript == Transcript::Empty, Why::SessionEmpty),
    (|f| f.transcript == Transcript::Damaged, Why::SessionDamaged),
    (|f| f.transcript == Transcript::Unreadable, Why::SessionUnreadable),
    (|f| f.transcript == Transcript::Elsewhere && f.consent == Consent::No, Why::ProjectDiffers),
    (|f| f.workdir == Workdir::Gone && f.reach != Reach::Anywhere, Why::WorktreeGone),
    (
        |f| {
            let near_enough: &[Workdir] = match f.reach {
                Reach::SameFolder => &[Workdir::Same],
                Reach::Repository => &[Workdir::Same, Workdir::SameRepository],
                Reach::Anywhere => Workdir::ALL,
            };
            !near_enough.contains(&f.workdir)
        },
        Why::WorkdirDiffers,
    ),
];

#[test]
fn plan_agrees_with_the_rows() {
    let mut used = vec![0_usize; OBSTACLES.len()];
    for facts in plan_facts() {
        let row = OBSTACLES.iter().position(|(applies, _)| applies(&facts));
        let expected = match row {
            None => Plan::Resume,
            Some(row) => {
                used[row] += 1;
                let why = OBSTACLES[row].1;
                if facts.policy == Policy::Require { Plan::Refuse(why) } else { Plan::Fresh(why) }
            }
        };
        assert_eq!(plan(facts), expected, "{facts:?}");
    }
    assert!(used.iter().all(|count| *count > 0), "a row that never applies: {used:?}");
}

/// What a fallback would be called, for the failures that a fresh session may cure.
const CURABLE: &[(Verdict, Why)] = &[
    (Verdict::Missing, Why::SessionMissing),
    (Verdict::Incompatible, Why::SessionIncompatible),
    (Verdict::Busy, Why::SessionBusy),
    (Verdict::Archived, Why::SessionArchived),
    (Verdict::ProviderChanged, Why::ProviderDiffers),
    (Verdict::Unindexed, Why::SessionUnindexed),
    (Verdict::ContextOverflow, Why::ContextOverflow),
    (Verdict::Crashed, Why::ResumeUnrecognisedFailure),
    (Verdict::NoResult, Why::ResumeUnrecognisedFailure),
    (Verdict::Unknown, Why::ResumeUnrecognisedFailure),
];

/// What a failure is called as such.
const FAILURES: &[(Verdict, Why)] = &[
    (Verdict::Missing, Why::SessionMissing),
    (Verdict::Incompatible, Why::SessionIncompatible),
    (Verdict::Busy, Why::SessionBusy),
    (Verdict::Archived, Why::SessionArchived),
    (Verdict::ProviderChanged, Why::ProviderDiffers),
    (Verdict::Unindexed, Why::SessionUnindexed),
    (Verdict::Unauthenticated, Why::Unauthenticated),
    (Verdict::RateLimited, Why::RateLimited),
    (Verdict::Transient, Why::TransientFailure),
    (Verdict::ContextOverflow, Why::ContextOverflow),
    (Verdict::Misconfigured, Why::AgentMisconfigured),
    (Verdict::Crashed, Why::AgentCrashed),
    (Verdict::NoResult, Why::NoResult),
    (Verdict::TimedOut, Why::TimedOut),
    (Verdict::Cancelled, Why::Cancelled),
    (Verdict::LimitReached, Why::LimitReached),
    (Verdict::Unknown, Why::UnrecognisedFailure),
];

fn look_up(table: &[(Verdict, Why)], verdict: Verdict) -> Option<Why> {
    table.iter().find(|(row, _)| *row == verdict).map(|(_, why)| *why)
}

#[test]
fn next_agrees_with_the_rows() {
    for facts in attempt_facts() {
        let resumed = facts.attempt == Attempt::Resume;
        let untouched = resumed && facts.activity == Activity::None;
        let cure = look_up(CURABLE, facts.verdict).filter(|_| untouched);
        let replaced = resumed && facts.continuity == Continuity::Replaced;
        let required = facts.policy == Policy::Require;
        let expected = match (facts.verdict, cure) {
            (Verdict::Completed, _) if replaced && required => Next::Fail(Why::SessionReplaced),
            (Verdict::Completed, _) if replaced => Next::AcceptAsFresh(Why::SessionReplaced),
            (Verdict::Completed, _) => Next::Accept,
            (Verdict::Busy, Some(_)) if facts.patience == Patience::Left => Next::Wait,
            (_, Some(why)) if required => Next::Fail(why),
            (_, Some(why)) => Next::FallBack(why),
            (verdict, None) => Next::Fail(look_up(FAILURES, verdict).unwrap()),
        };
        assert_eq!(next(facts), expected, "{facts:?}");
    }
}

#[test]
fn a_text_is_told_again_unless_it_is_known_to_be_held() {
    for telling in Telling::ALL {
        for grown in Grown::ALL {
            // What a session began with is in it, where it can be continued at all.
            let unknown = *grown == Grown::Unknown && *telling == Telling::AtItsBeginning;
            let expected = *telling != Telling::Never && (*grown == Grown::Yes || unknown);
            assert_eq!(holds(*telling, *grown), expected, "{telling:?} {grown:?}");
        }
    }
}

#[test]
fn a_session_that_is_there_is_not_missing() {
    for verdict in Verdict::ALL {
        for transcript in Transcript::ALL {
            let there =
                matches!(transcript, Transcript::Present | Transcript::Unreadable | Transcript::OtherHome);
            let lost_its_way = *verdict == Verdict::Missing && there;
            let expected = if lost_its_way { Verdict::Unindexed } else { *verdict };
            assert_eq!(weigh(*verdict, *transcript), expected, "{verdict:?} {transcript:?}");
        }
    }
}

type SettleRow = (fn(&SettleFacts) -> bool, Settlement);

fn continued(facts: &SettleFacts) -> bool {
    facts.attempt == Attempt::Resume
}

fn holds_a_turn(facts: &SettleFacts) -> bool {
    facts.persisted == Persisted::Yes
        || (facts.persisted == Persisted::Unknown && facts.verdict == Verdict::Completed)
}

/// What becomes of the session that the last attempt ran in; the first row that applies.
const SETTLEMENTS: &[SettleRow] = &[
    // The provider refused what the session holds: not again. It stays where it is, marked.
    (
        |f| {
            let refused = [Verdict::Incompatible, Verdict::ContextOverflow].contains(&f.verdict);
            continued(f) && refused && f.activity != Activity::None
        },
        Settlement::Poison,
    ),
    // What holds no turn is not worth a binding. Where there is no other, the next run looks again.
    (
        |f| !holds_a_turn(f) && !continued(f) && f.verdict != Verdict::Completed && f.bound == Bound::No,
        Settlement::KeepPending,
    ),
    (|f| !holds_a_turn(f), Settlement::KeepBinding),
    // A copy holds what the original held.
    (|f| continued(f) && f.continuity == Continuity::Renamed, Settlement::Bind),
    // A resume that failed leaves things as they were.
    (|f| continued(f) && f.verdict != Verdict::Completed, Settlement::KeepBinding),
    (|f| continued(f) && f.continuity == Continuity::Replaced, Settlement::SetAside),
    (continued, Settlement::Bind),
    // A fresh session where there is none.
    (|f| f.bound == Bound::No, Settlement::Bind),
    // Beside one that is only out of reach.
    (
        |f| {
            let later = [
                Why::SessionBusy,
                Why::SessionUnreadable,
                Why::SessionArchived,
                Why::SessionUnindexed,
                Why::ProviderDiffers,
                Why::VersionCannotResume,
                Why::AgentCannotResume,
            ];
            f.why.is_some_and(|why| later.contains(&why))
        },
        Settlement::SetAside,
    ),
    // In the place of one that cannot be continued, or by a turn that was carried out.
    (|f| f.why.is_some_and(condemns) || f.verdict == Verdict::Completed, Settlement::Bind),
    (|_| true, Settlement::SetAside),
];

#[test]
fn settle_agrees_with_the_rows() {
    let mut used = vec![0_usize; SETTLEMENTS.len()];
    for facts in settle_facts() {
        let row = SETTLEMENTS.iter().position(|(applies, _)| applies(&facts)).unwrap();
        used[row] += 1;
        assert_eq!(settle(facts), SETTLEMENTS[row].1, "{facts:?}");
    }
    assert!(used.iter().all(|count| *count > 0), "a row that never applies: {used:?}");
}
