//! Strings and values of a line in full.

use serde_json::{Map, Value};
use session_core::without_lone_surrogates;

use crate::transcript::json::{Json, unescape};

/// Memory that a value may take as a tree. One that would take more stays the text that it is.
const TREE: usize = 4 << 20;

/// What one node of a tree takes, with its place in a map.
const NODE: usize = 128;

/// How deep the values that are mostly written lie in each other. What lies deeper is left to the library.
const DEEP: u8 = 32;

/// What a string says, by what is written, with its quotes. What is no text in it becomes the replacement character.
pub(super) fn owned(raw: &[u8]) -> String {
    let inside = raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(raw);
    if let Some(text) = unescape(inside) {
        return text;
    }
    serde_json::from_slice(raw).unwrap_or_else(|_| {
        let written = String::from_utf8_lossy(raw);
        serde_json::from_str(&without_lone_surrogates(&written)).unwrap_or_else(|_| written.into_owned())
    })
}

/// The value. One that is no JSON, or too much of it, is given as the text that was written.
pub(super) fn value(raw: &[u8]) -> Value {
    let nodes = || raw.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    let tree = (raw.len() <= TREE / NODE || nodes() <= TREE / NODE).then(|| {
        serde_json::from_slice(raw)
            .or_else(|_| serde_json::from_str(&without_lone_surrogates(&String::from_utf8_lossy(raw))))
    });
    match tree {
        Some(Ok(value)) => value,
        _ => Value::String(String::from_utf8_lossy(raw).into_owned()),
    }
}

/// The next value, as [`value`] gives it, in one pass where it is a plain one.
pub(super) fn next(json: &mut Json<'_>) -> Option<Value> {
    json.peek()?;
    let (begin, mut nodes) = (*json, TREE / NODE);
    tree(json, DEEP, &mut nodes).or_else(|| {
        *json = begin;
        json.raw().map(value)
    })
}

/// `None`: it is no JSON, or there is something seldom in it.
fn tree(json: &mut Json<'_>, depth: u8, nodes: &mut usize) -> Option<Value> {
    *nodes = nodes.checked_sub(1)?;
    Some(match json.peek()? {
        b'"' => Value::String(unescape(json.string()?)?),
        b'{' => {
            let depth = depth.checked_sub(1)?;
            let mut map = Map::new();
            json.object(|json, key| {
                let key = std::str::from_utf8(key).ok().filter(|key| !key.contains('\\'))?.to_owned();
                map.insert(key, tree(json, depth, nodes)?);
                Some(())
            })?;
            Value::Object(map)
        }
        b'[' => {
            let depth = depth.checked_sub(1)?;
            let mut list = Vec::new();
            json.array(|json| {
                list.push(tree(json, depth, nodes)?);
                Some(())
            })?;
            Value::Array(list)
        }
        _ => serde_json::from_slice(json.word()?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_says_what_another_reader_finds_in_it_wherever_its_escapes_lie() {
        for length in 0..40 {
            for at in 0..=length {
                for escape in ["\\n", "\\\\", "\\\\\\\"", "\\t\\/\\r", "\\u00e9", "\\ud83d\\ude80", "\u{fc}"]
                {
                    let (before, behind) = ("x".repeat(at), "y".repeat(length - at));
                    let written = format!("\"{before}{escape}{behind}{escape}\"");
                    let expected: String = serde_json::from_str(&written).unwrap();
                    assert_eq!(owned(written.as_bytes()), expected, "{written}");
                }
            }
        }
        for (written, expected) in [
            (&b"\"never ends \\\""[..], "\"never ends \\\""),
            (b"\"no such \\x escape\"", "\"no such \\x escape\""),
            (b"\"no text \xff\\n\"", "no text \u{fffd}\n"),
            (b"\"half of one \\ud83d\"", "half of one \u{fffd}"),
        ] {
            assert_eq!(owned(written), expected);
        }
    }

    #[test]
    fn a_value_read_in_one_pass_is_the_one_that_another_reader_finds() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let too_deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for written in [
            r#"{"a": [1, -2.5e3, 18446744073709551616, true, null, "\n"], "b": {}, "a": [ ]}"#,
            r#"{"\u0061\n": "\ud83d", "\\": 1, "\ud83d": 2}"#,
            r#"{"command": "say \"hi\"\n\u00e9 and more than sixteen bytes"}"#,
            r#"{"a": 1,}"#,
            r#"{"a" 1}"#,
            r#"{"a": 01}"#,
            r#"{"\x": "\x"}"#,
            "nul",
            &deep,
            &too_deep,
        ] {
            let behind = format!(" {written} ,");
            let mut json = Json::new(behind.as_bytes());
            assert_eq!(next(&mut json), Some(value(written.as_bytes())), "{written}");
            assert_eq!(json.peek(), Some(b','), "{written}");
        }
        assert_eq!(next(&mut Json::new(br#"{"cut": "#)), None);
    }
}
