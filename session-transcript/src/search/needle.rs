//! What is searched for: in a text as people read it, and before that in the bytes of a line.

use std::ops::Range;

/// How many characters stand before and behind a match in an excerpt.
const AROUND: usize = 80;

/// Words, all of which have to be there.
#[derive(Debug)]
pub(super) struct Needle {
    words: Vec<Word>,
}

#[derive(Debug)]
struct Word {
    /// As it is compared.
    folded: String,
    /// A part of it that is written in a file as it is, but for the letter case; empty where there is none.
    plain: Vec<u8>,
    /// The rarest byte of it, in both cases, and where it stands.
    rare: (u8, u8, usize),
}

/// A character in the letter case that is compared. Characters that are another one's lower case in more or fewer than one
/// character, or ASCII ones of others, stay: so the bytes of a line tell enough.
fn fold(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) if !one.is_ascii() => one,
        _ => character,
    }
}

fn folded(text: &str) -> String {
    text.chars().map(fold).collect()
}

/// Whether JSON may hold it as it is only, but for `\u`: a character without a case, no quote, no backslash, no slash.
fn is_plain(character: char) -> bool {
    match character {
        '"' | '\\' | '/' => false,
        _ if character.is_ascii() => !character.is_ascii_control(),
        // U+2028 and its like are written in both ways, and `\u` is looked for.
        _ => character.to_lowercase().eq([character]) && character.to_uppercase().eq([character]),
    }
}

/// Letters by how often they stand in texts and code; what is not among them is rarer.
const FREQUENT: &[u8] = b" etaoinsrlducmpfhgbyvk0w1_x.-,2jqz";

impl Word {
    fn new(word: &str) -> Self {
        let folded = folded(word);
        let plain =
            folded.split(|character| !is_plain(character)).max_by_key(|part| part.len()).unwrap_or_default();
        let plain = plain.as_bytes().to_vec();
        let rank =
            |byte: &u8| FREQUENT.iter().position(|other| other == byte).map_or(0, |at| FREQUENT.len() - at);
        let at = (0..plain.len()).min_by_key(|at| rank(&plain[*at])).unwrap_or_default();
        let byte = plain.get(at).copied().unwrap_or_default();
        Self { folded, plain, rare: (byte, byte.to_ascii_uppercase(), at) }
    }

    /// Whether it may be in a line; `false` is sure, where no character is written as `\u`.
    fn may_be_in(&self, line: &[u8]) -> bool {
        if self.plain.is_empty() {
            // Letters of other alphabets, or nothing but quotes.
            return true;
        }
        let (lower, upper, at) = self.rare;
        memchr::memchr2_iter(lower, upper, line).any(|found| {
            let Some(begin) = found.checked_sub(at) else { return false };
            line.get(begin..begin + self.plain.len())
                .is_some_and(|bytes| bytes.eq_ignore_ascii_case(&self.plain))
        })
    }
}

impl Needle {
    /// `None`: there is nothing to search for.
    pub(super) fn new(words: &[String]) -> Option<Self> {
        let words: Vec<_> =
            words.iter().filter(|word| !word.is_empty()).map(|word| Word::new(word)).collect();
        (!words.is_empty()).then_some(Self { words })
    }

    /// Whether a record that holds it may be in the line.
    pub(super) fn may_be_in(&self, line: &[u8]) -> bool {
        self.words.iter().all(|word| word.may_be_in(line)) || memchr::memmem::find(line, b"\\u").is_some()
    }

    /// What stands around the first word, and where it stands therein; `None`: not all words are in the text.
    pub(super) fn find(&self, text: &str) -> Option<(String, Range<usize>)> {
        let all = folded(text);
        let first = all.find(&self.words.first()?.folded)?;
        if !self.words[1..].iter().all(|word| all.contains(&word.folded)) {
            return None;
        }
        // Folding keeps the number of characters, not of bytes.
        let before = all[..first].chars().count();
        let length = self.words[0].folded.chars().count();
        let begin = before.saturating_sub(AROUND);
        let mut excerpt = String::new();
        let (mut from, mut to) = (0, 0);
        for (at, character) in text.chars().enumerate().skip(begin).take(before - begin + length + AROUND) {
            if at == before {
                from = excerpt.len();
            }
            excerpt.push(if character.is_control() { ' ' } else { character });
            if at + 1 == before + length {
                to = excerpt.len();
            }
        }
        Some((excerpt, from..to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needle(words: &[&str]) -> Needle {
        Needle::new(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_line_that_holds_the_text_is_never_left_out() {
        for (word, text) in [
            ("naïve", "a NAÏVE thing"),
            ("say \"hi\"", "say \"HI\""),
            ("two\nlines", "Two\nLines"),
            ("back\\slash", "back\\slash"),
            ("a/b", "A/B"),
            ("日本", "日本語"),
            ("привет", "ПРИВЕТ мир"),
            ("🚀", "go 🚀🔥"),
            ("l\u{2028}s", "l\u{2028}s"),
            ("\"", "a \" b"),
        ] {
            let needle = needle(&[word]);
            let (excerpt, matched) = needle.find(text).unwrap_or_else(|| panic!("{word:?} in {text:?}"));
            assert_eq!(folded(&excerpt[matched]), folded(word).replace('\n', " "));
            let plain = serde_json::to_string(text).unwrap();
            let escaped: String = plain
                .chars()
                .map(|it| {
                    if it.is_ascii() {
                        it.to_string()
                    } else {
                        it.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
                    }
                })
                .collect();
            for line in [plain.replace('/', "\\/"), plain, escaped] {
                assert!(needle.may_be_in(line.as_bytes()), "{word:?} in {line}");
            }
        }
    }

    #[test]
    fn a_line_without_the_text_is_left_out_before_it_is_read() {
        assert!(!needle(&["parser"]).may_be_in(b"{\"text\":\"a passer and a parse\"}"));
        assert!(!needle(&["parser", "gone"]).may_be_in(b"{\"text\":\"the PARSER\"}"));
        assert!(needle(&["parser"]).may_be_in(b"{\"text\":\"the PaRsEr\"}"));
        assert!(!needle(&["ab"]).may_be_in(b"b"));
    }

    #[test]
    fn an_excerpt_is_short_on_one_line_and_shows_the_word() {
        let text = format!("{}\u{1b}[31m\nthe Word\tis{}", "é".repeat(500), "ü".repeat(500));
        let (excerpt, matched) = needle(&["word"]).find(&text).unwrap();
        assert_eq!(&excerpt[matched], "Word");
        assert!(excerpt.chars().count() <= 2 * AROUND + 4);
        assert!(!excerpt.contains(char::is_control), "{excerpt:?}");
        assert_eq!(needle(&["word", "missing"]).find(&text), None);
        assert_eq!(Needle::new(&[String::new()]).map(|_| ()), None);
    }
}
