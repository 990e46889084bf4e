//! The conversation as its records follow each other: counts at each record, computed from those at its parent.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};

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
    /// In milliseconds.
    pub(super) time: Option<i64>,
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

/// How far back a record is looked for before there is an index of all of them.
const NEAR: usize = 32;

/// How far back a record of the same reply is looked for.
const FAN: usize = 128;

/// Hashes numbers that are as good as random, and may be chosen to be bad: with a number that nobody knows.
#[derive(Debug, Clone)]
pub(super) struct Secret(u64);

impl Default for Secret {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Secret {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        Mixed(self.0)
    }
}

/// A number mixed with the secret one.
#[derive(Debug)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product as u64).rotate_left(32) ^ (product >> 64) as u64;
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64);
        self.write_u64((number >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A record, and the counts at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Link {
    id: u64,
    /// What it shares with its copies; 0: nothing.
    print: u64,
    point: Point,
}

/// The conversation so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Chain {
    links: Vec<Link>,
    /// Whether links were forgotten.
    forgot: bool,
    tip: Point,
    /// The latest time, in milliseconds, and that of what came before the last trim.
    latest: Option<i64>,
    floor: Option<i64>,
    /// The reply that the tip belongs to, or answers, and its records.
    reply: Option<u128>,
    fan: VecDeque<u64>,
    /// Where links lie, made when it is needed.
    #[serde(skip)]
    index: Index,
}

/// Links by their ids and by what they share with copies, up to one of them.
#[derive(Debug, Clone, Default)]
struct Index {
    upto: usize,
    ids: HashMap<u64, u32, Secret>,
    prints: HashSet<u64, Secret>,
}

impl PartialEq for Chain {
    /// The index says nothing of its own.
    fn eq(&self, other: &Self) -> bool {
        let all = |chain: &Self| (chain.forgot, chain.tip, chain.latest, chain.reply);
        all(self) == all(other) && self.links == other.links && self.fan == other.fan
    }
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
        // What is written a second time is as old as it was.
        let later = step.time.is_some() && step.time > self.latest;
        self.latest = self.latest.max(step.time);
        if !later && let Some(seen) = self.seen(step) {
            match seen {
                Taken::SameId => taken = seen,
                Taken::Again => {
                    self.fan.clear();
                    if !id.is_some_and(|id| self.index.ids.contains_key(&id)) {
                        self.push(id, 0, Point { again: true, ..self.tip });
                    }
                    return seen;
                }
                _ => return seen,
            }
        }
        let in_fan = parent.is_some_and(|parent| self.fan.contains(&parent));
        let reply = if let Place::Reply(Some(reply)) = step.place { Some(reply.0) } else { None };
        let mut base = match (step.place, parent) {
            (Place::Boundary, _) => match step.logical_parent.map(key) {
                Some(before) => self.at(before, &mut taken),
                None => self.tip,
            },
            // What has no id follows the line before.
            (_, None) if id.is_none() => self.tip,
            (_, None) => Point::default(),
            // Results of tools that were called side by side each follow their own call.
            (Place::Returned | Place::Other | Place::Queued, Some(_)) if in_fan => self.tip,
            (Place::Reply(_), Some(_)) if in_fan && reply == self.reply => self.tip,
            (_, Some(parent)) => self.at(parent, &mut taken),
        };
        if taken == Taken::Unknown {
            return taken;
        }
        if step.place == Place::Boundary {
            (base.messages, base.queued) = (0, 0);
        }
        let message = u32::from(step.counts);
        base.messages = base.messages.saturating_add(message);
        base.all = base.all.saturating_add(message);
        base.queued = base.queued.saturating_add(u32::from(step.place == Place::Queued));
        base.again = false;
        self.tip = base;
        self.refan(step.place, reply, id, in_fan);
        self.push(id, step.print.unwrap_or_default(), base);
        taken
    }

    fn push(&mut self, id: Option<u64>, print: u64, point: Point) {
        if let Some(id) = id {
            self.links.push(Link { id, print, point });
        }
    }

    /// Whether it was there before: the same content, or another record with this id.
    fn seen(&mut self, step: &Step) -> Option<Taken> {
        let id = key(step.id?);
        self.extend_index();
        if step.print.is_some_and(|print| self.index.prints.contains(&print)) {
            return Some(Taken::Again);
        }
        if self.forgot && step.print.is_some() && step.time <= self.floor {
            // It may be a copy of something that was forgotten.
            return Some(Taken::Unknown);
        }
        self.index.ids.contains_key(&id).then_some(Taken::SameId)
    }

    /// The counts at a record.
    fn at(&mut self, parent: u64, taken: &mut Taken) -> Point {
        let near = self.links.iter().rev().take(NEAR).find(|link| link.id == parent).map(|link| link.point);
        let found = near.or_else(|| {
            self.extend_index();
            self.index.ids.get(&parent).map(|at| self.links[*at as usize].point)
        });
        match found {
            // What was written again stands where it stood first; what follows it, follows the line before.
            Some(point) if point.again => self.tip,
            Some(point) => point,
            None => {
                *taken = if self.forgot { Taken::Unknown } else { Taken::Bridged };
                self.tip
            }
        }
    }

    fn extend_index(&mut self) {
        let index = &mut self.index;
        for (at, link) in self.links.iter().enumerate().skip(index.upto) {
            index.ids.insert(link.id, u32::try_from(at).unwrap_or(u32::MAX));
            if link.print != 0 {
                index.prints.insert(link.print);
            }
        }
        index.upto = self.links.len();
    }

    fn refan(&mut self, place: Place, reply: Option<u128>, id: Option<u64>, in_fan: bool) {
        let stays = match place {
            Place::Reply(_) => reply.is_some() && reply == self.reply,
            Place::Returned | Place::Other | Place::Queued => in_fan,
            Place::Prompt | Place::Message | Place::Boundary | Place::RolledBack(_) => false,
        };
        if !stays {
            self.fan.clear();
            self.reply = reply;
        }
        if self.reply.is_some() {
            self.fan.extend(id);
            if self.fan.len() > FAN {
                self.fan.pop_front();
            }
        }
    }

    /// Keeps what is needed for going on.
    pub(super) fn trim(&mut self) {
        self.index = Index::default();
        if self.links.len() > REMEMBERED {
            self.links.drain(..self.links.len() - REMEMBERED);
            self.links.shrink_to_fit();
            self.forgot = true;
        }
        self.floor = self.latest;
    }
}
