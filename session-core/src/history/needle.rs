//! What is searched for: in a text as people read it, and before that in the bytes that it is written in.

use std::ops::Range;

use super::{Block, EntryKind, HitPlace};

/// How many characters stand before and behind a match in an excerpt.
const AROUND: usize = 80;

/// The words of a [`SearchQuery`](super::SearchQuery), all of which have to be in one text, in any letter case.
#[derive(Debug)]
pub struct Needle {
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
    /// Words that are empty are left out. `None`: there is nothing to search for.
    #[must_use]
    pub fn new(words: &[String]) -> Option<Self> {
        let words: Vec<_> =
            words.iter().filter(|word| !word.is_empty()).map(|word| Word::new(word)).collect();
        (!words.is_empty()).then_some(Self { words })
    }

    /// Whether a record that holds it may be written in these pieces of JSON, none of which cuts a text in two. Much
    /// faster than to read them; `false` is sure.
    pub fn may_be_in<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>) -> bool {
        let mut pieces = pieces.into_iter();
        self.words.iter().all(|word| pieces.clone().any(|piece| word.may_be_in(piece)))
            || pieces.any(|piece| memchr::memmem::find(piece, b"\\u").is_some())
    }

    /// Whether all words are in what somebody said, or in a title: in which, what stands around the first of them, and where
    /// it stands therein. The texts of one record are one text, each on its own line.
    #[must_use]
    pub fn find_in(&self, record: &EntryKind) -> Option<(HitPlace, String, Range<usize>)> {
        let words = |blocks: &[Block]| {
            let texts = blocks.iter().filter_map(|block| match block {
                Block::Text(text) => Some(text.as_str()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        };
        let (place, found) = match record {
            EntryKind::Prompt(blocks) => (HitPlace::Prompt, self.find(&words(blocks))),
            EntryKind::Reply(blocks) => (HitPlace::Reply, self.find(&words(blocks))),
            EntryKind::Title { text, .. } => (HitPlace::Title, self.find(text)),
            _ => return None,
        };
        let (excerpt, matched) = found?;
        Some((place, excerpt, matched))
    }

    /// What stands around the first word, on one line and without control characters, and where the word stands therein,
    /// in bytes. `None`: not all words are in the text.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<(String, Range<usize>)> {
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

    fn may_be_in(needle: &Needle, pieces: &[&str]) -> bool {
        needle.may_be_in(pieces.iter().map(|piece| piece.as_bytes()))
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
                assert!(may_be_in(&needle, &[&line]), "{word:?} in {line}");
            }
        }
    }

    #[test]
    fn a_line_without_the_text_is_left_out_before_it_is_read() {
        assert!(!may_be_in(&needle(&["parser"]), &["{\"text\":\"a passer and a parse\"}"]));
        assert!(!may_be_in(&needle(&["parser", "gone"]), &["{\"text\":\"the PARSER\"}"]));
        assert!(may_be_in(&needle(&["parser"]), &["{\"text\":\"the PaRsEr\"}"]));
        assert!(may_be_in(&needle(&["parser", "gone"]), &["is gone", "the PARSER"]));
        assert!(!may_be_in(&needle(&["parser"]), &["a par", "ser"]));
        assert!(!may_be_in(&needle(&["ab"]), &["b"]));
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
