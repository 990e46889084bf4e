//! What was spent on which day.

use std::collections::{BTreeMap, HashMap};

use super::entry::Entry;
use crate::{Timestamp, Usage};

/// Tokens by day, each reply once: records of one reply tell the same tokens, or more and more of them. `day` says on which
/// day a point in time is, in whatever zone; a reply is of the day on which it began. `None`: its time is not known.
///
/// All entries count: those of helpers, too, and those that a fork copied. Formats that tell tokens in running totals alone
/// have none in their entries.
///
/// ```
/// # use session_core::history::{Entry, EntryKind, usage_by_day};
/// # let entries = [Entry::new(EntryKind::Boundary)];
/// // Days of UTC+08:00, as numbers.
/// let days = usage_by_day(&entries, |time| (time.as_millis() + 8 * 3_600_000).div_euclid(86_400_000));
/// # assert!(days.is_empty());
/// ```
pub fn usage_by_day<'e, D: Ord>(
    entries: impl IntoIterator<Item = &'e Entry>,
    day: impl Fn(Timestamp) -> D,
) -> BTreeMap<Option<D>, Usage> {
    let mut replies: HashMap<&str, (Option<Timestamp>, Usage)> = HashMap::new();
    let mut days = BTreeMap::new();
    let mut spend =
        |time: Option<Timestamp>, usage| *days.entry(time.map(&day)).or_insert_with(Usage::default) += usage;
    for entry in entries {
        let Some(usage) = entry.usage else { continue };
        let Some(reply) = entry.reply.as_deref() else {
            spend(entry.time, usage);
            continue;
        };
        let (time, known) = replies.entry(reply).or_insert((entry.time, usage));
        *time = [*time, entry.time].into_iter().flatten().min();
        if usage.output_tokens >= known.output_tokens {
            *known = usage;
        }
    }
    replies.into_values().for_each(|(time, usage)| spend(time, usage));
    days
}
