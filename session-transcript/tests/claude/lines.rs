//! Lines as the agent writes them, with short ids.

use std::path::Path;

use adapter_claude::ClaudeTranscripts;
use serde_json::{Value, json};
use session_core::history::{NoticeKind, SessionEntry, SessionSource};
use session_core::{EnvMap, TranscriptFormat as _};
use session_transcript::Summary;

pub(crate) const SESSION: &str = "11111111-1111-4111-8111-111111111111";

/// The uuid of a short name.
pub(crate) fn uuid(name: &str) -> String {
    let bits = name.bytes().fold(7_u64, |bits, byte| bits.wrapping_mul(1_000_003) ^ u64::from(byte));
    format!("{:08x}-1111-4111-8111-{:012x}", bits >> 32, bits & 0xFFFF_FFFF)
}

/// A record of the chain; what `more` holds is put over it.
#[expect(clippy::needless_pass_by_value, reason = "a literal stands there")]
pub(crate) fn record(kind: &str, id: &str, parent: Option<&str>, more: Value) -> Value {
    let mut record = json!({
        "parentUuid": parent.map(uuid), "isSidechain": false, "type": kind, "uuid": uuid(id),
        "sessionId": SESSION, "cwd": "/work", "gitBranch": "main",
    });
    for (key, value) in more.as_object().unwrap() {
        record[key] = value.clone();
    }
    record
}

pub(crate) fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    record("user", id, parent, json!({"message": {"role": "user", "content": text}}))
}

pub(crate) fn reply(id: &str, parent: Option<&str>) -> Value {
    let message = json!({
        "id": format!("msg_{id}"), "model": "model-1", "role": "assistant", "content": [{"type": "text", "text": "done"}],
        "usage": {"input_tokens": 1, "output_tokens": 10},
    });
    record("assistant", id, parent, json!({"message": message, "requestId": format!("req_{id}")}))
}

pub(crate) fn snapshot(id: &str) -> Value {
    json!({"type": "file-history-snapshot", "messageId": uuid(id), "snapshot": {"messageId": uuid(id)}})
}

pub(crate) fn boundary(id: &str, before: &str) -> Value {
    let more = json!({"subtype": "compact_boundary", "logicalParentUuid": uuid(before), "content": "Conversation compacted"});
    record("system", id, None, more)
}

pub(crate) fn text(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

pub(crate) fn format() -> ClaudeTranscripts {
    ClaudeTranscripts::new(EnvMap::default())
}

pub(crate) fn read(text: &[u8]) -> Summary {
    let summary = Summary::read(&format(), text, 1).unwrap();
    let wide = Summary::read(&format(), text, 2).unwrap();
    assert_eq!(summary.counts(), wide.counts(), "on two threads");
    summary
}

pub(crate) fn entry_at(summary: &Summary, place: &str) -> Option<SessionEntry> {
    let file = format().session_file(Path::new(place))?;
    let source = SessionSource { path: Path::new("/state/projects").join(place), state_dir: None };
    Some(summary.entry(&file, source))
}

pub(crate) fn entry(lines: &[Value]) -> SessionEntry {
    entry_at(&read(&text(lines)), &format!("-work/{SESSION}.jsonl")).unwrap()
}

pub(crate) fn notices(summary: &Summary) -> Vec<(u64, NoticeKind)> {
    let (notices, more) = summary.notices(Path::new("file"));
    assert_eq!(more, 0);
    notices.into_iter().map(|notice| (notice.offset.unwrap(), notice.kind)).collect()
}
