//! What a branch gets of a session's records.

use serde::Deserialize;
use session_core::{Carried, Heir, Seam};

use super::json::{Json, text};
use crate::wire::Text;

/// The records of the conversation, which a fork of the agent's own copies, too.
const OF_THE_TALK: [&[u8]; 4] = [b"assistant", b"attachment", b"system", b"user"];

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    operation: Option<Text<'a>>,
    is_meta: Option<bool>,
    is_sidechain: Option<bool>,
    is_snapshot_update: Option<bool>,
}

/// A run begins with its prompt in a queue (2.1.50 to 2.1.332); a snapshot of the files is written before the prompt that it
/// is of.
pub(super) fn seam(line: &[u8]) -> Seam {
    let record = serde_json::from_slice::<Record<'_>>(line).unwrap_or_default();
    let is = |text: &Option<Text<'_>>, word| text.as_ref().is_some_and(|text| text.as_str() == word);
    if record.is_sidechain == Some(true) {
        return Seam::Within;
    }
    match record.kind.as_ref().map_or("", Text::as_str) {
        "queue-operation" if is(&record.operation, "enqueue") => Seam::Opens,
        "queue-operation" => Seam::Leads,
        "file-history-snapshot" if record.is_snapshot_update != Some(true) => Seam::Leads,
        "user" if record.is_meta == Some(true) => Seam::Within,
        "assistant" | "user" => Seam::Closes,
        _ => Seam::Within,
    }
}

/// What is asked for of a record: strings as they are written, and where the session's id stands.
#[derive(Default)]
struct Marks<'a> {
    kind: Option<&'a [u8]>,
    uuid: Option<&'a [u8]>,
    session: Option<(usize, usize)>,
    forked: bool,
}

impl<'a> Marks<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let (mut marks, mut json) = (Self::default(), Json::new(line));
        json.object(|json, key| {
            match key {
                b"type" => marks.kind = json.maybe_string()?,
                b"uuid" => marks.uuid = json.maybe_string()?,
                b"sessionId" => {
                    json.peek()?;
                    let begin = json.position();
                    json.skip()?;
                    marks.session = Some((begin, json.position()));
                }
                b"forkedFrom" => {
                    marks.forked = true;
                    json.skip()?;
                }
                _ => json.skip()?,
            }
            Some(())
        })?;
        json.is_at_end().then_some(marks)
    }
}

/// Records become the branch's, and those of the conversation say where they were copied from, in the agent's own words. The
/// mode that permissions were granted in stays behind.
pub(super) fn carried(line: &[u8], heir: &Heir<'_>) -> Carried {
    let Some(marks) = Marks::read(line) else { return Carried::AsItIs };
    let kind = marks.kind.unwrap_or_default();
    if kind == b"permission-mode" {
        return Carried::LeftOut;
    }
    let Some((begin, end)) = marks.session else { return Carried::AsItIs };
    let [b'"', id @ .., b'"'] = &line[begin..end] else { return Carried::AsItIs };
    if text(id) != heir.from.as_str() {
        // One that was copied before tells where from.
        return Carried::AsItIs;
    }
    let mut anew = Vec::with_capacity(line.len() + 160);
    anew.extend_from_slice(&line[..begin]);
    anew.extend_from_slice(format!("\"{}\"", heir.to).as_bytes());
    if let Some(uuid) = marks.uuid.filter(|_| OF_THE_TALK.contains(&kind) && !marks.forked) {
        anew.extend_from_slice(
            format!(",\"forkedFrom\":{{\"sessionId\":\"{}\",\"messageUuid\":\"", heir.from).as_bytes(),
        );
        anew.extend_from_slice(uuid);
        anew.extend_from_slice(b"\"}");
    }
    anew.extend_from_slice(&line[end..]);
    Carried::Anew(anew)
}

#[cfg(test)]
#[path = "branch_tests.rs"]
mod tests;
