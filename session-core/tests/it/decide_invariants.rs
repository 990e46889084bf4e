//! P1 to P12 over the whole product. Each invariant is a function over a rule, and each is shown to fail on a
//! rule that was broken on purpose.

use session_core::decide::*;

use crate::product::{adopt_facts, attempt_facts, count_facts, plan_facts, settle_facts};

type PlanRule = fn(PlanFacts) -> Plan;
type NextRule = fn(AttemptFacts) -> Next;
type SettleRule = fn(SettleFacts) -> Settlement;
type AdoptRule = fn(AdoptFacts) -> Adoption;
type CountRule = fn(CountFacts) -> Count;

fn holds<F: Copy + std::fmt::Debug>(
    mut facts: impl Iterator<Item = F>,
    ok: impl Fn(F) -> bool,
) -> Result<(), String> {
    match facts.find(|f| !ok(*f)) {
        None => Ok(()),
        Some(broken) => Err(format!("{broken:?}")),
    }
}

fn nothing_done(f: AttemptFacts) -> bool {
    f.activity == Activity::None
}

fn session_is_to_blame(verdict: Verdict) -> bool {
    use Verdict::*;
    matches!(
        verdict,
        Missing
            | Incompatible
            | Busy
            | Archived
            | ProviderChanged
            | Unindexed
            | ContextOverflow
            | Crashed
            | NoResult
            | Unknown
    )
}

/// P1: never another project's session without a yes, never an id of another agent.
fn p1(plan: PlanRule) -> Result<(), String> {
    holds(plan_facts(), |f| {
        let strange = f.workdir == Workdir::OtherProject || f.transcript == Transcript::Elsewhere;
        let forbidden = (strange && f.consent == Consent::No) || f.id == IdShape::Malformed;
        !(forbidden && plan(f) == Plan::Resume)
    })
}

/// P2: `Never` never resumes, `Require` never runs fresh.
fn p2(plan: PlanRule, next: NextRule) -> Result<(), String> {
    holds(plan_facts(), |f| {
        let wrong = match f.policy {
            Policy::Never | Policy::Rerun => !matches!(plan(f), Plan::Fresh(_)),
            Policy::Require => matches!(plan(f), Plan::Fresh(_)),
            Policy::Prefer => matches!(plan(f), Plan::Refuse(_)),
        };
        !wrong
    })?;
    holds(attempt_facts(), |f| {
        f.policy != Policy::Require || !matches!(next(f), Next::FallBack(_) | Next::AcceptAsFresh(_))
    })
}

/// P3: a fallback comes out of a resume only, so that there is at most one a run.
fn p3(next: NextRule) -> Result<(), String> {
    holds(attempt_facts(), |f| {
        f.attempt == Attempt::Resume
            || !matches!(next(f), Next::FallBack(_) | Next::Wait | Next::AcceptAsFresh(_))
    })
}

/// P4: no second attempt of any kind once the model was called.
fn p4(next: NextRule) -> Result<(), String> {
    holds(attempt_facts(), |f| nothing_done(f) || !matches!(next(f), Next::FallBack(_) | Next::Wait))
}

/// P6: trouble that a fresh session would not cure never falls back.
fn p6(next: NextRule) -> Result<(), String> {
    holds(attempt_facts(), |f| session_is_to_blame(f.verdict) || !matches!(next(f), Next::FallBack(_)))
}

/// P7: a resume that came back as another conversation is never accepted as a resume.
fn p7(next: NextRule) -> Result<(), String> {
    holds(attempt_facts(), |f| {
        !(f.attempt == Attempt::Resume && f.continuity == Continuity::Replaced && next(f) == Next::Accept)
    })
}

/// P8: failure is never accepted, success never fails but for a replaced session; by type, all else has a reason.
fn p8(next: NextRule) -> Result<(), String> {
    holds(attempt_facts(), |f| match next(f) {
        Next::Accept | Next::AcceptAsFresh(_) => f.verdict == Verdict::Completed,
        Next::Fail(why) => f.verdict != Verdict::Completed || why == Why::SessionReplaced,
        Next::FallBack(_) | Next::Wait => f.verdict != Verdict::Completed,
    })
}

/// P10: the binding is replaced only by a session that holds a turn, or a completed one nobody can look at.
fn p10(settle: SettleRule) -> Result<(), String> {
    holds(settle_facts(), |f| {
        let holds_a_turn = match f.persisted {
            Persisted::Yes => true,
            Persisted::No => false,
            Persisted::Unknown => f.verdict == Verdict::Completed,
        };
        settle(f) != Settlement::Bind || holds_a_turn
    })
}

