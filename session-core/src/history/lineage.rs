//! Where sessions come from: what records and files tell of it, and the root that it leads to. Pure.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::listing::{Descent, SessionEntry};
use crate::decide::Why;
use crate::{AgentId, Former, NativeId, SessionKey, SessionRecord, Timestamp};

/// How a session came from another one of the same agent. Serialized as a stable code.
///
/// A helper's session is no descendant of the one that began it: its work is its own. Nor is one that was told of another by a
/// hand-over: it has a beginning of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lineage {
    /// It began as a copy of it, which the original knows nothing of.
    Forked,
    /// A rewind made it: a copy up to a prompt, or a new one where none was kept.
    Rewound,
    /// It is the new conversation after a clear.
    Cleared,
    /// It is the new conversation that begins with a summary.
    Compacted,
    /// It was begun as the other could not be continued.
    FellBack,
    /// It took its place in the mailbox in another way: it was begun anew on purpose or in another folder, the agent gave the
    /// conversation a new id, or the record does not say why any more.
    Replaced,
}

impl Lineage {
    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Forked => "forked",
            Self::Rewound => "rewound",
            Self::Cleared => "cleared",
            Self::Compacted => "compacted",
            Self::FellBack => "fell_back",
            Self::Replaced => "replaced",
        }
    }

    /// What comes after a session that was left for this reason.
    fn after(why: &str) -> Self {
        match why {
            "rewound" | "undone" => Self::Rewound,
            "cleared" => Self::Cleared,
            "compacted" => Self::Compacted,
            _ => match Why::from_code(why) {
                None | Some(Why::ResumeDisabled | Why::RecipeRerun) => Self::Replaced,
                Some(_) => Self::FellBack,
            },
        }
    }
}

/// Who says that a session comes from another: who comes first here is believed, of several records that of the first key,
/// of several files the one that names the first id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    /// A record: it is a copy.
    Copy(SessionKey),
    /// Its own file: it is a copy.
    File,
    /// A record: it came after it.
    Next(SessionKey),
}

#[derive(Debug, Clone)]
struct Link {
    told: Told,
    to: NativeId,
    lineage: Lineage,
}

/// The lineages of sessions: every session comes from one other at most. What is no longer there leads on as well, as far as
/// somebody names it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    links: HashMap<AgentId, HashMap<NativeId, Link>>,
    /// The roots of all that come from another.
    roots: HashMap<AgentId, HashMap<NativeId, NativeId>>,
}

impl Lines {
    /// Takes what a record tells.
    pub(crate) fn note_record(&mut self, record: &SessionRecord) {
        let (key, members) = (&record.key, members(record));
        for (at, member) in members.iter().enumerate() {
            let copy = member.copy_of.filter(|of| *of != member.id).map(|of| {
                let original = members.iter().find(|other| other.id == of);
                // A copy within a mailbox is a rewind's, unless the agent made it under way.
                let by_rewind = original.is_some_and(|original| original.why != Some("id_changed"));
                let lineage = if by_rewind { Lineage::Rewound } else { Lineage::Forked };
                (Told::Copy(key.clone()), of, lineage)
            });
            let next = || before(&members, at).map(|(to, how)| (Told::Next(key.clone()), to, how));
            if let Some((told, to, lineage)) = copy.or_else(next) {
                self.note(&key.agent, member.id, Link { told, to: to.clone(), lineage });
            }
        }
    }

    /// Takes what a session's file tells.
    pub(crate) fn note_file(&mut self, agent: &AgentId, entry: &SessionEntry) {
        let Some(parent) = entry.parent.as_ref().filter(|parent| parent.descent == Descent::Forked) else {
            return;
        };
        let link = Link { told: Told::File, to: parent.id.clone(), lineage: Lineage::Forked };
        self.note(agent, &entry.id, link);
    }

    fn note(&mut self, agent: &AgentId, id: &NativeId, link: Link) {
        if link.to == *id {
            return;
        }
        let links = self.links.entry(agent.clone()).or_default();
        let believed = |there: &Link| (&there.told, &there.to) <= (&link.told, &link.to);
        if !links.get(id).is_some_and(believed) {
            links.insert(id.clone(), link);
        }
    }

    /// Finds the root of everything that was noted. Where lineages go in a circle, its first id is the root.
    pub(crate) fn settle(&mut self) {
        self.roots = self.links.iter().map(|(agent, links)| (agent.clone(), roots(links))).collect();
    }

