//! The lines of `--format json`, as far as they matter: lenient, what is not named here is skipped unread.
//!
//! Where a field is not of the type it always had, or the text is not quite JSON, the line is read again as a tree, and
//! what does not fit is left out: a change of one field does not lose the rest.

use serde::Deserialize;
use serde_json::Value;
use session_core::without_lone_surrogates;

/// One line.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Line {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    #[serde(rename = "sessionID")]
    pub(crate) session: Option<String>,
    pub(crate) part: Option<Part>,
    pub(crate) error: Option<Failure>,
}

/// What a line tells of.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    /// One part is one thing, however often it is told.
    pub(crate) id: Option<String>,
    // `text`
    pub(crate) text: Option<String>,
    pub(crate) synthetic: Option<bool>,
    // `tool_use`
    #[serde(rename = "callID")]
    pub(crate) call_id: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) state: Option<State>,
    // `step_finish`
    pub(crate) reason: Option<String>,
    pub(crate) cost: Option<f64>,
    pub(crate) tokens: Option<Tokens>,
}

/// How a tool ended.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct State {
    pub(crate) status: Option<String>,
}

/// Token counts of one step.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) reasoning: Option<u64>,
    pub(crate) cache: Option<Cache>,
}

/// Tokens that the provider's cache took or gave.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Cache {
    pub(crate) read: Option<u64>,
    pub(crate) write: Option<u64>,
}

/// An error of the session.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Failure {
    pub(crate) name: Option<String>,
    pub(crate) data: Option<FailureData>,
}

/// What is known of it.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailureData {
    pub(crate) message: Option<String>,
    pub(crate) status_code: Option<u16>,
    pub(crate) is_retryable: Option<bool>,
    /// Where the agent's log tells more.
    #[serde(rename = "ref")]
    pub(crate) reference: Option<String>,
}

/// Reads a line. `None`: it is no JSON object.
pub(crate) fn parse(line: &[u8]) -> Option<Line> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice(line).ok().or_else(|| salvage(line))
}

/// Reads what fits of a line that does not fit as a whole.
fn salvage(line: &[u8]) -> Option<Line> {
    let text = without_lone_surrogates(&String::from_utf8_lossy(line));
    let value: Value = serde_json::from_str(&text).ok()?;
    let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
    let part = &value["part"];
    let tokens = &part["tokens"];
    let error = &value["error"];
    let data = &error["data"];
    Some(Line {
        kind: text(&value, "type"),
        session: text(&value, "sessionID"),
        part: part.is_object().then(|| Part {
            id: text(part, "id"),
            text: text(part, "text"),
            synthetic: part["synthetic"].as_bool(),
            call_id: text(part, "callID"),
            tool: text(part, "tool"),
            state: Some(State { status: text(&part["state"], "status") }),
            reason: text(part, "reason"),
            cost: part["cost"].as_f64(),
            tokens: tokens.is_object().then(|| Tokens {
                input: tokens["input"].as_u64(),
                output: tokens["output"].as_u64(),
                reasoning: tokens["reasoning"].as_u64(),
                cache: Some(Cache {
                    read: tokens["cache"]["read"].as_u64(),
                    write: tokens["cache"]["write"].as_u64(),
                }),
            }),
        }),
        error: (!error.is_null()).then(|| Failure {
            name: text(error, "name"),
            data: Some(FailureData {
                message: text(data, "message")
                    .or_else(|| text(error, "message"))
                    .or_else(|| error.as_str().map(str::to_owned)),
                status_code: data["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok()),
                is_retryable: data["isRetryable"].as_bool(),
                reference: text(data, "ref"),
            }),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_type_loses_only_itself() {
        let line = parse(
            br#"{"type":"step_finish","sessionID":7,"part":{"reason":"stop","cost":"much","tokens":{"input":1.5,"output":2}}}"#,
        )
        .unwrap();
        let part = line.part.unwrap();
        assert_eq!((line.session, part.reason.as_deref(), part.cost), (None, Some("stop"), None));
        assert_eq!(part.tokens.map(|tokens| (tokens.input, tokens.output)), Some((None, Some(2))));
        let odd = parse(br#"{"type":"error","error":"out of luck"}"#).unwrap().error.unwrap();
        assert_eq!(odd.data.unwrap().message.as_deref(), Some("out of luck"));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut bytes = br#"{"type":"text","sessionID":"ses_1","part":{"text":"a"#.to_vec();
        bytes.extend_from_slice(b"\xff\\ud83d\"}}");
        let line = parse(&bytes).unwrap();
        assert_eq!(line.session.as_deref(), Some("ses_1"));
        assert_eq!(line.part.unwrap().text.as_deref(), Some("a\u{fffd}\u{fffd}"));
        assert_eq!(parse(b"[1]"), None);
        assert_eq!(parse(b"{"), None);
    }
}
