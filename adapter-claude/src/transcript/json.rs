//! A reader of JSON that steps over what nobody asks for. It takes every text that is JSON, and refuses what is cut off or
//! glued together: there, quotes or brackets do not come out even. What lies inside of a value that is stepped over is
//! not looked at closer.

use std::borrow::Cow;

use super::scan;

/// A place in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Json<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Json<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is no space, which is left where it is.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// How many bytes lie before it.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// What lies between this place and a later one.
    pub(super) fn until(self, later: &Self) -> &'a [u8] {
        &self.text[self.at..later.at]
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Whether nothing but space is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// A string, as it is written between its quotes.
    #[inline]
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let rest = self.behind_quote()?;
        let end = scan::end(rest)?;
        self.at += end + 2;
        Some(&rest[..end])
    }

    /// A key, as it is written, and whether there is no escape in it.
    #[inline]
    fn key(&mut self) -> Option<(&'a [u8], bool)> {
        let rest = self.behind_quote()?;
        if let Some(end) = scan::near_end(rest) {
            self.at += end + 2;
            return Some((&rest[..end], true));
        }
        let key = self.string()?;
        Some((key, !scan::has_escape(key)))
    }

    /// What stands behind the quote that is next, which is left where it is.
    #[inline]
    fn behind_quote(&mut self) -> Option<&'a [u8]> {
        if self.text.get(self.at) != Some(&b'"') && self.peek()? != b'"' {
            return None;
        }
        Some(&self.text[self.at + 1..])
    }

    /// Steps over a value.
    #[inline]
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' | b'[' => self.skip_nested(),
            _ => self.word().map(drop),
        }
    }

    /// A number, `true`, `false` or `null`, as it is written.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        let is_of_word = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'+' | b'-' | b'.' | b'E');
        while self.text.get(self.at).is_some_and(is_of_word) {
            self.at += 1;
        }
        (self.at > begin).then(|| &self.text[begin..self.at])
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match *self.text.get(self.at)? {
                b'"' => {
                    self.string()?;
                    // Mostly, a value or another member follows.
                    if matches!(self.text.get(self.at), Some(b':' | b',')) {
                        self.at += 1;
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Some(());
                    }
                }
                b' ' | b'\t' | b'\r' | b'\n' => {}
                ..0x20 => return None,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// A value, as it is written.
    pub(super) fn raw(&mut self) -> Option<&'a [u8]> {
        self.peek()?;
        let begin = self.at;
        self.skip()?;
        Some(&self.text[begin..self.at])
    }

    /// A string, as it is written. Of another value, nothing: it is stepped over.
    pub(super) fn maybe_string(&mut self) -> Option<Option<&'a [u8]>> {
        if self.peek()? == b'"' { self.string().map(Some) } else { self.skip().map(|()| None) }
    }

    /// Whether the value is `true`; it is stepped over.
    pub(super) fn is_true(&mut self) -> Option<bool> {
        Some(self.raw()? == b"true")
    }

    /// A number without sign and fraction. Of another value, nothing: it is stepped over.
    pub(super) fn maybe_number(&mut self) -> Option<Option<u64>> {
        self.peek()?;
        let before = self.at;
        let mut number = Some(0_u64);
        while let Some(digit @ b'0'..=b'9') = self.text.get(self.at) {
            number = number.and_then(|number| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
            self.at += 1;
        }
        if self.at > before && matches!(self.text.get(self.at), Some(b',' | b'}' | b']')) {
            return Some(number);
        }
        self.at = before;
        let raw = self.raw()?;
        let is_number = raw.iter().all(u8::is_ascii_digit);
        Some(std::str::from_utf8(raw).ok().filter(|_| is_number).and_then(|raw| raw.parse().ok()))
    }

    /// Goes through an object: `each` is given every key, and takes its value. A value that is no object is stepped over.
    pub(super) fn object(&mut self, mut each: impl FnMut(&mut Self, &[u8]) -> Option<()>) -> Option<()> {
        if self.peek()? != b'{' {
            return self.skip();
        }
        self.at += 1;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let (key, plain) = self.key()?;
            self.take(b':')?;
            if plain {
                each(self, key)?;
            } else {
                each(self, text(key).as_bytes())?;
            }
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Goes through an array: `each` takes every value. A value that is no array is stepped over.
    pub(super) fn array(&mut self, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if self.peek()? != b'[' {
            return self.skip();
        }
        self.at += 1;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            each(self)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }
}

/// What a string says, by what is written between its quotes. What is no text in it becomes the replacement character.
pub(super) fn text(raw: &[u8]) -> Cow<'_, str> {
    let written = std::str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed);
    if !scan::has_escape(raw) {
        return written;
    }
    if let Some(said) = unescape(written.as_bytes()) {
        return Cow::Owned(said);
    }
    let quoted = format!("\"{written}\"");
    let read = serde_json::from_str::<String>(&quoted)
        .or_else(|_| serde_json::from_str(&session_core::without_lone_surrogates(&quoted)));
    // Not even so: what is written is better than nothing.
    read.map_or(written, Cow::Owned)
}

/// The text without its escapes. `None`: it has one that is seldom, or is no text.
pub(super) fn unescape(written: &[u8]) -> Option<String> {
    if memchr::memchr(b'\\', written).is_none() {
        return std::str::from_utf8(written).ok().map(str::to_owned);
    }
    // Memory that has to be zero is never what was given back just now.
    let mut text = vec![b' '; written.len()];
    let (mut from, mut to) = (0, 0);
    // Code has an escape every few bytes: what is between is copied sixteen bytes at a time, some of them twice.
    while let Some(near) = written[from..].first_chunk() {
        text[to..to + 16].copy_from_slice(near);
        let Some(plain) = scan::backslash(near) else {
            (from, to) = (from + 16, to + 16);
            continue;
        };
        text[to + plain] = escape(*written.get(from + plain + 1)?)?;
        (from, to) = (from + plain + 2, to + plain + 1);
    }
    while let Some(byte) = written.get(from) {
        let escaped = *byte == b'\\';
        text[to] = if escaped { escape(*written.get(from + 1)?)? } else { *byte };
        (from, to) = (from + 1 + usize::from(escaped), to + 1);
    }
    text.truncate(to);
    String::from_utf8(text).ok()
}

/// What a backslash and this byte stand for, where it is an escape that is often written.
fn escape(byte: u8) -> Option<u8> {
    let stands_for = ESCAPES[usize::from(byte)];
    (stands_for != 0).then_some(stands_for)
}

/// A table: which one comes next cannot be foreseen.
const ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    (table[b'n' as usize], table[b't' as usize], table[b'r' as usize]) = (b'\n', b'\t', b'\r');
    (table[b'"' as usize], table[b'\\' as usize], table[b'/' as usize]) = (b'"', b'\\', b'/');
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_says_what_a_reader_of_all_of_json_reads(
            raw in "([a-z\u{e4}\u{1f600} ]|\\\\[nrtbf\"/\\\\]|\\\\u00[0-7][0-9a-f]|\\\\ud83d\\\\ude00){0,12}",
        ) {
            let read: String = serde_json::from_str(&format!("\"{raw}\"")).unwrap();
            prop_assert_eq!(text(raw.as_bytes()), read);
        }
    }

    #[test]
    fn what_is_no_escape_stays_as_it_is_written() {
        for raw in ["a\\x", "\\n\\", "\\u12"] {
            assert_eq!(text(raw.as_bytes()), raw);
        }
        assert_eq!(text(b"a\\ud83db\\n"), "a\u{fffd}b\n");
    }
}
