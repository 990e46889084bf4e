//! A store on a simulated disk, with the model of it beside.

use session_core::error::StoreError;
use session_core::{AuditEvent, Document, Guard, Lease, LeaseOutcome, Revision, RunId, Timestamp};

use super::act::{Act, Answer, What, open};
use super::disk::{Lying, Points, Simulated};
use super::history::{Admits, Do, HANDLES, KEYS, Step, Under};
use super::model::{Checked, Model};
use super::platter::State;
use super::survivors::Chance;
use super::{after, survivors};
use crate::FsStore;

/// What is done at every operation of a history, before its answer is believed.
pub(super) trait Visit {
    /// The disk and the model before it, what it is, and its crash points.
    fn visit(&mut self, before: &State, points: &Points, model: &Model, act: &Act) -> Checked;
}

pub(super) struct World {
    disk: Simulated,
    lying: Lying,
    /// Empty until the store was opened.
    stores: Vec<FsStore>,
    leases: [Option<Lease>; KEYS],
    model: Model,
    /// How many documents and events there were: none is like another.
    written: u32,
}

impl World {
    /// Plays a history on a new disk, from the first opening of the store on.
    pub(super) fn play(steps: &[Step], lying: Lying, visit: &mut dyn Visit) -> Checked {
        let mut world = Self {
            disk: Simulated::new(State::new(), Lying::No),
            lying,
            stores: Vec::new(),
            leases: Default::default(),
            model: Model::default(),
            written: 0,
        };
        while world.stores.len() < HANDLES {
            let store = world.act(None, &Act { key: 0, what: What::Open }, visit)?;
            world.stores.extend(store);
        }
        // It begins to lie when the store is there: what is found out is what is done with it.
        world.disk.lie(lying);
        for step in steps {
            world.step(step, visit).map_err(|error| format!("{step:?}: {error}"))?;
        }
        let nothing = Act { key: 0, what: What::Load };
        visit.visit(&world.disk.state(), &Points::of(world.disk.state()), &world.model, &nothing)
    }

    fn step(&mut self, step: &Step, visit: &mut dyn Visit) -> Checked {
        match &step.what {
            Do::Release => {
                if self.leases[step.key].take().is_some() {
                    self.model.released(step.key);
                }
            }
            Do::Reopen => {
                if let Some(store) = self.act(None, &Act { key: 0, what: What::Open }, visit)? {
                    self.stores[step.handle] = store;
                }
            }
            Do::Crash { during, point, seed } => {
                let act = self.resolve(step.key, during);
                self.crash(step.handle, &act, *point, *seed)?;
            }
            what => {
                let act = self.resolve(step.key, what);
                let store = self.stores[step.handle].clone();
                self.act(Some(&store), &act, visit)?;
            }
        }
        Ok(())
    }

    /// What a step means here and now.
    fn resolve(&mut self, key: usize, what: &Do) -> Act {
        self.written += 1;
        let what = match what {
            Do::Save(admits, under, length) => {
                let document = self.document(key, *length);
                What::Save(document, self.guard(key, *admits), self.lease(key, *under))
            }
            Do::Remove(admits) => What::Remove(self.guard(key, *admits)),
            Do::SetAside(admits) => What::SetAside(self.guard(key, *admits)),
            Do::Append(length) => What::Append(event(self.written, *length)),
            Do::Lease => What::Lease,
            Do::Audit => What::Audit,
            Do::List => What::List,
            Do::StateDir => What::StateDir,
            Do::Reopen => What::Open,
            Do::Load | Do::Release | Do::Crash { .. } => What::Load,
        };
        Act { key, what }
    }

    fn document(&self, key: usize, length: usize) -> Document {
        let mut bytes = format!("{key}:{}:", self.written).into_bytes();
        bytes.resize(bytes.len() + length, b'.');
        Document::new(bytes)
    }

    fn guard(&self, key: usize, admits: Admits) -> Guard {
        let slot = &self.model.keys[key];
        let current = slot.revision();
        match admits {
            Admits::Anything => Guard::Any,
            Admits::Nothing => Guard::Absent,
            Admits::Current => current.cloned().map_or(Guard::Absent, Guard::Revision),
            Admits::Old => {
                let old = slot.revisions.iter().rev().find(|revision| Some(*revision) != current);
                Guard::Revision(old.cloned().unwrap_or_else(|| Revision::new("1-0")))
            }
        }
    }

    fn lease(&self, key: usize, under: Under) -> Option<Lease> {
        match under {
            Under::Nothing => None,
            Under::Held => self.leases[key].clone(),
            Under::Lost => {
                let latest = self.model.keys[key].fence();
                (latest > 0).then(|| Lease::new(latest - 1, ()))
            }
        }
    }

    /// Does it, has it visited, and believes the answer. Says the store that was opened.
    fn act(&mut self, store: Option<&FsStore>, act: &Act, visit: &mut dyn Visit) -> Checked<Option<FsStore>> {
        let before = self.disk.state();
        let (answer, points) = self.disk.record(|| act.perform(&self.disk, store));
        visit.visit(&before, &points, &self.model, act)?;
        let answer = answer.map_err(|error| told(&error))?;
        self.model.answered(act, &answer)?;
        match answer {
            Answer::Leased(LeaseOutcome::Held(lease)) => self.leases[act.key] = Some(lease),
            Answer::Opened(store) => return Ok(Some(store)),
            _ => {}
        }
        Ok(None)
    }

    /// Cuts an operation off somewhere, and goes on with what is left.
    fn crash(&mut self, handle: usize, act: &Act, point: usize, seed: u64) -> Checked {
        let (answer, mut points) = self.disk.record(|| act.perform(&self.disk, Some(&self.stores[handle])));
        drop(answer);
        points.states.push(self.disk.state());
        let state = points.states.swap_remove(point % points.states.len());
        let mut chance = Chance::new(seed);
        let keep: Vec<bool> = survivors::any(&state, &mut chance);
        self.leases = Default::default();
        self.model.everybody_died();
        self.disk = Simulated::new(state.crashed(|change| keep[change]), self.lying);
        for store in &mut self.stores {
            *store = open(&self.disk).map_err(|error| told(&error))?;
        }
        after::look(&self.disk, &self.stores[0], &mut self.model, Some(act))?;
        self.model.crashed();
        Ok(())
    }
}

pub(super) fn event(number: u32, length: usize) -> AuditEvent {
    let run = RunId::new(uuid::Uuid::from_u128(u128::from(number)));
    let mut event = AuditEvent::new(Timestamp::EPOCH, run, "run_finished");
    event.detail = Some("-".repeat(length));
    event
}

/// An error with all its causes.
pub(super) fn told(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
