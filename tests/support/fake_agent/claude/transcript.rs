//! The session file of Claude Code: reading what a session knows, and appending to it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The records of a session file, oldest first.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Value>);

impl History {
    /// Reads a session file; lines which are no JSON are passed over, as the CLI does.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read(path)?))
    }

    fn parse(bytes: &[u8]) -> Self {
        let records = bytes.split(|byte| *byte == b'\n');
        Self(
            records
                .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
                .filter(Value::is_object)
                .collect(),
        )
    }

    /// Nothing in it was a record.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The record which the next turn follows.
    pub(super) fn leaf(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|record| uuid(record))
    }

    /// The last record that has this field of a string, of records of this type.
    fn last<'a>(&'a self, kind: &str, field: &str) -> Option<&'a Value> {
        self.0.iter().rev().filter(|record| record["type"] == kind).find_map(|record| record.get(field))
    }

    pub(super) fn title(&self) -> Option<&str> {
        self.last("custom-title", "customTitle")?.as_str()
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.last("assistant", "message")?["model"].as_str()
    }

    /// What the session cost so far.
    pub(super) fn cost(&self) -> f64 {
        self.last("cost-state", "totalCostUSD").and_then(Value::as_f64).unwrap_or(0.0)
    }

    pub(super) fn model_usage(&self) -> Value {
        self.last("cost-state", "modelUsage").cloned().unwrap_or_else(|| json!({}))
    }

    /// What the user said on the way to the last record. A missing record is bridged by the one before it.
    pub(super) fn user_texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        let mut at = self.0.iter().rposition(|record| uuid(record).is_some());
        while let Some(index) = at {
            let record = &self.0[index];
            texts.extend(user_text(record));
            let earlier = &self.0[..index];
            at = record["parentUuid"].as_str().and_then(|parent| {
                let named = earlier.iter().rposition(|record| uuid(record) == Some(parent));
                named.or_else(|| earlier.iter().rposition(|record| uuid(record).is_some()))
            });
        }
        texts.reverse();
        texts
    }

    /// All records as those of another session.
    pub(super) fn copied_to(&self, id: &str) -> impl Iterator<Item = Value> {
        self.0.iter().cloned().map(move |mut record| {
            if record.get("sessionId").is_some() {
                record["sessionId"] = json!(id);
            }
            record
        })
    }
}

fn uuid(record: &Value) -> Option<&str> {
    record["uuid"].as_str()
}

/// What a person said in a record: results of tools and notes of the CLI are not theirs.
fn user_text(record: &Value) -> Option<String> {
    if record["type"] != "user" || record["isMeta"] == true {
        return None;
    }
    match &record["message"]["content"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) if blocks.iter().any(|block| block["type"] == "tool_result") => None,
        Value::Array(blocks) => {
            let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

/// A session file that a turn is saved to.
#[derive(Debug)]
pub(super) struct Saved(Option<PathBuf>);

impl Saved {
    pub(super) fn to(path: Option<PathBuf>) -> Self {
        Self(path)
    }

    /// Appends records. Like the real CLI it goes on in silence when they cannot be saved.
    pub(super) fn append(&self, records: impl IntoIterator<Item = Value>) {
        let Some(path) = &self.0 else { return };
        let mut lines = String::new();
        for record in records {
            lines.push_str(&record.to_string());
            lines.push('\n');
        }
        let _ = append(path, &lines);
    }
}

fn append(path: &Path, lines: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    // A line cut off by a crash stays broken, but does not take the next one with it.
    let start = if ends_in_mid_line(&mut file)? { "\n" } else { "" };
    file.write_all(format!("{start}{lines}").as_bytes())
}

fn ends_in_mid_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(uuid: &str, parent: Option<&str>, text: &str) -> String {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"content": text}}).to_string()
    }

    fn texts(lines: &[String]) -> Vec<String> {
        History::parse(lines.join("\n").as_bytes()).user_texts()
    }

    #[test]
    fn only_the_branch_written_last_counts() {
        let lines = [user("a", None, "one"), user("b", Some("a"), "lost"), user("c", Some("a"), "two")];
        assert_eq!(texts(&lines), ["one", "two"]);
    }

    #[test]
    fn a_missing_record_is_bridged_and_garbage_skipped() {
        let lines = [user("a", None, "one"), "\0\0 garbage".to_owned(), user("c", Some("gone"), "three")];
        assert_eq!(texts(&lines), ["one", "three"]);
    }

    #[test]
    fn tool_results_and_notes_are_not_said_by_the_user() {
        let lines = [
            user("a", None, "one"),
            r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"content":[{"type":"tool_result","content":"x"}]}}"#.to_owned(),
            r#"{"type":"user","uuid":"c","parentUuid":"b","isMeta":true,"message":{"content":"note"}}"#.to_owned(),
            r#"{"type":"user","uuid":"d","parentUuid":"c","message":{"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}}"#.to_owned(),
        ];
        assert_eq!(texts(&lines), ["one", "x\ny"]);
    }

    #[test]
    fn a_cut_line_is_ended_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/x.jsonl");
        let saved = Saved::to(Some(path.clone()));
        saved.append([json!({"n": 1}), json!({"n": 2})]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"n\":1}\n{\"n\":2}\n");
        std::fs::write(&path, "{\"n\":1}\n{\"n").unwrap();
        saved.append([json!({"n": 3})]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"n\":1}\n{\"n\n{\"n\":3}\n");
    }

    #[test]
    fn what_cannot_be_saved_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let in_the_way = dir.path().join("file");
        std::fs::write(&in_the_way, "x").unwrap();
        Saved::to(Some(in_the_way.join("x.jsonl"))).append([json!({})]);
        assert_eq!(std::fs::read_to_string(&in_the_way).unwrap(), "x");
    }
}
