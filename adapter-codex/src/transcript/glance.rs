//! What a line is, at a glance: what a list read in part does not show is stepped over. Lines are read so only where they are
//! written as the agent writes them; all others are read in full.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use session_core::history::{LineFacts, LineRole, RawTime};

use super::facts::facts;
use super::record::is_injected;

/// How a line begins.
const BEGIN: &[u8] = b"{\"timestamp\":\"";

static BEGIN_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(BEGIN));
static TYPE_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"type\""));

/// What of a header is long, and in no list.
const LONG: &[&[u8]] = &[b"base_instructions", b"dynamic_tools", b"instructions"];

pub(super) fn glance(line: &[u8]) -> Option<LineFacts<'_>> {
    if let Some(facts) = quick(line) {
        return Some(facts);
    }
    facts(line)
}

fn quick(line: &[u8]) -> Option<LineFacts<'_>> {
    let rest = line.strip_prefix(BEGIN)?;
    let (time, rest) = rest.split_at_checked(memchr::memchr(b'"', rest.get(..40)?)?)?;
    let mut rest = rest.strip_prefix(b"\",")?;
    if let Some(number) = rest.strip_prefix(b"\"ordinal\":") {
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = number[digits..].strip_prefix(b",")?;
    }
    let (kind, rest) = string(rest.strip_prefix(b"\"type\":")?)?;
    let payload = rest.strip_prefix(b",\"payload\":{")?;
    let time = std::str::from_utf8(time).ok().filter(|time| !time.contains('\\'))?;
    let (role, cwd) = match kind {
        b"response_item" if is_item(payload) => (LineRole::Other, None),
        b"event_msg" if is_silent(payload) => (LineRole::Other, None),
        b"event_msg" => (event(payload)?, None),
        b"turn_context" => turn(payload)?,
        b"session_meta" => return header(line, payload),
        _ => return None,
    };
    let time = Some(RawTime::Text(Cow::Borrowed(time)));
    Some(LineFacts { role, time, cwd, ..LineFacts::default() })
}

/// Whether it is what goes to the model and comes from it, which is long, and tells nothing; and not more than one record.
fn is_item(payload: &[u8]) -> bool {
    payload.trim_ascii_end().ends_with(b"}}") && BEGIN_FINDER.find(payload).is_none()
}

/// Whether something happened that no list shows. Totals are those of a part, and no use. If not, it may still be so.
fn is_silent(payload: &[u8]) -> bool {
    let Some((kind, rest)) = payload.strip_prefix(b"\"type\":").and_then(string) else { return false };
    // Nothing behind it can be another type, of this record or of one that is glued to it.
    !tells(kind)
        && rest.trim_ascii_end().ends_with(b"}}")
        && memchr::memchr(b'\\', rest).is_none()
        && TYPE_FINDER.find(rest).is_none()
}

/// Whether a list may show what an event of this kind, as it is written, tells.
fn tells(kind: &[u8]) -> bool {
    matches!(kind, b"user_message" | b"agent_message" | b"item_completed" | b"thread_rolled_back")
        || kind.contains(&b'\\')
}

fn event(payload: &[u8]) -> Option<LineRole<'_>> {
    let [kind, message, item] = fields(payload, [b"type", b"message", b"item"])?;
    Some(match string(kind?)?.0 {
        b"agent_message" => LineRole::Reply { reply: None, usage: None, model: None },
        b"user_message" if item.is_none() => {
            let text = plain(message?).filter(|text| !is_injected(text))?;
            LineRole::Prompt { text: Cow::Borrowed(text), command: false, queued: false }
        }
        kind if !tells(kind) => LineRole::Other,
        _ => return None,
    })
}

/// The model and the folder of a turn.
fn turn(payload: &[u8]) -> Option<(LineRole<'_>, Option<Cow<'_, str>>)> {
    let [cwd, model] = fields(payload, [b"cwd", b"model"])?;
    let (cwd, model) = (plain(cwd?)?, plain(model?)?);
    let role = if model.is_empty() { LineRole::Other } else { LineRole::Model(Cow::Borrowed(model)) };
    Some((role, (!cwd.is_empty()).then_some(Cow::Borrowed(cwd))))
}

