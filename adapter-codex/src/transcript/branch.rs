//! What a branch gets of a session's records.

use std::ops::Range;

use session_core::{Carried, Heir, Seam};

use super::record::{Record, words};
use crate::wire::Fields;

/// A turn begins with an event of its own from 0.104 on; in 0.63 and 0.98, with what the model gets of the user's side.
pub(super) fn seam(line: &[u8]) -> Seam {
    let Some(record) = Record::parse(line) else { return Seam::Within };
    let payload = &record.payload;
    match (record.kind(), words(payload.kind.as_ref())) {
        ("event_msg", "task_started") => Seam::Opens,
        ("event_msg", "task_complete" | "turn_aborted") => Seam::Closes,
        ("event_msg", "thread_settings_applied") => Seam::Leads,
        ("response_item", "message") if matches!(words(payload.role.as_ref()), "user" | "developer") => {
            Seam::Leads
        }
        _ => Seam::Within,
    }
}

/// Which fields of a record name the session that it is in.
fn own_ids(kind: &str) -> &'static [&'static str] {
    match kind {
        "session_meta" => &["id", "session_id"],
        "event_msg" => &["thread_id"],
        "token_usage_record" => &["thread_id", "session_id"],
        _ => &[],
    }
}

/// A header names the branch, and the original that it was forked from, as that of a fork of the agent's own does.
pub(super) fn carried(line: &[u8], heir: &Heir<'_>) -> Carried {
    anew(line, heir).map_or(Carried::AsItIs, Carried::Anew)
}

fn anew(line: &[u8], heir: &Heir<'_>) -> Option<Vec<u8>> {
    // Most of a file is long, and names no session.
    memchr::memmem::find(line, heir.from.as_str().as_bytes())?;
    let fields = Fields::of(line)?;
    let kind = fields.text("type")?;
    let written = fields.raw("payload")?;
    let payload = Fields::of(written.as_bytes())?;
    let is_own = |name: &str| payload.text(name).is_some_and(|id| id.as_str() == heir.from.as_str());
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for name in own_ids(kind.as_str()) {
        if is_own(name) {
            edits.push((place(line, payload.raw(name)?)?, format!("\"{}\"", heir.to)));
        }
    }
    if kind.as_str() == "session_meta" && is_own("id") {
        match payload.raw("forked_from_id") {
            Some(before) => edits.push((place(line, before)?, format!("\"{}\"", heir.from))),
            None => {
                let begin = place(line, written)?.start + 1;
                edits.push((begin..begin, format!("\"forked_from_id\":\"{}\",", heir.from)));
            }
        }
    }
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(range, _)| range.start);
    let (mut anew, mut at) = (Vec::with_capacity(line.len() + 64), 0);
    for (range, text) in edits {
        anew.extend_from_slice(line.get(at..range.start)?);
        anew.extend_from_slice(text.as_bytes());
        at = range.end;
    }
    anew.extend_from_slice(&line[at..]);
    Some(anew)
}

/// Where in the line something stands that was read out of it.
fn place(line: &[u8], part: &str) -> Option<Range<usize>> {
    let begin = part.as_ptr().addr().checked_sub(line.as_ptr().addr())?;
    let end = begin.checked_add(part.len())?;
    (end <= line.len()).then_some(begin..end)
}

#[cfg(test)]
#[path = "branch_tests.rs"]
mod tests;
