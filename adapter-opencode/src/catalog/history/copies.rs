//! Replies that a fork copied: the agent notes no link from a fork to its original, and gives every copy new ids. A copy
//! has the times, the figures and the words of its original.

use std::collections::{HashMap, HashSet};

use super::summary::Summary;

/// The place of a reply: session, reply.
type Place = (usize, usize);

/// The replies that have their times and figures in common with one of another session: of these, the words decide.
pub(super) fn candidates(summaries: &[Summary]) -> Vec<Place> {
    let mut seen: HashMap<u64, Place> = HashMap::new();
    let mut found = HashSet::new();
    for (session, summary) in summaries.iter().enumerate() {
        for (reply, key) in summary.replies.iter().enumerate().filter_map(|(n, reply)| Some((n, reply.key?)))
        {
            match seen.get(&key) {
                Some(other) if other.0 != session => found.extend([*other, (session, reply)]),
                Some(_) => {}
                None => {
                    seen.insert(key, (session, reply));
                }
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_unstable();
    found
}

/// Marks the copies among them, in their order: of several, the one in the session that was made first is the original.
pub(super) fn mark(summaries: &mut [Summary], candidates: &[Place]) {
    let age = |session: &usize| {
        let own = &summaries[*session].own;
        // Where times are the same, the agent's ids still tell: newer ones sort first.
        (own.created.unwrap_or(f64::INFINITY), std::cmp::Reverse(own.id.clone()))
    };
    let mut order: Vec<usize> = candidates.iter().map(|place| place.0).collect();
    order.sort_unstable();
    order.dedup();
    order.sort_by(|one, other| age(one).partial_cmp(&age(other)).unwrap_or(std::cmp::Ordering::Equal));
    let mut holders: HashMap<(u64, Option<u64>), usize> = HashMap::new();
    for session in order {
        // They are in order: to go through all of them for every session would take its square.
        let first = candidates.partition_point(|place| place.0 < session);
        let replies = candidates[first..].iter().take_while(|place| place.0 == session);
        let mut latest: Option<(String, usize)> = None;
        for (_, reply) in replies {
            let reply = &mut summaries[session].replies[*reply];
            let Some(key) = reply.key else { continue };
            // It descends from the one that had it last.
            let Some(holder) = holders.insert((key, reply.text), session).filter(|holder| *holder != session)
            else {
                continue;
            };
            reply.is_copied = true;
            if latest.as_ref().is_none_or(|(id, _)| reply.id > *id) {
                latest = Some((reply.id.clone(), holder));
            }
        }
        if let Some((_, holder)) = latest {
            summaries[session].fork_of = Some(summaries[holder].own.id.clone());
        }
    }
}
