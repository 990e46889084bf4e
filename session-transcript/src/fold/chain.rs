//! The conversation as its records follow each other: counts at each record, computed from those at its parent.

mod kept;

use std::collections::{HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use session_core::history::RecordId;

/// Counts at a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Messages since the last compaction.
    pub(crate) messages: u32,
    /// Prompts since then that were typed while the agent was at work.
    pub(crate) queued: u32,
    /// Messages from the beginning.
    pub(crate) all: u32,
    /// Whether it was written a second time, under another id.
    again: bool,
}

/// What a record is in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Prompt,
    Queued,
    Reply(Option<RecordId>),
    Returned,
    /// Another message.
    Message,
    Boundary,
    /// So many prompts were taken back.
    RolledBack(u64),
    Other,
}

/// A record of the main conversation.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) place: Place,
    pub(super) id: Option<RecordId>,
    pub(super) parent: Option<RecordId>,
    pub(super) logical_parent: Option<RecordId>,
    pub(super) counts: bool,
    pub(super) print: Option<u64>,
    pub(super) offset: u64,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It follows what it says.
    New,
    /// It was there before.
    Again,
    /// Its parent is not there: it follows the line before.
    Bridged,
    /// Another record with its id is there; it is counted beside it.
    SameId,
    /// Its parent may be among what is not remembered.
    Unknown,
}

/// How many of the last records are remembered, for going on.
const REMEMBERED: usize = 256;

/// How far back a record of the same reply is looked for.
const FAN: usize = 128;

/// The conversation so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chain {
    points: HashMap<u64, Point>,
    prints: HashSet<u64>,
    /// The last ones, for going on.
    last: VecDeque<(u64, u64)>,
    /// Whether something was forgotten.
    pub(super) forgot: bool,
    tip: Point,
    /// The reply that the tip belongs to, or answers, and its records.
    group: (Option<RecordId>, VecDeque<u64>),
}

const fn key(id: RecordId) -> u64 {
    (id.0 as u64).rotate_left(29) ^ (id.0 >> 64) as u64
}

impl Chain {
    /// The counts at the end of the conversation.
    pub(crate) const fn tip(&self) -> Point {
        self.tip
    }

    pub(super) fn take(&mut self, step: &Step) -> Taken {
        let (id, parent) = (step.id.map(key), step.parent.map(key));
        let mut taken = Taken::New;
        if let Some(print) = step.print
            && self.prints.contains(&print)
        {
            if let Some(id) = id {
                let again = Point { again: true, ..self.tip };
                self.points.entry(id).or_insert(again);
                self.remember(id, 0);
            }
            self.group = Default::default();
            return Taken::Again;
        }
        if let Some(id) = id
            && self.points.contains_key(&id)
        {
            taken = Taken::SameId;
        }
        let in_group = parent.is_some_and(|parent| self.group.1.contains(&parent));
        let mut base = match (step.place, parent) {
            (Place::Boundary, _) => match step.logical_parent.map(key) {
                Some(before) => self.at(before, &mut taken),
                None => self.tip,
            },
            // What has no id follows the line before.
            (_, None) if id.is_none() => self.tip,
            (_, None) => Point::default(),
            // Results of tools that were called side by side each follow their own call.
            (Place::Returned | Place::Other | Place::Queued, Some(_)) if in_group => self.tip,
            (Place::Reply(reply), Some(_)) if in_group && reply == self.group.0 => self.tip,
            (_, Some(parent)) => self.at(parent, &mut taken),
        };
        if taken == Taken::Unknown {
            return taken;
        }
        if let Place::Boundary = step.place {
            (base.messages, base.queued) = (0, 0);
        }
        let message = u32::from(step.counts);
        base.messages = base.messages.saturating_add(message);
        base.all = base.all.saturating_add(message);
        base.queued = base.queued.saturating_add(u32::from(step.place == Place::Queued));
        base.again = false;
        self.tip = base;
        self.regroup(step.place, id, in_group);
        if let Some(id) = id {
            self.points.insert(id, base);
            self.remember(id, step.print.unwrap_or_default());
        }
        self.prints.extend(step.print);
        taken
    }

    fn at(&self, parent: u64, taken: &mut Taken) -> Point {
        match self.points.get(&parent) {
            // What was written again stands where it stood first; what follows, follows the line before.
            Some(point) if point.again => self.tip,
            Some(point) => *point,
            None => {
                *taken = if self.forgot { Taken::Unknown } else { Taken::Bridged };
                self.tip
            }
        }
    }

    fn regroup(&mut self, place: Place, id: Option<u64>, in_group: bool) {
        let stays = match place {
            Place::Reply(reply) => reply.is_some() && reply == self.group.0,
            Place::Returned | Place::Other | Place::Queued => in_group,
            Place::Prompt | Place::Message | Place::Boundary | Place::RolledBack(_) => false,
        };
        if !stays {
            self.group.1.clear();
            self.group.0 = if let Place::Reply(reply) = place { reply } else { None };
        }
        if self.group.0.is_some() {
            self.group.1.extend(id);
            if self.group.1.len() > FAN {
                self.group.1.pop_front();
            }
        }
    }

    fn remember(&mut self, id: u64, print: u64) {
        self.last.push_back((id, print));
        if self.last.len() > REMEMBERED {
            self.last.pop_front();
        }
    }

    /// Keeps what is needed for going on.
    pub(super) fn trim(&mut self) {
        if self.points.len() > self.last.len() {
            let points = &self.points;
            let kept = self.last.iter().filter_map(|(id, _)| Some((*id, *points.get(id)?))).collect();
            self.points = kept;
            self.prints = self.last.iter().map(|(_, print)| *print).filter(|print| *print != 0).collect();
            self.forgot = true;
        }
    }
}
