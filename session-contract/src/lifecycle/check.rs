//! What is checked after each run: on what was tried, on the result, and on what is stored.

use std::collections::BTreeSet;

use session_core::decide::{Activity, Verdict, Why};
use session_core::error::RunError;
use session_core::{Asked, Recorded, ResumePolicy, Route, codec};

use super::book::Book;
use super::invariant::{Invariant, Violation, ensure};
use super::key;
use super::model::Memory;
use super::scene::{Count, Seen, Want, effective, is_resume_failure};
use super::step::{Deed, Fault};
use super::walk::{Outcome, Ran, Record, Walk, store_obstacle};

type Checked = Result<(), Violation>;

/// What was tried, whatever came of it.
pub(crate) fn attempts(ran: &Ran<'_>) -> Checked {
    let world = &ran.after.world;
    let (mailbox, policy) = (ran.run.mailbox, ran.run.policy);
    let owner = |id: &str| world.session(id).map(|session| session.mailbox);
    for attempt in &ran.attempts {
        let say = || format!("{attempt:?} for mailbox {mailbox} under {policy:?}");
        match &attempt.asked {
            Asked::Resume(id) => {
                let own = owner(id.as_str()).is_none_or(|owner| owner == mailbox);
                ensure(own, Invariant::NoSessionOfAnotherMailbox, say)?;
                ensure(policy != ResumePolicy::Never, Invariant::ThePolicyIsKept, say)?;
                let foreign = ran.before.is_other_project(id.as_str());
                ensure(!foreign || ran.run.consent, Invariant::NoOtherProjectWithoutAYes, say)?;
            }
            Asked::Fork(id) => {
                let asked = ran.run.fork && owner(id.as_str()) != Some(mailbox);
                ensure(asked, Invariant::NoSessionOfAnotherMailbox, say)?;
            }
            Asked::Fresh(_) => ensure(policy != ResumePolicy::Require, Invariant::ThePolicyIsKept, say)?,
        }
    }
    let began = ran.attempts.iter().filter(|attempt| attempt.activity != Activity::None).count();
    ensure(began <= 1, Invariant::NoPromptRunsTwice, || format!("{:#?}", ran.attempts))?;
    let fresh = ran.attempts.iter().filter(|attempt| matches!(attempt.asked, Asked::Fresh(_))).count();
    ensure(fresh <= 1, Invariant::OneFallbackAtMost, || format!("{:#?}", ran.attempts))?;
    for pair in ran.attempts.windows(2) {
        let verdict = effective(&pair[0], &ran.after);
        let after_fresh = matches!(pair[0].asked, Asked::Fresh(_));
        ensure(!after_fresh, Invariant::OneFallbackAtMost, || format!("{:#?}", ran.attempts))?;
        let began = pair[0].activity != Activity::None;
        ensure(!began, Invariant::NoPromptRunsTwice, || format!("{:#?}", ran.attempts))?;
        let cured = is_resume_failure(verdict) || verdict == Verdict::Busy;
        ensure(cured, Invariant::OnlyACureFallsBack, || format!("{verdict:?}: {:#?}", ran.attempts))?;
    }
    Ok(())
}

/// The reason that a failed resume is to be told by.
const fn reason_of(verdict: Verdict) -> Why {
    match verdict {
        Verdict::Missing => Why::SessionMissing,
        Verdict::Incompatible => Why::SessionIncompatible,
        Verdict::Busy => Why::SessionBusy,
        Verdict::Archived => Why::SessionArchived,
        Verdict::ProviderChanged => Why::ProviderDiffers,
        Verdict::Unindexed => Why::SessionUnindexed,
        Verdict::ContextOverflow => Why::ContextOverflow,
        _ => Why::ResumeUnrecognisedFailure,
    }
}

