//! The page on the documents of `--json` names every field that is printed, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::going_back;
use crate::runs;
use crate::schema::{DOCUMENTS, Field, Shape};
use crate::schema_back::BACK;
use crate::schema_parts::PARTS;
use crate::support::Machine;
use crate::support::sessions::{CODEX, Claude, LOGIN};

/// A session with a damaged line.
const TORN: &str = "6f707100-1111-4111-8111-000000000006";

fn shape<'a>(shapes: &'a [Shape], name: &str) -> &'a Shape {
    shapes.iter().find(|shape| shape.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The shape of a document.
fn document_shape(name: &str) -> &'static Shape {
    DOCUMENTS.iter().chain(BACK).find(|shape| shape.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// All fields of a shape with those of its parts: path → type, and whether it may be left out.
fn fields(shape: &Shape) -> BTreeMap<String, (&'static str, bool)> {
    let one = |(path, kind, _): &Field| {
        let optional = path.ends_with('?');
        (path.trim_end_matches('?').to_owned(), (*kind, optional))
    };
    let mut all: BTreeMap<_, _> = shape.fields.iter().map(one).collect();
    for (prefix, part) in shape.parts {
        let optional = prefix.ends_with('?');
        let prefix = prefix.trim_end_matches('?');
        let within = fields(self::shape(PARTS, part));
        all.extend(
            within
                .into_iter()
                .map(|(path, (kind, left_out))| (format!("{prefix}.{path}"), (kind, optional || left_out))),
        );
    }
    all
}

/// The values of a document by their paths.
fn walk<'a>(
    at: &str,
    value: &'a Value,
    all: &BTreeMap<String, (&str, bool)>,
    seen: &mut Vec<(String, &'a Value)>,
) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    if all.get(at).is_some_and(|(kind, _)| *kind == "any" || *kind == "list") {
        seen.push((at.to_owned(), value));
        return;
    }
    match value {
        Value::Object(fields) => {
            // One that may be null is named itself, too.
            if all.contains_key(at) {
                seen.push((at.to_owned(), value));
            }
            fields.iter().for_each(|(name, value)| walk(&below(name), value, all, seen));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(&format!("{at}[]"), item, all, seen)),
        _ => seen.push((at.to_owned(), value)),
    }
}

fn fits(kind: &str, value: &Value) -> bool {
    let (kind, nullable) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
    match value {
        Value::Null => nullable || kind == "any",
        Value::Bool(_) => matches!(kind, "bool" | "any"),
        Value::Number(_) => matches!(kind, "number" | "any"),
        Value::String(text) => kind == "string" || kind == "any" || (kind == "time" && is_time(text)),
        Value::Array(_) => matches!(kind, "list" | "any"),
        Value::Object(_) => matches!(kind, "object" | "any"),
    }
}

/// RFC 3339 in UTC.
fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T'
}

