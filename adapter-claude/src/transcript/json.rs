//! A reader of JSON that steps over what nobody asks for. It takes every text that is JSON, and refuses what is cut off or
//! glued together: there, quotes or brackets do not come out even. What lies inside of a value that is stepped over is
//! not looked at closer.

use std::borrow::Cow;

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
        if self.text.get(self.at) != Some(&b'"') && self.peek()? != b'"' {
            return None;
        }
        let rest = &self.text[self.at + 1..];
        let mut end = quote(rest)?;
        if end > 0 && rest[end - 1] == b'\\' {
            end = unescaped(rest, end)?;
        }
        self.at += end + 2;
        Some(&rest[..end])
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
    fn word(&mut self) -> Option<&'a [u8]> {
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
        let raw = self.raw()?;
        let digits = raw.iter().try_fold(0_u64, |sum, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        });
        Some(digits.filter(|_| !raw.is_empty()))
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
            self.peek()?;
            let key = self.string()?;
            self.take(b':')?;
            if has_escape(key) {
                each(self, text(key).as_bytes())?;
            } else {
                each(self, key)?;
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

/// Where the next quote is. Most strings are short: those are looked at sixteen bytes at a time, without a branch on where
/// among these it is.
#[inline]
fn quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    for [low, high] in text.as_chunks::<8>().0.as_chunks::<2>().0.iter().take(4) {
        let low = equal(u64::from_le_bytes(*low), b'"');
        let high = equal(u64::from_le_bytes(*high), b'"');
        if low | high != 0 {
            let (found, skipped) = if low != 0 { (low, 0) } else { (high, 8) };
            return Some(at + skipped + found.trailing_zeros() as usize / 8);
        }
        at += 16;
    }
    memchr::memchr(b'"', &text[at..]).map(|more| at + more)
}

/// Where the string ends that holds a quote there, behind a backslash.
#[inline(never)]
fn unescaped(text: &[u8], mut quote: usize) -> Option<usize> {
    loop {
        let escapes = text[..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 0 {
            return Some(quote);
        }
        quote += 1;
        quote += self::quote(&text[quote..])?;
    }
}

/// The high bit of each byte that is this one; above the lowest such bit, others may be set.
const fn equal(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let other = word ^ (ONES * byte as u64);
    other.wrapping_sub(ONES) & !other & (ONES << 7)
}

/// Whether there is a backslash.
#[inline]
fn has_escape(text: &[u8]) -> bool {
    let mut words = text.chunks_exact(8);
    let any = words.by_ref().fold(0, |any, word| {
        any | equal(u64::from_le_bytes(word.try_into().expect("chunks of eight")), b'\\')
    });
    any != 0 || words.remainder().contains(&b'\\')
}

/// What a string says, by what is written between its quotes. What is no text in it becomes the replacement character.
pub(super) fn text(raw: &[u8]) -> Cow<'_, str> {
    let written = std::str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed);
    if !has_escape(raw) {
        return written;
    }
    let quoted = format!("\"{written}\"");
    let read = serde_json::from_str::<String>(&quoted)
        .or_else(|_| serde_json::from_str(&session_core::without_lone_surrogates(&quoted)));
    // Not even so: what is written is better than nothing.
    read.map_or(written, Cow::Owned)
}

/// Whether there is a control character in the line: those are none in a string, so it has to be looked at closer.
pub(super) fn has_control(line: &[u8]) -> bool {
    line.chunks(4096).any(|chunk| chunk.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < 0x20)
}