/// What the caller was told.
pub(crate) fn result(ran: &Ran<'_>, book: &Book) -> Checked {
    let Outcome::Done(result) = &ran.outcome else { return Ok(()) };
    let last = ran.attempts.last();
    let completed = last.is_some_and(|last| last.verdict == Some(Verdict::Completed));
    if let Err(error) = &**result {
        let strayed = error.why() == Some(Why::SessionReplaced) && ran.run.policy == ResumePolicy::Require;
        ensure(!completed || strayed, Invariant::RecordingSpoilsNoResult, || format!("{error:?}"))?;
        let started = !ran.attempts.is_empty();
        let says = match error {
            RunError::Failed { why, run } => {
                started && last.is_some_and(|last| fits(ran, last, *why, run.route))
            }
            RunError::Refused { .. } => !started,
            RunError::Agent(_) => ran.run.acts.iter().any(|act| act.deed == Deed::CannotStart),
            RunError::Store(_) => !started && ran.run.fork,
            _ => false,
        };
        return ensure(says, Invariant::EveryReasonIsTrue, || format!("{error:?} after {:#?}", ran.attempts));
    }
    let Ok(result) = &**result else { return Ok(()) };
    let Some(last) = last.filter(|_| completed) else {
        return Err(Violation {
            invariant: Invariant::AResumeIsTheSameConversation,
            message: format!("{result:?} of nothing"),
        });
    };
    let says = || format!("{:?} after {:#?}", result.route, ran.attempts);
    ensure(result.resumed == (result.route == Route::Resumed), Invariant::EveryReasonIsTrue, says)?;
    let reason = match (result.route, &last.asked) {
        (Route::Resumed, asked) => {
            ensure(matches!(asked, Asked::Resume(_)), Invariant::AResumeIsTheSameConversation, says)?;
            same_conversation(ran, book)?;
            true
        }
        (Route::Forked, asked) => matches!(asked, Asked::Fork(_)),
        (Route::FellBack(Why::SessionReplaced), Asked::Resume(_)) => {
            last.strays || (ran.before.copies() && last.kept_in.is_none())
        }
        (Route::Fresh(_) | Route::FellBack(_), Asked::Resume(_) | Asked::Fork(_)) => false,
        (Route::Fresh(why) | Route::FellBack(why), Asked::Fresh(_)) => match ran.attempts.as_slice() {
            [.., tried, _] => reason_of(effective(tried, &ran.after)) == why,
            _ => true,
        },
    };
    ensure(reason, Invariant::EveryReasonIsTrue, says)?;
    let named = result.session_id.as_ref().map(|id| id.as_str());
    ensure(named == last.named.as_deref(), Invariant::AResumeIsTheSameConversation, says)
}

/// Whether a failure is told as what it was.
fn fits(ran: &Ran<'_>, last: &super::world::Attempt, why: Why, route: Route) -> bool {
    let verdict = effective(last, &ran.after);
    let failed = verdict != Verdict::Completed || why == Why::SessionReplaced;
    let resumes = !matches!(last.asked, Asked::Fresh(_));
    failed && resumes == matches!(route, Route::Resumed | Route::Forked)
}

/// The conversation that answered is the one asked for, and holds every turn that somebody was told is kept.
fn same_conversation(ran: &Ran<'_>, book: &Book) -> Checked {
    let (Some(last), world) = (ran.attempts.last(), &ran.after.world) else { return Ok(()) };
    let asked = last.asked_resume().and_then(|id| ran.before.world.session(id));
    let answered = last.named.as_deref().and_then(|id| world.session(id));
    let Some(asked) = asked else {
        return Err(Violation {
            invariant: Invariant::AResumeIsTheSameConversation,
            message: format!("{last:?} of nothing"),
        });
    };
    if let Some(answered) = answered {
        let same = asked.conversation == answered.conversation && !last.strays;
        ensure(same, Invariant::AResumeIsTheSameConversation, || {
            format!("asked for {asked:?}, and {answered:?} answered")
        })?;
    }
    let fault = book.fault(world, asked.conversation, &last.before);
    ensure(fault.is_none(), Invariant::AResumeIsTheSameConversation, || format!("{fault:?} in {last:?}"))
}

/// What a memory makes of the run: the memory with what was pending settled, and what it wants.
pub(crate) fn expectation(ran: &Ran<'_>, memory: &Memory) -> (Memory, Want) {
    let mut settled = memory.clone();
    let Some(why) = store_obstacle(ran) else {
        let dropped = settled.settle_pending(&ran.before);
        let want = settled.want(&ran.before, dropped);
        return (settled, want);
    };
    let mut obstacles = BTreeSet::from([why]);
    if ran.run.policy == ResumePolicy::Never {
        obstacles.insert(Why::ResumeDisabled);
    }
    (settled, Want { target: None, obstacles })
}

/// Why the run did not resume, as far as it told.
fn told(ran: &Ran<'_>) -> Option<Why> {
    match &ran.outcome {
        Outcome::Done(result) => match &**result {
            Ok(result) => result.route.why(),
            Err(RunError::Failed { run, .. }) => run.route.why(),
            Err(RunError::Refused { why }) => Some(*why),
            Err(_) => None,
        },
        Outcome::Killed => None,
    }
}

/// Whether the run is to begin as a copy.
fn is_fork(ran: &Ran<'_>, settled: &Memory) -> bool {
    let readable = match store_obstacle(ran) {
        None => true,
        // Nobody knows then whether there is a conversation already.
        Some(Why::RecordCorrupt) => {
            ran.run.fault != Some(Fault::SetAside) || ran.run.policy != ResumePolicy::Never
        }
        Some(_) => false,
    };
    ran.run.fork && !settled.has_session() && readable
}

