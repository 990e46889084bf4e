//! What can be had back of a session.

use session_core::history::{Boundary, Notice, NoticeKind, OpenCall, RawTime, Restored, SessionSource};

use super::error::DatabaseError;
use super::record::value;
use super::records::{From, Records};

/// How much of one message is read.
const BYTES: usize = 16 << 20;

/// How many messages are gone through.
const MESSAGES: usize = 100_000;

/// The name of a call that is no tool's: the reply itself was cut off.
const REPLY: &str = "reply";

pub(super) fn restore(records: &dyn Records, source: &SessionSource) -> Result<Restored, DatabaseError> {
    let (summary, usage_of_sidechains) = records.sum_up()?;
    let mut usage_with_copied = summary.usage();
    usage_with_copied += summary.usage_of_copies();
    let mut restored = Restored {
        title: summary.title(),
        usage: summary.usage(),
        usage_with_copied,
        usage_of_sidechains,
        cost_usd: summary.cost(),
        model: summary.model().map(str::to_owned),
        cwd: summary.last_cwd().or_else(|| summary.cwd()),
        ..Restored::default()
    };
    let mut notice = |kind| restored.notices.push(Notice { path: source.path.clone(), offset: None, kind });
    let ids = records.ids(From::Behind(""), MESSAGES)?;
    if ids.len() >= MESSAGES {
        notice(NoticeKind::LimitReached);
    }
    let mut open = None;
    // Where what the model still sees begins, and which messages were read.
    let (mut floor, mut read) = (String::new(), Vec::new());
    for id in ids {
        let Some(stored) = records.message(&id, BYTES)? else { continue };
        let Some(message) = stored.message() else {
            notice(NoticeKind::SkippedLine);
            continue;
        };
        let broken = stored.parts.iter().filter(|(_, data)| data.as_deref().and_then(value).is_none());
        broken.for_each(|_| notice(NoticeKind::SkippedLine));
        if message.is_summary() {
            restored.boundaries.push(Boundary {
                span: None,
                time: message.created().and_then(|millis| RawTime::Number(millis).read()),
                turns_before: restored.turns,
                summary: Some(stored.text()).filter(|text| !text.is_empty()),
                // The next request holds the summary and what follows, and nothing else.
                anchored: true,
            });
            floor = message.parent.clone().unwrap_or_else(|| id.clone());
        }
        restored.turns += u64::from(stored.is_prompt());
        if message.is_user() {
            open = None;
        } else if message.is_assistant() {
            open = Some((stored_calls(&stored), message.is_complete()));
        }
        read.push(id);
    }
    restored.all_messages = read.len() as u64;
    restored.live_messages = read.iter().filter(|id| **id >= floor).count() as u64;
    if let Some((calls, is_complete)) = open {
        restored.open_calls = calls;
        if restored.open_calls.is_empty() && !is_complete {
            let id = read.pop().unwrap_or_default();
            restored.open_calls.push(OpenCall { id, name: REPLY.to_owned() });
        }
    }
    Ok(restored)
}

/// The calls of a message that have no result.
fn stored_calls(stored: &super::entries::Stored) -> Vec<OpenCall> {
    let parts = stored.parts.iter().filter_map(|(_, data)| value(data.as_deref()?));
    let is_open = |part: &serde_json::Value| {
        part["type"] == "tool" && matches!(part["state"]["status"].as_str(), Some("pending" | "running"))
    };
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    parts
        .filter(is_open)
        .map(|part| OpenCall { id: text(&part["callID"]), name: text(&part["tool"]) })
        .collect()
}