    /// The root of a session, and what it comes from, as [settled](Self::settle) last.
    pub(crate) fn trace(&self, agent: &AgentId, id: &NativeId) -> (NativeId, Option<(NativeId, Lineage)>) {
        let root = self.roots.get(agent).and_then(|roots| roots.get(id)).unwrap_or(id);
        let link = self.links.get(agent).and_then(|links| links.get(id)).filter(|_| root != id);
        (root.clone(), link.map(|link| (link.to.clone(), link.lineage)))
    }
}

/// The root of each session that comes from another. Each is walked over once.
fn roots(links: &HashMap<NativeId, Link>) -> HashMap<NativeId, NativeId> {
    let mut roots = HashMap::<&NativeId, &NativeId>::with_capacity(links.len());
    for id in links.keys() {
        let (mut at, mut path, mut passed) = (id, Vec::<&NativeId>::new(), HashSet::new());
        let root = loop {
            if let Some(root) = roots.get(at) {
                break *root;
            }
            let Some(link) = links.get(at) else { break at };
            if !passed.insert(at) {
                let circle = path.iter().copied().skip_while(|id| *id != at);
                break circle.min().unwrap_or(at);
            }
            path.push(at);
            at = &link.to;
        };
        roots.extend(path.into_iter().map(|id| (id, root)));
    }
    roots.into_iter().map(|(id, root)| (id.clone(), root.clone())).collect()
}

/// A session of a record.
#[derive(Debug, Clone, Copy)]
struct Member<'a> {
    id: &'a NativeId,
    copy_of: Option<&'a NativeId>,
    began: Timestamp,
    /// When it was left; `None`: it is in force, or is to be.
    left: Option<Timestamp>,
    /// Why it was left; of one that is to take the place of the one in force, why that is left.
    why: Option<&'a str>,
    /// Whether it was in force, or will be.
    counts: bool,
}

/// The sessions of a record, in the order in which they were left.
fn members(record: &SessionRecord) -> Vec<Member<'_>> {
    let aside = |former: &Former| matches!(&*former.why, "stood_aside" | "session_replaced");
    let past = record.past.iter().map(|former| Member {
        id: &former.native_id,
        copy_of: former.forked_from.as_ref(),
        began: former.created_at.unwrap_or(former.at),
        left: Some(former.at),
        why: Some(&former.why),
        counts: !aside(former),
    });
    let present = |(binding, why, counts)| {
        let binding: &crate::Binding = binding;
        let (id, copy_of) = (&binding.native_id, binding.forked_from.as_ref());
        Member { id, copy_of, began: binding.created_at, left: None, why, counts }
    };
    let binding = record.binding.iter().map(|binding| present((binding, None, true)));
    let candidate = record.candidate.iter().map(|candidate| {
        // What the agent named in the place of another session may be anybody's.
        let counts = candidate.instead_of.is_none() && (candidate.replaces || record.binding.is_none());
        present((&candidate.binding, candidate.why.as_deref(), counts))
    });
    past.chain(binding).chain(candidate).collect()
}

/// What a session came after in its mailbox. A record tells when sessions began and were left, not of what came back in between:
/// of several that may be meant, one is named, and all of them have one root.
fn before<'a>(members: &[Member<'a>], at: usize) -> Option<(&'a NativeId, Lineage)> {
    let this = members.get(at).filter(|this| this.counts)?;
    let age = |at: usize, member: &Member<'_>| (member.began, at);
    let older = |(place, other): &(usize, &Member<'a>)| {
        other.counts && other.id != this.id && age(*place, other) < age(at, this)
    };
    let older: Vec<&Member<'a>> = members.iter().enumerate().filter(older).map(|(_, other)| other).collect();
    // What was left last before it began. Where it was put aside, and nothing begun since, nothing else was in force.
    let last = || older.iter().filter(|other| other.left.is_some_and(|left| left <= this.began));
    let last = last().max_by_key(|other| other.left);
    let put_aside = last.filter(|last| {
        let by_wish = matches!(last.why, Some("cleared" | "compacted" | "rewound" | "undone"));
        by_wish && !older.iter().any(|other| last.left.is_some_and(|left| other.began >= left))
    });
    // What was in force while it began: the first to be left since.
    let still = older.iter().filter(|other| other.left.is_none_or(|left| left >= this.began));
    let still = still.min_by_key(|other| (other.left.is_none(), other.left, Reverse(other.began)));
    let other = put_aside.or(still).or(last)?;
    let why = match (other.left, this.left) {
        // Of one that was left only after this one had been, the reason is another one.
        (Some(left), Some(this_left)) if left > this_left => None,
        (Some(_), _) => other.why,
        (None, None) => this.why,
        (None, Some(_)) => None,
    };
    Some((other.id, why.map_or(Lineage::Replaced, Lineage::after)))
}

#[cfg(test)]
#[path = "lineage_tests.rs"]
mod tests;
