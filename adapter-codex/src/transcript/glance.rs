//! What a line is, at a glance: what a list read in part does not show is stepped over. Lines are read so only where they are
//! written as the agent writes them; all others are read in full.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use session_core::history::{LineFacts, LineRole, RawTime};

use super::facts::facts;

/// How a line begins.
const BEGIN: &[u8] = b"{\"timestamp\":\"";

static BEGIN_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(BEGIN));

/// What of a header is long, and in no list.
const LONG: &[&[u8]] = &[b"base_instructions", b"dynamic_tools", b"instructions"];

pub(super) fn glance(line: &[u8]) -> Option<LineFacts<'_>> {
    quick(line).or_else(|| facts(line))
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
    let role = match kind {
        b"response_item" => item(payload)?,
        b"event_msg" => event(payload)?,
        b"session_meta" => return header(line, payload),
        _ => return None,
    };
    let time = std::str::from_utf8(time).ok().filter(|time| !time.contains('\\'))?;
    Some(LineFacts { role, time: Some(RawTime::Text(Cow::Borrowed(time))), ..LineFacts::default() })
}

/// What goes to the model and comes from it is long, and tells nothing. `None`: it may be more than one record.
fn item(payload: &[u8]) -> Option<LineRole<'static>> {
    let whole = payload.trim_ascii_end().ends_with(b"}}") && BEGIN_FINDER.find(payload).is_none();
    whole.then_some(LineRole::Other)
}

/// What happened, where a list does not show it. Totals are those of a part, and no use.
fn event(payload: &[u8]) -> Option<LineRole<'static>> {
    let mut kind = None;
    let mut again = false;
    let rest = members(payload, |member| {
        if member.key == b"type" {
            again |= kind.replace(member.value).is_some();
        }
    })?;
    if again || !is_end(rest) {
        return None;
    }
    match string(kind?)?.0 {
        b"user_message" | b"item_completed" | b"thread_rolled_back" => None,
        b"agent_message" => Some(LineRole::Reply { reply: None, usage: None, model: None }),
        kind => (!kind.contains(&b'\\')).then_some(LineRole::Other),
    }
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
    let is_escaped =
        |at: usize| text[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
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