/// Documents of every command, by the shape that they have.
fn samples() -> Vec<(&'static str, Value)> {
    let machine = Machine::with_sessions();
    // A damaged line, for a notice.
    let torn = Claude::new(&machine, TORN, &machine.project, 40).turn("one", "first").write();
    let whole = std::fs::read_to_string(&torn).unwrap();
    let (first, rest) = whole.split_once('\n').unwrap();
    crate::support::write(&torn, &format!("{first}\n{{\"type\":\n{rest}"));
    let json = |words: &[&str]| machine.rejoin(&[words, &["--json"][..]].concat()).json();
    let agent = runs::machine();
    let mut all = vec![
        ("error", json(&["show", "nothing like it"])),
        ("error", json(&["resume", "login"])),
        ("list", json(&["list"])),
        ("show", json(&["show", LOGIN])),
        ("show", json(&["show", CODEX])),
        ("show", json(&["show", TORN])),
        ("resume", json(&["resume", LOGIN])),
        ("doctor", json(&["doctor"])),
        ("search", json(&["search", "login"])),
        ("completions", json(&["completions", "bash"])),
        ("run", runs::run(&agent, &["--json", "--name", "login"], "one").json()),
        ("run", runs::run(&agent, &["--json"], "two").json()),
        ("error", json(&["list", "--nonsense"])),
    ];
    let on_agent = |words: &[&str]| runs::rejoin(&agent, &[&["--json"], words].concat()).json();
    all.push(("run", on_agent(&["run", "-m", "other", "-a", "claude", "--resume", "require", "--", "x"])));
    let id = all.iter().find(|(name, _)| *name == "run").unwrap().1["session"].as_str().unwrap().to_owned();
    all.push(("resume", on_agent(&["resume", &id])));
    all.push(("relocate", on_agent(&["relocate", &id, "--dry-run"])));
    all.push(("explain", on_agent(&["explain", "issue-42"])));
    all.push(("sweep", on_agent(&["sweep", "--dry-run", "--live", "x", "--grace", "0s"])));
    all.push(("doctor", on_agent(&["--store", agent.store().to_str().unwrap(), "doctor"])));
    all.extend(going_back::samples());
    all.push(("close", on_agent(&["close", "issue-42"])));
    all.push(("explain", on_agent(&["explain", "issue-42"])));
    all
}

#[test]
fn every_document_has_the_fields_that_the_page_names_and_no_other() {
    let mut seen_ever = BTreeMap::<&str, BTreeSet<String>>::new();
    for (name, document) in samples() {
        let all = fields(document_shape(name));
        assert_eq!(document["schema"], 1, "{document}");
        assert!(document["command"].is_string(), "{document}");
        let mut seen = Vec::new();
        let mut body = document.clone();
        let object = body.as_object_mut().unwrap();
        object.remove("schema");
        object.remove("command");
        walk("", &body, &all, &mut seen);
        for (path, value) in &seen {
            let Some((kind, _)) = all.get(path) else {
                // A part that may be null is null in one place.
                let is_part = all.keys().any(|known| known.starts_with(&format!("{path}.")));
                assert!(is_part && value.is_null(), "{name}: nobody names {path}: {document}");
                continue;
            };
            assert!(fits(kind, value), "{name}: {path} is no {kind}: {value}");
        }
        seen_ever.entry(name).or_default().extend(seen.into_iter().map(|(path, _)| path));
    }
    for (name, seen) in &seen_ever {
        let all = fields(document_shape(name));
        // What a list may not hold is seen where the list has something.
        let never: Vec<_> = all
            .iter()
            .filter(|(path, (_, optional))| !optional && !seen.contains(*path))
            .filter(|(path, _)| {
                let list = path.rsplit_once("[]").map(|(list, _)| format!("{list}[]"));
                list.is_none_or(|list| seen.iter().any(|seen| seen.starts_with(&list)))
            })
            .collect();
        assert!(never.is_empty(), "{name}: named and never printed: {never:?}");
    }
}

#[test]
fn the_page_on_documents_is_rendered_from_their_fields() {
    let mut page = String::from(include_str!("json.md.head"));
    for (title, shapes) in [("Documents", DOCUMENTS), ("", BACK), ("Parts", PARTS)] {
        if !title.is_empty() {
            write!(page, "\n## {title}\n").unwrap();
        }
        for Shape { name, about, parts, fields } in shapes {
            write!(page, "\n### {name}\n\n{about}\n\n| field | type | |\n|---|---|---|\n").unwrap();
            for (prefix, part) in *parts {
                writeln!(page, "| `{prefix}` | [{part}](#{part}) | |").unwrap();
            }
            for (path, kind, meaning) in *fields {
                writeln!(page, "| `{path}` | {kind} | {meaning} |").unwrap();
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli/json.md");
    // The house renders its documents anew on request only.
    if std::env::var_os("REJOIN_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(there, page, "render it anew: REJOIN_UPDATE=1 cargo test -p rejoin-cli the_page_on_documents");
}
