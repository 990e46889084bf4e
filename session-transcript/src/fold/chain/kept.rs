//! A chain as it is kept in an index. Numbers that are hashes take no less room than they have bits.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use session_core::history::RecordId;

use super::{Chain, Point};

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The last records, their prints, and the counts at those of them that have some.
    last: Vec<([u8; 8], [u8; 8], Option<Point>)>,
    /// Prints of records that have no id.
    prints: Vec<[u8; 8]>,
    forgot: bool,
    tip: Point,
    reply: Option<[u8; 16]>,
    group: Vec<[u8; 8]>,
}

impl Serialize for Chain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (reply, group) = &self.group;
        let named: HashSet<u64> = self.last.iter().map(|(_, print)| *print).collect();
        let point = |id| self.points.get(id).copied();
        Kept {
            last: self
                .last
                .iter()
                .map(|(id, print)| (id.to_le_bytes(), print.to_le_bytes(), point(id)))
                .collect(),
            prints: self.prints.difference(&named).map(|print| print.to_le_bytes()).collect(),
            forgot: self.forgot,
            tip: self.tip,
            reply: reply.map(|reply| reply.0.to_le_bytes()),
            group: group.iter().map(|id| id.to_le_bytes()).collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Chain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kept = Kept::deserialize(deserializer)?;
        let last: Vec<_> = kept
            .last
            .into_iter()
            .map(|(id, print, point)| (u64::from_le_bytes(id), u64::from_le_bytes(print), point))
            .collect();
        let named = last.iter().map(|(_, print, _)| *print).filter(|print| *print != 0);
        Ok(Self {
            points: last.iter().filter_map(|(id, _, point)| Some((*id, (*point)?))).collect(),
            prints: named.chain(kept.prints.into_iter().map(u64::from_le_bytes)).collect(),
            forgot: kept.forgot,
            tip: kept.tip,
            group: (
                kept.reply.map(|reply| RecordId(u128::from_le_bytes(reply))),
                kept.group.into_iter().map(u64::from_le_bytes).collect(),
            ),
            last: last.into_iter().map(|(id, print, _)| (id, print)).collect(),
        })
    }
}
