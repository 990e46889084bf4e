//! What a mailbox has to remember, in the fewest words: the session in force, those before it, and one that may be
//! coming. After a kill or a write that failed nobody knows how far the record got, so the model holds every memory that
//! is right, and what is seen later tells them apart.

use std::collections::BTreeSet;

use session_core::decide::{Activity, Verdict, Why};
use session_core::{Asked, ResumePolicy};

use super::scene::{Count, Scene, Seen, Want, condemns, count, effective, only_away};
use super::step::Health;
use super::world::Attempt;

/// After so many resumes in a row that failed, there is a fresh run without a try.
const ENOUGH: u8 = 3;

/// A session that the mailbox knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Known {
    pub(crate) id: String,
    /// Resumes in a row that failed.
    row: u8,
    /// It was found that it cannot be continued.
    over: bool,
    /// Nobody could tell whether it holds a turn.
    unsure: bool,
}

/// How a session came to the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It was in force.
    Left,
    /// It never was.
    Aside,
}

/// A session whose run nobody saw end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    id: String,
    replaces: bool,
    why: Option<Why>,
}

/// What a mailbox remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Memory {
    bound: Option<Known>,
    past: Vec<(Known, Standing)>,
    pending: Option<Pending>,
}

impl Memory {
    pub(crate) fn has_session(&self) -> bool {
        self.bound.is_some()
    }

    pub(crate) fn bound_id(&self) -> Option<&str> {
        self.bound.as_ref().map(|known| known.id.as_str())
    }

    fn known(id: &str) -> Known {
        Known { id: id.to_owned(), row: 0, over: false, unsure: false }
    }

    fn in_past(&self, id: &str) -> Option<&Known> {
        self.past.iter().map(|(known, _)| known).find(|known| known.id == id)
    }

    fn is_about_binding(&self, target: Option<&str>) -> bool {
        target.is_none() || target == self.bound_id()
    }

    /// What becomes of a session whose run nobody saw end, and why it is nothing, where it is nothing.
    pub(crate) fn settle_pending(&mut self, scene: &Scene) -> Option<Why> {
        let pending = self.pending.take()?;
        let holds = match scene.look(&pending.id) {
            None | Some(Health::Locked) => None,
            Some(Health::Damaged) => return Some(Why::SessionDamaged),
            Some(health) if health.is_lost() => return Some(Why::SessionNotStarted),
            Some(_) => Some(()),
        };
        match (holds, &self.bound) {
            (Some(()), None) => self.bind(&pending.id, pending.why, None, scene),
            (Some(()), Some(_)) if pending.replaces => self.bind(&pending.id, pending.why, None, scene),
            (None, None) => self.bound = Some(Known { unsure: true, ..Self::known(&pending.id) }),
            (_, Some(_)) if self.in_past(&pending.id).is_none() => {
                self.past.push((Self::known(&pending.id), Standing::Aside));
            }
            (_, Some(_)) => {}
        }
        None
    }

    /// The sessions that a run here may go back to: the one that was last in force here, then those that came beside it
    /// since.
    fn formers(&self, scene: &Scene) -> Vec<&Known> {
        let mut aside = Vec::new();
        for (known, standing) in self.past.iter().rev().filter(|(known, _)| scene.began_here(&known.id)) {
            match standing {
                Standing::Aside => aside.push(known),
                Standing::Left => {
                    aside.insert(0, known);
                    break;
                }
            }
        }
        aside.into_iter().filter(|known| !known.over).collect()
    }

    /// What the run has to do, once what was pending is settled.
    pub(crate) fn want(&self, scene: &Scene, dropped: Option<Why>) -> Want {
        let mut obstacles = BTreeSet::new();
        if scene.policy == ResumePolicy::Never {
            obstacles.insert(Why::ResumeDisabled);
        }
        obstacles.extend(scene.cannot().filter(|_| self.bound.is_some() || dropped.is_some()));
        let Some(bound) = &self.bound else {
            obstacles.insert(dropped.unwrap_or(Why::NoPriorSession));
            return Want { target: None, obstacles };
        };
        let away = scene.away(&bound.id);
        let there = |known: &&Known| scene.look(&known.id).is_some_and(|health| !health.is_lost());
        let former =
            self.formers(scene).into_iter().find(there).filter(|_| away.is_some() && obstacles.is_empty());
        let target = former.unwrap_or(bound);
        obstacles.extend(scene.away(&target.id));
        if target.over {
            obstacles.insert(Why::LastRunPoisoned);
        }
        if target.row >= ENOUGH {
            obstacles.insert(Why::ResumeKeepsFailing);
        }
        obstacles.extend(match scene.look(&target.id) {
            Some(Health::Gone | Health::Empty) if target.unsure => Some(Why::SessionNotStarted),
            Some(Health::Gone) => Some(Why::SessionMissing),
            Some(Health::Empty) => Some(Why::SessionEmpty),
            Some(Health::Damaged) => Some(Why::SessionDamaged),
            Some(Health::Locked) => Some(Why::SessionUnreadable),
            _ => None,
        });
        Want { target: Some(target.id.clone()), obstacles }
    }

    fn bind(&mut self, id: &str, why: Option<Why>, target: Option<&str>, scene: &Scene) {
        let condemned = why.is_some_and(condemns);
        let old = self.bound.take();
        let elsewhere = old.as_ref().is_some_and(|old| {
            scene.began(&old.id).map(|began| &began.path) != scene.began(id).map(|began| &began.path)
        });
        let former = target.and_then(|target| self.in_past(target)).cloned();
        let row = match (&former, &old) {
            (Some(former), _) if former.id == id => former.row,
            (Some(former), _) => former.row.min(ENOUGH - 1),
            (None, Some(old)) if old.id == id => old.row,
            (None, _) if elsewhere || why == Some(Why::ResumeDisabled) => 0,
            (None, old) => old.as_ref().map_or(0, |old| old.row.min(ENOUGH - 1)),
        };
        self.past.retain(|(known, _)| known.id != id);
        if let Some(mut old) = old.filter(|old| old.id != id) {
            old.over |= condemned && target.is_none_or(|target| target == old.id);
            self.past.push((old, Standing::Left));
        }
        for (known, _) in &mut self.past {
            known.over |= condemned && Some(known.id.as_str()) == target;
        }
        self.bound = Some(Known { row, ..Self::known(id) });
    }

