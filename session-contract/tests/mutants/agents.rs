//! Adapters that break the contract.

mod sample;

use session_contract::agent::{AGENT_CASES, Subject};
use session_contract::failures;

use crate::table::{Outcome, compare};
use sample::{Fixture, Flaw};

/// A mutant: what is wrong with it, and the case that is meant to catch it.
const MUTANTS: &[(&str, &str, Flaw)] = &[
    ("calls a turn completed that it did not carry out", "a_turn_is_carried_out", Flaw::CarriesNothingOut),
    ("trims the prompt", "the_prompt_reaches_the_model_verbatim", Flaw::TrimsThePrompt),
    ("tells the sink less than the report", "the_events_are_those_of_the_report", Flaw::HidesAnEvent),
    ("finds another agent every time", "the_agent_is_the_same_every_time", Flaw::IsAnotherEveryTime),
    ("accepts anything as an id", "what_is_no_id_is_not_accepted", Flaw::AcceptsAnything),
    ("begins anew under the id asked for", "a_resume_continues_the_session", Flaw::ForgetsOnResume),
    (
        "claims that a resume copies, and it does not",
        "a_resume_continues_the_session",
        Flaw::KeepsTheIdThatItClaimsToReplace,
    ),
    ("ignores the id that was chosen", "a_chosen_id_is_taken", Flaw::DropsAChosenId),
    ("forks in the original", "a_fork_leaves_its_original", Flaw::ForksInPlace),
    ("forks where no fork is claimed", "a_fork_leaves_its_original", Flaw::ClaimsNoForkAndForks),
    (
        "begins anew where there is nothing to continue",
        "a_deleted_session_is_missing",
        Flaw::StartsAnewWhereNothingIs,
    ),
    ("calls a missing session completed", "a_deleted_session_is_missing", Flaw::CompletesWhatIsMissing),
    (
        "adopts the id of a run that failed",
        "a_failed_resume_names_no_other_session",
        Flaw::AdoptsTheIdOfAFailure,
    ),
    ("finds ids in the words of the model", "an_id_in_the_words_of_the_model_is_none", Flaw::FindsIdsInProse),
    ("makes an error of an agent that died", "a_death_in_mid_turn_is_a_verdict", Flaw::MakesAnErrorOfADeath),
    ("does not tell that the model was called", "a_death_in_mid_turn_is_a_verdict", Flaw::HidesWhatWasDone),
    ("calls a turn completed whose agent died", "a_death_in_mid_turn_is_a_verdict", Flaw::CompletesADeath),
    ("tells of a model that was not called", "a_death_at_once_is_a_verdict", Flaw::TellsWhatWasNotDone),
    ("takes silence for success", "an_end_in_silence_is_no_success", Flaw::CompletesSilence),
    (
        "has a verdict on what was not started",
        "what_cannot_be_started_is_an_error",
        Flaw::JudgesWhatWasNotStarted,
    ),
    ("has no limits", "a_limit_ends_a_turn", Flaw::HasNoLimits),
    ("is deaf to a cancel", "cancel_ends_a_turn_in_order", Flaw::IsDeafToCancel),
    ("starts what was cancelled before", "a_cancelled_turn_starts_nothing", Flaw::StartsWhatWasCancelled),
    ("leaves running what was dropped", "a_dropped_turn_leaves_nothing", Flaw::LeavesTheDropped),
    ("leaves running what a turn left", "a_turn_that_returned_leaves_nothing", Flaw::LeavesWhatIsLeft),
    ("reaps nothing", "what_a_dead_runner_left_is_ended", Flaw::ReapsNothing),
    ("reaps what is another run's", "what_a_dead_runner_left_is_ended", Flaw::ReapsEverything),
];

fn caught(make: impl Fn() -> Fixture + 'static) -> Vec<&'static str> {
    failures(AGENT_CASES, &Subject::new(async move |_| make()).still_clock(true))
}

#[test]
fn the_sample_holds_the_contract() {
    assert_eq!(caught(|| Fixture::new(Flaw::None)), [""; 0]);
    assert_eq!(caught(|| Fixture::new(Flaw::None).copying()), [""; 0]);
}

/// What cannot be staged is asserted otherwise, and never passed over.
#[test]
fn a_bare_stage_is_enough_to_catch_what_can_be_seen_there() {
    assert_eq!(caught(|| Fixture::new(Flaw::None).bare()), [""; 0]);
    for (flaw, case) in [
        (Flaw::CompletesWhatIsMissing, "a_deleted_session_is_missing"),
        (Flaw::StartsWhatWasCancelled, "cancel_ends_a_turn_in_order"),
        (Flaw::StartsWhatWasCancelled, "a_death_in_mid_turn_is_a_verdict"),
        (Flaw::StartsWhatWasCancelled, "an_end_in_silence_is_no_success"),
        (Flaw::LeavesTheDropped, "a_dropped_turn_leaves_nothing"),
        (Flaw::LeavesTheDropped, "a_turn_that_returned_leaves_nothing"),
    ] {
        let caught = caught(move || Fixture::new(flaw).bare());
        assert!(caught.contains(&case), "{flaw:?} is caught by {caught:?} alone");
    }
}

#[test]
fn every_broken_adapter_is_caught() {
    let outcome = |(mutant, meant, flaw): &(&str, &'static str, Flaw)| {
        let flaw = *flaw;
        Outcome { mutant: (*mutant).to_owned(), meant, caught: caught(move || Fixture::new(flaw)) }
    };
    let outcomes: Vec<_> = MUTANTS.iter().map(outcome).collect();
    let cases: Vec<_> = AGENT_CASES.iter().map(|case| case.name()).collect();
    compare("Adapters", &outcomes, &cases);
}
