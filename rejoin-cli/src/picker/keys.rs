//! What a key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Something that a person does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Type a character.
    Type(char),
    /// Take the last character back.
    Erase,
    /// Take the last word back.
    EraseWord,
    /// Take all back.
    Clear,
    /// Go so many rows down, or up.
    Move(isize),
    /// Go so many pages down, or up.
    Page(isize),
    /// Go to the first row.
    First,
    /// Go to the last row.
    Last,
    /// Take the row.
    Choose,
    /// Leave without one.
    Leave,
    /// The next scope.
    NextScope,
    /// Show or hide the help.
    Help,
}

/// The act of a key; none of one that means nothing here. `?` is help only where nothing was typed.
pub(crate) fn act(key: KeyEvent, typed: bool) -> Option<Act> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    Some(match key.code {
        KeyCode::Char('c' | 'g') if control => Act::Leave,
        KeyCode::Char('n' | 'j') if control => Act::Move(1),
        KeyCode::Char('p' | 'k') if control => Act::Move(-1),
        KeyCode::Char('u') if control => Act::Clear,
        KeyCode::Char('w') if control => Act::EraseWord,
        KeyCode::Char('h') if control => Act::Erase,
        KeyCode::Char('d') if control && !typed => Act::Leave,
        KeyCode::Char('m') if control => Act::Choose,
        KeyCode::Backspace if alt || control => Act::EraseWord,
        KeyCode::Char('?') if !typed => Act::Help,
        KeyCode::F(1) => Act::Help,
        KeyCode::Char(c) if !control && !alt => Act::Type(c),
        KeyCode::Backspace => Act::Erase,
        KeyCode::Down => Act::Move(1),
        KeyCode::Up => Act::Move(-1),
        KeyCode::PageDown => Act::Page(1),
        KeyCode::PageUp => Act::Page(-1),
        KeyCode::Home => Act::First,
        KeyCode::End => Act::Last,
        KeyCode::Enter => Act::Choose,
        KeyCode::Esc => Act::Leave,
        KeyCode::Tab => Act::NextScope,
        _ => return None,
    })
}

/// The keys, for the help.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("type", "search; words in any order"),
    ("↑ ↓, ctrl-p ctrl-n", "one up or down"),
    ("page up, page down", "one page up or down"),
    ("home, end", "the first, the last"),
    ("tab", "here → repository → all"),
    ("ctrl-w, ctrl-u", "erase a word, erase all"),
    ("enter", "take this session"),
    ("esc, ctrl-c", "leave"),
    ("?", "this help, where nothing is typed; F1 else"),
];
