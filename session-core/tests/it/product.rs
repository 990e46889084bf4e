//! The whole product of the closed facts.

use session_core::decide::*;

/// Every combination that `plan` can be asked.
pub(crate) fn plan_facts() -> impl Iterator<Item = PlanFacts> {
    let sizes = [
        Policy::ALL.len(),
        RecordFact::ALL.len(),
        Support::ALL.len(),
        IdShape::ALL.len(),
        Workdir::ALL.len(),
        Reach::ALL.len(),
        Consent::ALL.len(),
        Transcript::ALL.len(),
        History::ALL.len(),
    ];
    indices(sizes).map(|ix| plan_at(&ix))
}

pub(crate) fn plan_at(ix: &[usize]) -> PlanFacts {
    PlanFacts {
        policy: Policy::ALL[ix[0]],
        record: RecordFact::ALL[ix[1]],
        support: Support::ALL[ix[2]],
        id: IdShape::ALL[ix[3]],
        workdir: Workdir::ALL[ix[4]],
        reach: Reach::ALL[ix[5]],
        consent: Consent::ALL[ix[6]],
        transcript: Transcript::ALL[ix[7]],
        history: History::ALL[ix[8]],
    }
}

/// Every combination that `next` can be asked.
pub(crate) fn attempt_facts() -> impl Iterator<Item = AttemptFacts> {
    let sizes = [
        Policy::ALL.len(),
        Attempt::ALL.len(),
        Verdict::ALL.len(),
        Activity::ALL.len(),
        Continuity::ALL.len(),
        Patience::ALL.len(),
    ];
    indices(sizes).map(|ix| attempt_at(&ix))
}

pub(crate) fn attempt_at(ix: &[usize]) -> AttemptFacts {
    AttemptFacts {
        policy: Policy::ALL[ix[0]],
        attempt: Attempt::ALL[ix[1]],
        verdict: Verdict::ALL[ix[2]],
        activity: Activity::ALL[ix[3]],
        continuity: Continuity::ALL[ix[4]],
        patience: Patience::ALL[ix[5]],
    }
}

/// Every combination that `settle` can be asked.
pub(crate) fn settle_facts() -> impl Iterator<Item = SettleFacts> {
    let sizes = [
        Attempt::ALL.len(),
        Verdict::ALL.len(),
        Activity::ALL.len(),
        Continuity::ALL.len(),
        Persisted::ALL.len(),
        Bound::ALL.len(),
        Why::ALL.len() + 1,
    ];
    indices(sizes).map(|ix| settle_at(&ix))
}

pub(crate) fn settle_at(ix: &[usize]) -> SettleFacts {
    SettleFacts {
        attempt: Attempt::ALL[ix[0]],
        verdict: Verdict::ALL[ix[1]],
        activity: Activity::ALL[ix[2]],
        continuity: Continuity::ALL[ix[3]],
        persisted: Persisted::ALL[ix[4]],
        bound: Bound::ALL[ix[5]],
        why: Why::ALL.get(ix[6]).copied(),
    }
}

/// Every combination that `adopt` can be asked.
pub(crate) fn adopt_facts() -> impl Iterator<Item = AdoptFacts> {
    indices([Leftover::ALL.len(), 2, Bound::ALL.len()]).map(|ix| adopt_at(&ix))
}

pub(crate) fn adopt_at(ix: &[usize]) -> AdoptFacts {
    AdoptFacts { leftover: Leftover::ALL[ix[0]], replaces: ix[1] == 0, bound: Bound::ALL[ix[2]] }
}

/// Every combination that `count` can be asked.
pub(crate) fn count_facts() -> impl Iterator<Item = CountFacts> {
    let sizes = [Attempt::ALL.len(), Verdict::ALL.len(), Activity::ALL.len(), Why::ALL.len() + 1];
    indices(sizes).map(|ix| count_at(&ix))
}

pub(crate) fn count_at(ix: &[usize]) -> CountFacts {
    CountFacts {
        attempt: Attempt::ALL[ix[0]],
        verdict: Verdict::ALL[ix[1]],
        activity: Activity::ALL[ix[2]],
        why: Why::ALL.get(ix[3]).copied(),
    }
}

/// All index vectors below the sizes.
fn indices<const N: usize>(sizes: [usize; N]) -> impl Iterator<Item = [usize; N]> {
    let total: usize = sizes.iter().product();
    (0..total).map(move |mut number| {
        sizes.map(|size| {
            let index = number % size;
            number /= size;
            index
        })
    })
}