/// Whether what was tried first is what this memory wants.
pub(crate) fn explains(ran: &Ran<'_>, settled: &Memory, want: &Want, others: &[Memory]) -> bool {
    let why = told(ran);
    if is_fork(ran, settled) {
        return match ran.attempts.first().map(|attempt| &attempt.asked) {
            None => true,
            Some(Asked::Fork(id)) => {
                others.iter().any(|other| other.bound_id() == Some(id.as_str())) && ran.before.forks()
            }
            Some(Asked::Fresh(_) | Asked::Resume(_)) => false,
        };
    }
    match ran.attempts.first().map(|attempt| &attempt.asked) {
        Some(Asked::Resume(id)) => want.target.as_deref() == Some(id.as_str()) && want.obstacles.is_empty(),
        Some(Asked::Fresh(_)) => why.map_or(!want.obstacles.is_empty(), |why| want.obstacles.contains(&why)),
        Some(Asked::Fork(_)) => false,
        None => match &ran.outcome {
            Outcome::Done(result) if matches!(&**result, Err(RunError::Refused { .. })) => {
                ran.run.policy == ResumePolicy::Require
                    && why.is_some_and(|why| want.obstacles.contains(&why))
            }
            _ => true,
        },
    }
}

/// The invariant that is broken where no memory explains the run.
pub(crate) fn unexplained(ran: &Ran<'_>, wants: &[Want]) -> Violation {
    let first = ran.attempts.first();
    let all = |has: fn(&Want) -> bool| wants.iter().all(has);
    let invariant = match first.map(|attempt| &attempt.asked) {
        Some(Asked::Resume(id)) => {
            let same = wants.iter().any(|want| want.target.as_deref() == Some(id.as_str()));
            if same && all(|want| want.obstacles.contains(&Why::ResumeKeepsFailing)) {
                Invariant::ThreeFailuresInARowAreEnough
            } else if all(|want| !want.obstacles.is_empty()) {
                Invariant::ACondemnedSessionIsLeft
            } else {
                Invariant::AResumeIsTheSameConversation
            }
        }
        _ if wants.iter().any(|want| want.obstacles.is_empty()) => Invariant::AGoodSessionIsNeverLost,
        _ => Invariant::EveryReasonIsTrue,
    };
    let told = told(ran);
    let ends = format!("{:?}", ran.outcome);
    let message = format!("wanted one of {wants:#?}; got {first:#?}, {told:?}, {ends}");
    Violation { invariant, message }
}

/// The memories that the run may have left, given that it began as this one wants.
pub(crate) fn carried_on(ran: &Ran<'_>, memory: &Memory, settled: &Memory, want: &Want) -> Vec<Memory> {
    let unwritten = matches!(store_obstacle(ran), Some(Why::StoreUnavailable | Why::RecordNewer));
    let stays = store_obstacle(ran) == Some(Why::RecordCorrupt) && ran.run.fault == Some(Fault::SetAside);
    if unwritten || stays {
        return vec![memory.clone()];
    }
    let target = want.target.as_deref();
    let fallback = match ran.attempts.as_slice() {
        [.., tried, last] if matches!(last.asked, Asked::Fresh(_)) => {
            Some(reason_of(effective(tried, &ran.after)))
        }
        _ => None,
    };
    let whys = fallback.map_or_else(|| want.obstacles.clone(), |why| BTreeSet::from([why]));
    let conclude = |why: Option<Why>, failure: Option<Why>| {
        let last = ran.attempts.last()?;
        let seen = Seen { last, is_fallback: fallback.is_some(), why, failure };
        Some(settled.conclude(&ran.before, &ran.after, target, &seen))
    };
    let interrupted = || {
        let mut all = settled.interrupted(&ran.before, target, (&ran.attempts, &ran.issued), &whys);
        all.push(memory.clone());
        all.push(settled.clone());
        all
    };
    match &ran.outcome {
        Outcome::Killed => {
            let mut all = interrupted();
            if ran.attempts.is_empty() && want.obstacles.contains(&Why::ResumeKeepsFailing) {
                // It was refused, and died when that was written down.
                let mut refused = settled.clone();
                refused.tally(target, Count::Skipped);
                all.push(refused);
            }
            let ended = ran.attempts.last().is_some_and(|last| last.verdict.is_some());
            let other = [None, Some(Why::SessionReplaced)];
            for why in whys.iter().copied().map(Some).chain(other).filter(|_| ended) {
                let verdict = ran.attempts.last().map(|last| effective(last, &ran.after));
                let failure = verdict.filter(|verdict| *verdict != Verdict::Completed).map(reason_of);
                all.extend(conclude(why, failure));
            }
            all
        }
        Outcome::Done(result) => match &**result {
            Ok(result) if result.recorded.is_saved() => {
                conclude(result.route.why(), None).into_iter().collect()
            }
            Err(RunError::Failed { why, run }) if run.recorded.is_saved() => {
                conclude(run.route.why(), Some(*why)).into_iter().collect()
            }
            Err(RunError::Refused { why: Why::ResumeKeepsFailing }) => {
                let mut next = settled.clone();
                next.tally(target, Count::Skipped);
                let unsaved = matches!(ran.run.fault, Some(Fault::Saves | Fault::FirstSave));
                if unsaved { vec![next, memory.clone()] } else { vec![next] }
            }
            Err(RunError::Refused { .. }) => vec![settled.clone(), memory.clone()],
            Err(RunError::Agent(_)) => {
                let mut next = settled.clone();
                if want.obstacles.contains(&Why::ResumeKeepsFailing) {
                    next.tally(target, Count::Skipped);
                }
                let noted = if ran.run.fault.is_some() { interrupted() } else { vec![settled.clone()] };
                noted.into_iter().chain([next]).collect()
            }
            _ => interrupted(),
        },
    }
}

