//! Every system call of a history failing in every way, with the process going on.

use rustix::io::Errno;
use session_core::error::{StoreError, StoreErrorKind};
use session_core::{LeaseOutcome, Saved};

use super::act::{Act, Answer, What, open};
use super::after;
use super::disk::{Fault, Hit, Lying, Points, Simulated};
use super::model::{Checked, Model, ensure};
use super::platter::{BASE, State};
use super::world::{Visit, told};

/// The ways in which a call goes wrong.
pub(super) fn faults() -> impl Iterator<Item = Fault> {
    let others = [Fault::Fails(Errno::INTR), Fault::Short, Fault::FillsUp, Fault::Loses];
    let errnos = [Errno::NOSPC, Errno::IO, Errno::ACCESS, Errno::MFILE];
    errnos.map(Fault::Fails).into_iter().chain(others).chain(errnos.map(Fault::FailsFromHereOn))
}

pub(super) struct Failing {
    /// Whether opening the store is looked at, which every history begins with.
    pub(super) opening: bool,
    /// How many calls failed.
    pub(super) calls: u64,
}

impl Visit for Failing {
    fn visit(&mut self, before: &State, _: &Points, model: &Model, act: &Act) -> Checked {
        if !self.opening && matches!(act.what, What::Open) {
            return Ok(());
        }
        for fault in faults() {
            for at in 0.. {
                match attempt(before, model, act, at, fault) {
                    Ok(Hit::Behind) => break,
                    Ok(Hit::Unable) => {}
                    Ok(Hit::Done | Hit::Removal) => self.calls += 1,
                    Err(error) => return Err(format!("{fault:?} at call {at} of {act:?}: {error}")),
                }
            }
        }
        Ok(())
    }
}

fn attempt(before: &State, model: &Model, act: &Act, at: u64, fault: Fault) -> Checked<Hit> {
    let disk = Simulated::new(before.clone(), Lying::No);
    let mut model = model.clone();
    let store = match act.what {
        What::Open => None,
        _ => Some(open(&disk).map_err(|error| told(&error))?),
    };
    let (locks, leftovers) = (disk.state().locks(), after::leftovers(&disk));
    let (answer, hit) = disk.with_fault(at, fault, || act.perform(&disk, store.as_ref()));
    if matches!(hit, Hit::Behind | Hit::Unable) {
        return Ok(hit);
    }
    // Interrupted or half-done calls are gone on with.
    let harmless = matches!(fault, Fault::Fails(Errno::INTR) | Fault::Short);
    let cut_off = match &answer {
        Ok(_) => None,
        Err(error) if harmless => return Err(told(error)),
        Err(error) => {
            typed(error)?;
            Some(act)
        }
    };
    match answer {
        // A record that may not be read is passed over, with a warning.
        Ok(Answer::Listed(_)) if denies(fault) => {}
        Ok(answer) => believe(&mut model, act, answer)?,
        Err(_) => {}
    }
    ensure!(disk.state().locks() == locks, "a lock stays");
    if hit != Hit::Removal && !matches!(fault, Fault::FailsFromHereOn(_)) {
        let new = after::leftovers(&disk).into_iter().find(|path| !leftovers.contains(path));
        ensure!(new.is_none(), "{new:?} stays");
    }
    after::settle(&disk, Lying::No, &model, cut_off).map_err(|error| format!("after a crash, {error}"))?;

    let again = match store {
        Some(store) => store,
        None => open(&disk).map_err(|error| format!("the next try: {}", told(&error)))?,
    };
    let unsettled = model.clone();
    after::look(&disk, &again, &mut model, cut_off)?;
    let answer = act.perform(&disk, Some(&again));
    let answer = answer.map_err(|error| format!("the next try: {}", told(&error)))?;
    // Who is refused is told what stands there, which somebody's failed write left and a crash may take back.
    let refused = matches!(answer, Answer::Saved(Saved::Refused { .. }) | Answer::Aside(None));
    believe(&mut model, act, answer).map_err(|error| format!("the next try: {error}"))?;
    let (model, cut_off) = if refused { (unsettled, cut_off) } else { (model, None) };
    after::settle(&disk, Lying::No, &model, cut_off)
        .map_err(|error| format!("after the next try and a crash, {error}"))?;
    Ok(hit)
}

fn denies(fault: Fault) -> bool {
    matches!(fault, Fault::Fails(Errno::ACCESS) | Fault::FailsFromHereOn(Errno::ACCESS))
}

/// Takes over what an answer promises; a lease ends at once.
fn believe(model: &mut Model, act: &Act, answer: Answer) -> Checked {
    model.answered(act, &answer)?;
    if let Answer::Leased(LeaseOutcome::Held(lease)) = answer {
        drop(lease);
        model.released(act.key);
    }
    Ok(())
}

/// An error says of what kind it is, where, and why.
fn typed(error: &StoreError) -> Checked {
    let kinds = [StoreErrorKind::Unavailable, StoreErrorKind::PermissionDenied];
    ensure!(kinds.contains(&error.kind()), "it is told as {:?}: {}", error.kind(), told(error));
    ensure!(error.to_string().contains(BASE), "no path in {error}");
    ensure!(std::error::Error::source(error).is_some(), "no cause of {error}");
    Ok(())
}
