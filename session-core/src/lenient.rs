//! What decoders need for lines that are not quite what they should be.

use crate::AgentEvent;

/// How much of a line that is no event is passed on, in bytes.
const NOISE_LIMIT: usize = 2048;

impl AgentEvent<'_> {
    /// Passes on a line that is no event, with bytes that are not UTF-8 replaced, and cut after 2048 bytes.
    pub fn noise(line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        // A character cut in two at the limit becomes a replacement character.
        let line = String::from_utf8_lossy(&line[..line.len().min(NOISE_LIMIT)]);
        emit(&AgentEvent::Noise { line: &line });
    }
}

/// Replaces escaped halves of surrogate pairs, which JavaScript writes when it cuts a text, by the replacement
/// character: no reader of JSON takes them. What is no JSON comes back as it was, as far as it holds none.
#[must_use]
pub fn without_lone_surrogates(text: &str) -> String {
    /// The UTF-16 unit of a `\uXXXX` at the start.
    fn unit(escape: &str) -> Option<u16> {
        u16::from_str_radix(escape.strip_prefix("\\u")?.get(..4)?, 16).ok()
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            // An escape is a backslash and one more character.
            _ => escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end),
        };
        out.push_str(&escape[..taken]);
        rest = &escape[taken..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_are_replaced() {
        for (text, expected) in [
            (r"plain é 😀", r"plain é 😀"),
            (r"\ud83d\ude00", r"\ud83d\ude00"),
            (r"a\ud83d b", r"a\ufffd b"),
            (r"\ude00\ud83d", r"\ufffd\ufffd"),
            (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
            (r"\\ud83d", r"\\ud83d"),
            (r"\n\u00e9\", r"\n\u00e9\"),
            (r"\é", r"\é"),
            (r"\ud8", r"\ud8"),
        ] {
            assert_eq!(without_lone_surrogates(text), expected, "{text}");
        }
    }

    #[test]
    fn noise_is_text_and_short() {
        let mut seen = Vec::new();
        for line in [b"a\xffb".to_vec(), vec![b'x'; NOISE_LIMIT * 2]] {
            AgentEvent::noise(&line, &mut |event| match event {
                AgentEvent::Noise { line } => seen.push((*line).to_owned()),
                event => panic!("{event:?}"),
            });
        }
        assert_eq!(seen, ["a\u{fffd}b".to_owned(), "x".repeat(NOISE_LIMIT)]);
    }
}