/// A header, read without what is long in it.
fn header(line: &[u8], payload: &[u8]) -> Option<LineFacts<'static>> {
    let begin = line.len() - payload.len();
    let mut short = Vec::with_capacity(1 << 10);
    short.extend_from_slice(&line[..begin]);
    let rest = members(payload, |member| {
        if !LONG.contains(&member.key) {
            if short.len() > begin {
                short.push(b',');
            }
            short.extend_from_slice(member.whole);
        }
    })?;
    short.extend_from_slice(b"}}");
    let LineFacts { role: LineRole::Header { id, parent, kind }, time, cwd, branch, .. } =
        facts(&short).filter(|_| is_end(rest))?
    else {
        return None;
    };
    let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
    Some(LineFacts {
        role: LineRole::Header { id: owned(id), parent, kind },
        time: time.map(|time| match time {
            RawTime::Text(text) => RawTime::Text(Cow::Owned(text.into_owned())),
            RawTime::Number(number) => RawTime::Number(number),
        }),
        cwd: owned(cwd),
        branch: owned(branch),
        ..LineFacts::default()
    })
}

/// The values of these members of a payload. `None`: one of them stands twice, or something stands behind the payload.
fn fields<'a, const N: usize>(payload: &'a [u8], names: [&[u8]; N]) -> Option<[Option<&'a [u8]>; N]> {
    let (mut values, mut again) = ([None; N], false);
    let rest = members(payload, |Member { key, value, .. }| {
        if let Some(at) = names.iter().position(|name| *name == key) {
            again |= values[at].replace(value).is_some();
        }
    })?;
    (!again && is_end(rest)).then_some(values)
}

/// What a string says that has no escapes.
fn plain(value: &[u8]) -> Option<&str> {
    let (text, _) = string(value)?;
    std::str::from_utf8(text).ok().filter(|_| memchr::memchr(b'\\', text).is_none())
}

/// Whether a line ends behind its payload.
fn is_end(rest: &[u8]) -> bool {
    rest.trim_ascii_end() == b"}"
}

/// One member of an object, as it is written.
struct Member<'a> {
    key: &'a [u8],
    value: &'a [u8],
    whole: &'a [u8],
}

/// Goes through an object, from behind its brace on, and gives what stands behind it. `None`: it is not whole, or not written as
/// the agent does, without space and without escapes in keys.
fn members<'a>(mut text: &'a [u8], mut each: impl FnMut(Member<'a>)) -> Option<&'a [u8]> {
    loop {
        let (key, rest) = string(text)?;
        if key.contains(&b'\\') {
            return None;
        }
        let from = rest.strip_prefix(b":")?;
        let rest = behind(from)?;
        let (value, whole) = (&from[..from.len() - rest.len()], &text[..text.len() - rest.len()]);
        each(Member { key, value, whole });
        match rest.split_first()? {
            (b',', rest) => text = rest,
            (b'}', rest) => return Some(rest),
            _ => return None,
        }
    }
}

/// A string, as it is written between its quotes, and what stands behind it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let is_escaped = |at: usize| text[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    let end = memchr::memchr_iter(b'"', text).find(|at| !is_escaped(*at))?;
    Some((&text[..end], &text[end + 1..]))
}

/// What stands behind a value. What lies inside of it is not looked at closer than its quotes and the number of its brackets.
fn behind(text: &[u8]) -> Option<&[u8]> {
    let (mut text, mut depth) = (text, 0_usize);
    loop {
        let byte = *text.first()?;
        match byte {
            b'"' => text = string(text)?.1,
            b'{' | b'[' => {
                depth += 1;
                text = &text[1..];
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                text = &text[1..];
            }
            _ if depth == 0 => {
                let end = text.iter().position(|byte| matches!(byte, b',' | b'}' | b']'))?;
                return (end > 0).then(|| &text[end..]);
            }
            _ => text = &text[1..],
        }
        if depth == 0 {
            return Some(text);
        }
    }
}

#[cfg(test)]
#[path = "glance_tests.rs"]
mod tests;