/// What is stored after the run.
pub(crate) async fn stored(walk: &Walk<'_>, ran: &Ran<'_>) -> Checked {
    let key = key(ran.run.mailbox);
    let document = match walk.inner.load(&key).await {
        Ok(stored) => stored.map(|stored| stored.document),
        Err(error) => {
            return Err(Violation {
                invariant: Invariant::WhatIsStoredCanBeRead,
                message: error.to_string(),
            });
        }
    };
    if let Record::Newer { bytes, .. } = &ran.record {
        let left = document.as_ref() == Some(bytes);
        return ensure(left, Invariant::ANewerRecordIsLeftAlone, || {
            "it was overwritten or removed".to_owned()
        });
    }
    let own = &walk.mailboxes[ran.run.mailbox];
    let Some(document) = document.filter(|_| own.record == Record::Fine) else { return Ok(()) };
    let codec::Decoded::Record(record) = codec::decode(&document, &key) else {
        let text = String::from_utf8_lossy(document.as_bytes()).into_owned();
        return Err(Violation { invariant: Invariant::WhatIsStoredCanBeRead, message: text });
    };
    let bound = record.binding.as_ref().map(|binding| binding.native_id.as_str());
    let right = own.memories.iter().any(|memory| memory.bound_id() == bound);
    ensure(right, Invariant::AGoodSessionIsNeverLost, || {
        format!("{bound:?} is bound after {:#?}, and right are {:#?}", ran.attempts, own.memories)
    })?;
    let Outcome::Done(result) = &ran.outcome else { return Ok(()) };
    let (recorded, run, route, why, session) = match &**result {
        Ok(result) => (&result.recorded, result.run, result.route, result.route.why(), None),
        Err(RunError::Failed { why, run }) => {
            (&run.recorded, run.run, run.route, Some(*why), Some(&run.session_id))
        }
        Err(_) => return Ok(()),
    };
    let expected = store_obstacle(ran).is_none_or(|why| why == Why::RecordCorrupt)
        && matches!(ran.run.fault, None | Some(Fault::Audit | Fault::FirstSave));
    ensure(!expected || recorded.is_saved(), Invariant::WhatIsStoredCanBeRead, || format!("{recorded:?}"))?;
    if !matches!(recorded, Recorded::Saved) {
        return Ok(());
    }
    let code = why.map(Why::code);
    let noted = record.last_run.as_ref().is_some_and(|last| {
        last.run == run
            && last.route == route.code()
            && last.why.as_deref() == code
            && last.ok == result.is_ok()
    });
    ensure(noted && record.in_flight.is_none(), Invariant::TheLogSaysTheSame, || {
        format!("{:?}", record.last_run)
    })?;
    let told = session.is_none_or(|session| session.as_ref().map(|id| id.as_str()) == bound);
    ensure(told, Invariant::TheLogSaysTheSame, || format!("{session:?} is told, and {bound:?} is bound"))?;
    if ran.run.fault.is_some() {
        return Ok(());
    }
    let log = walk.inner.audit(&key, None).await.unwrap_or_default();
    let kind = if result.is_ok() { "run_finished" } else { "run_failed" };
    let events: Vec<_> =
        log.iter().filter(|entry| entry.event.run == run && entry.event.kind == kind).collect();
    let same = matches!(events.as_slice(), [only] if only.event.route.as_deref() == Some(route.code())
        && only.event.why.as_deref() == code
        && only.event.after.as_ref().map(|id| id.as_str()) == bound);
    ensure(same, Invariant::TheLogSaysTheSame, || format!("{events:#?} for {route:?}, {why:?}, {bound:?}"))
}