    fn poison(&mut self, id: &str) {
        let past = self.past.iter_mut().map(|(known, _)| known);
        for known in past.chain(self.bound.as_mut()).filter(|known| known.id == id) {
            known.over = true;
        }
    }

    /// What the memory has become after a run that ended and was recorded.
    pub(crate) fn conclude(
        &self,
        scene: &Scene,
        after: &Scene,
        target: Option<&str>,
        seen: &Seen<'_>,
    ) -> Self {
        let mut next = Self { pending: None, ..self.clone() };
        let last = seen.last;
        let verdict = effective(last, after);
        let completed = verdict == Verdict::Completed;
        let chosen = match &last.asked {
            Asked::Fresh(id) => id.as_ref().map(|id| id.as_str().to_owned()),
            Asked::Resume(id) => Some(id.as_str().to_owned()),
            Asked::Fork(_) => None,
        };
        let ran = last.named.clone().or(chosen);
        let resumed = last.asked_resume();
        let silent = !completed && last.activity == Activity::None;
        let kept = match after.catalog {
            false => completed,
            true if silent && resumed.is_some() => false,
            true => {
                ran.is_some()
                    && last.kept_in == ran
                    && after
                        .world
                        .session(ran.as_deref().unwrap_or(""))
                        .is_some_and(super::world::Session::shows_turns)
            }
        };
        let before = next.bound_id().map(str::to_owned);
        let ruined = matches!(verdict, Verdict::Incompatible | Verdict::ContextOverflow)
            && last.activity != Activity::None;
        match (resumed, ran) {
            (Some(asked), _) if ruined => {
                if !last.strays || scene.copies() {
                    next.poison(asked);
                }
            }
            (Some(_), _) if last.strays => {}
            (None, Some(ran)) if matches!(last.asked, Asked::Fork(_)) => {
                if kept && !ruined {
                    next.bind(&ran, None, None, after);
                }
            }
            (Some(asked), Some(ran)) if ran == asked => {
                if completed && kept {
                    next.bind(&ran, None, target, after);
                }
            }
            (Some(_), Some(ran)) => {
                if kept {
                    next.bind(&ran, None, target, after);
                }
            }
            (None, Some(ran)) => next.start(&ran, (completed, kept), target, seen.why, after),
            (_, None) => {}
        }
        let rebound = next.bound_id() != before.as_deref();
        next.tally(target.filter(|_| !rebound), count(seen, verdict));
        next
    }

    /// A new session came of the run.
    fn start(
        &mut self,
        ran: &str,
        (completed, kept): (bool, bool),
        target: Option<&str>,
        why: Option<Why>,
        after: &Scene,
    ) {
        let other = self.bound_id().is_some_and(|bound| bound != ran);
        let condemned = why.is_some_and(condemns) && self.is_about_binding(target);
        let in_force = match (other, completed) {
            (false, _) => true,
            (true, true) => !why.is_some_and(only_away),
            (true, false) => condemned,
        };
        match (kept, in_force) {
            (true, true) => self.bind(ran, why, target, after),
            (true, false) if self.in_past(ran).is_none() => {
                self.past.push((Self::known(ran), Standing::Aside))
            }
            (true, false) => {}
            (false, _) if completed || other => {}
            (false, _) => self.pending = Some(Pending { id: ran.to_owned(), replaces: condemned, why }),
        }
    }

    /// Counts resumes that failed in a row.
    pub(crate) fn tally(&mut self, target: Option<&str>, count: Count) {
        let past =
            self.past.iter_mut().map(|(known, _)| known).find(|known| Some(known.id.as_str()) == target);
        let Some(known) = past.or(self.bound.as_mut()) else { return };
        known.row = match count {
            Count::Worked => 0,
            Count::Failed => known.row.saturating_add(1),
            Count::Skipped => ENOUGH - 1,
            Count::Silent => known.row,
        };
    }

    /// Every memory that a run may have left that nobody saw end: what it noted of an attempt, or of one that it was
    /// about to make under one of these ids, may be there or not.
    pub(crate) fn interrupted(
        &self,
        scene: &Scene,
        target: Option<&str>,
        (attempts, issued): (&[Attempt], &[String]),
        whys: &BTreeSet<Why>,
    ) -> Vec<Self> {
        let mut all = vec![Self { pending: None, ..self.clone() }];
        let mut note = |id: &str, replaces: bool, why: Option<Why>| {
            let pending = Some(Pending { id: id.to_owned(), replaces, why });
            all.push(Self { pending, ..self.clone() });
        };
        for id in issued {
            for why in whys {
                note(id, condemns(*why) && self.is_about_binding(target), Some(*why));
            }
            note(id, false, None);
        }
        for attempt in attempts {
            let Some(named) = attempt.named.as_deref() else { continue };
            match attempt.asked_resume() {
                // What came in the place of a session that was to be continued takes nobody's place.
                Some(_) if attempt.strays => {}
                Some(asked) => note(named, scene.copies() || asked == named, None),
                None => {
                    for why in whys {
                        note(named, condemns(*why) && self.is_about_binding(target), Some(*why));
                    }
                    note(named, false, None);
                }
            }
        }
        all
    }
}