/// P11: neither a busy session, nor an unknown failure, nor a run that failed takes a binding away that was not
/// condemned; nor does an answer from another conversation, nor a leftover that nobody saw succeed.
fn p11(settle: SettleRule, adopt: AdoptRule) -> Result<(), String> {
    holds(settle_facts(), |f| {
        let completed = f.verdict == Verdict::Completed;
        let taken = match (f.attempt, settle(f)) {
            (Attempt::Resume, Settlement::Bind) => f.continuity == Continuity::Replaced,
            (Attempt::Resume, Settlement::Poison) => {
                !matches!(f.verdict, Verdict::Incompatible | Verdict::ContextOverflow)
            }
            (_, Settlement::Bind | Settlement::KeepPending) => {
                let condemned = f.why.is_some_and(condemns);
                f.bound == Bound::Yes && (f.why == Some(Why::SessionBusy) || (!completed && !condemned))
            }
            (Attempt::Fresh | Attempt::Fallback, Settlement::Poison) => true,
            _ => false,
        };
        !taken
    })?;
    holds(adopt_facts(), |f| {
        let takes = matches!(adopt(f), Adoption::Bind | Adoption::Try);
        !(takes && f.bound == Bound::Yes && !(f.replaces && f.leftover == Leftover::Turn))
    })
}

/// P12: after three failed resumes in a row, nothing is resumed; and a resume that reached the model is none of them,
/// unless the session itself was refused.
fn p12(plan: PlanRule, count: CountRule) -> Result<(), String> {
    holds(plan_facts(), |f| f.history != History::KeepsFailing || plan(f) != Plan::Resume)?;
    holds(count_facts(), |f| {
        let refused =
            matches!(f.verdict, Verdict::Incompatible | Verdict::ContextOverflow | Verdict::Completed);
        let worked = f.attempt == Attempt::Resume && f.activity != Activity::None && !refused;
        !(worked && count(f) == Count::Failed)
    })
}

#[test]
fn every_invariant_holds() {
    p1(plan).unwrap();
    p2(plan, next).unwrap();
    p3(next).unwrap();
    p4(next).unwrap();
    p6(next).unwrap();
    p7(next).unwrap();
    p8(next).unwrap();
    p10(settle).unwrap();
    p11(settle, adopt).unwrap();
    p12(plan, count).unwrap();
}

// P5 and P9 are about writing, which no rule decides: `lifecycle::a_newer_record_is_never_overwritten` and
// `lifecycle::failing_to_record_never_spoils_a_result` hold them, each against a store that is broken on purpose.

#[test]
fn every_invariant_fails_on_a_broken_rule() {
    let broken: [(&str, Result<(), String>); 16] = [
        ("P1 another project", p1(|f| plan(PlanFacts { workdir: Workdir::Same, ..f }))),
        ("P1 malformed id", p1(|f| plan(PlanFacts { id: IdShape::WellFormed, ..f }))),
        ("P2 ignores never", p2(|f| plan(PlanFacts { policy: Policy::Prefer, ..f }), next)),
        ("P2 falls back under require", p2(plan, |f| next(AttemptFacts { policy: Policy::Prefer, ..f }))),
        ("P3 falls back from a fallback", p3(|f| next(AttemptFacts { attempt: Attempt::Resume, ..f }))),
        ("P4 forgets the model call", p4(|f| next(AttemptFacts { activity: Activity::None, ..f }))),
        (
            "P6 blames the session for a rate limit",
            p6(|f| match f.verdict {
                Verdict::RateLimited => next(AttemptFacts { verdict: Verdict::Missing, ..f }),
                _ => next(f),
            }),
        ),
        ("P7 ignores the returned id", p7(|f| next(AttemptFacts { continuity: Continuity::Kept, ..f }))),
        (
            "P8 takes a crash for success",
            p8(|f| match f.verdict {
                Verdict::Crashed => Next::Accept,
                _ => next(f),
            }),
        ),
        ("P10 binds what was not kept", p10(|f| settle(SettleFacts { persisted: Persisted::Yes, ..f }))),
        ("P11 replaces a busy session", p11(|f| settle(SettleFacts { why: None, ..f }), adopt)),
        ("P11 a failed run takes the session", p11(|f| settle(SettleFacts { bound: Bound::No, ..f }), adopt)),
        (
            "P11 binds another conversation",
            p11(
                |f| match f.continuity {
                    Continuity::Replaced => settle(SettleFacts { continuity: Continuity::Kept, ..f }),
                    _ => settle(f),
                },
                adopt,
            ),
        ),
        ("P11 adopts a trial", p11(settle, |f| adopt(AdoptFacts { replaces: true, ..f }))),
        ("P12 tries for ever", p12(|f| plan(PlanFacts { history: History::Clean, ..f }), count)),
        ("P12 counts a crash at work", p12(plan, |f| count(CountFacts { activity: Activity::None, ..f }))),
    ];
    for (name, result) in broken {
        assert!(result.is_err(), "{name}: the broken rule was not noticed");
    }
}

#[test]
fn codes_are_stable_unique_and_snake_case() {
    let mut codes: Vec<_> = Why::ALL.iter().map(|why| why.code()).collect();
    assert!(codes.iter().all(|code| code.chars().all(|c| c.is_ascii_lowercase() || c == '_')));
    for why in Why::ALL {
        assert_eq!(Why::from_code(why.code()), Some(*why));
        assert_eq!(serde_json::to_value(why).unwrap(), why.code());
    }
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Why::ALL.len());
}
