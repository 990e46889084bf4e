//! Text of others, made safe for a terminal: titles, prompts and paths may hold anything.

use std::fmt::Write as _;
use std::path::Path;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether a character could move the cursor, change colours, turn the direction of what stands beside it, end a line
/// where none ends, or hide itself.
pub(crate) const fn is_hostile(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

fn push(out: &mut String, c: char) {
    if is_hostile(c) {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

/// The text on one line. White space of any kind is one blank, what is hostile is written as `\u{…}`.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for c in text.trim().chars() {
        if c.is_whitespace() && !matches!(c, '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1f}' | '\u{85}') {
            blank = true;
            continue;
        }
        if std::mem::take(&mut blank) {
            out.push(' ');
        }
        push(&mut out, c);
    }
    out
}

/// The text with its lines kept. A tab is four blanks, what is hostile is written as `\u{…}`.
pub(crate) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => out.push('\n'),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\t' => out.push_str("    "),
            c => push(&mut out, c),
        }
    }
    out
}

/// A path as people see it: below the home with `~`.
pub(crate) fn path(path: &Path, home: Option<&Path>) -> String {
    let below =
        home.filter(|home| home.components().count() > 1).and_then(|home| path.strip_prefix(home).ok());
    match below {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", line(&rest.to_string_lossy())),
        None => line(&path.to_string_lossy()),
    }
}

/// So many of something, in words; of several, with an `s`.
pub(crate) fn number(number: u64, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// How many turns, in words.
pub(crate) fn turns(number: u64) -> String {
    self::number(number, "turn")
}

/// How many columns the text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text in at most so many columns; what is cut off is told by `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut taken = 1;
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// The end of a text in at most so many columns; what is cut off before it is told by `…`. Of a path, the end tells most.
pub(crate) fn cut_left(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = 1;
    let kept = text.char_indices().rev().take_while(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken <= columns
    });
    let from = kept.last().map_or(text.len(), |(at, _)| at);
    if columns > 0 { format!("…{}", &text[from..]) } else { String::new() }
}

/// The text [cut](cut) to exactly so many columns.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let mut out = cut(text, columns);
    let missing = columns.saturating_sub(width(&out));
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

/// A JSON document in which nothing is hostile: such characters stand in strings alone, so they can be escaped there.
pub(crate) fn json(document: &str) -> String {
    if !document.chars().any(is_hostile) {
        return document.to_owned();
    }
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if is_hostile(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// A word of a command line for a shell. What is hostile is written in `$'…'`, which bash, zsh and ksh read.
pub(crate) fn shell(word: &str) -> String {
    let is_safe = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '=' | ':' | ',' | '+' | '@')
    };
    if !word.is_empty() && word.chars().all(is_safe) {
        return word.to_owned();
    }
    if !word.chars().any(is_hostile) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            // Never as they are: a shell that does not know `$'…'` would see the word end at the quote.
            '\'' => out.push_str(r"\047"),
            '\\' => out.push_str(r"\134"),
            c if is_hostile(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_or_turns_the_direction_is_left_of_a_title() {
        let title = "a\u{1b}[2Jb\u{9b}31m\u{202e}c\u{2066}d\r\ne\u{7}\u{e0041}\u{2028}f";
        for text in [line(title), lines(title), path(Path::new(title), None), shell(title), json(title)] {
            assert!(!text.chars().any(|c| is_hostile(c) && c != '\n'), "{text:?}");
        }
        assert_eq!(line(title), r"a\u{1b}[2Jb\u{9b}31m\u{202e}c\u{2066}d e\u{7}\u{e0041} f");
    }

    #[test]
    fn lines_stay_lines_and_carriage_returns_at_their_ends_go() {
        assert_eq!(lines("a\r\n\tb\rc"), "a\n    b\\u{d}c");
    }

    #[test]
    fn a_cut_text_takes_no_more_columns_than_it_may() {
        for columns in 0..12 {
            assert!(width(&cut("日本語のタイトル", columns)) <= columns);
            assert_eq!(width(&fit("日本語のタイトル", columns)), columns);
            assert!(width(&cut_left("/日本語/のタイトル", columns)) <= columns);
        }
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!((cut_left("/a/b/src", 5).as_str(), cut_left("/a", 5).as_str()), ("…/src", "/a"));
    }

    #[test]
    fn an_escaped_document_is_the_same_document() {
        let value = serde_json::json!({ "t": "a\u{2028}\u{2029}\u{9b}\u{e0041}ü" });
        let text = json(&value.to_string());
        assert!(text.contains(r"\u2028\u2029\u009b\udb40\udc41ü"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_word_for_a_shell_is_one_word() {
        assert_eq!(shell("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(shell("/a b"), "'/a b'");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell(""), "''");
        assert_eq!(shell("a\u{1b}\\b"), r"$'a\033\134b'");
        assert_eq!(shell("a\n'\u{9b}"), r"$'a\012\047\302\233'");
    }

    #[test]
    fn a_home_of_the_root_folder_shortens_nothing() {
        assert_eq!(path(Path::new("/a/b"), Some(Path::new("/"))), "/a/b");
        assert_eq!(path(Path::new("/home/x/b"), Some(Path::new("/home/x"))), "~/b");
        assert_eq!(path(Path::new("/home/x"), Some(Path::new("/home/x"))), "~");
    }
}
