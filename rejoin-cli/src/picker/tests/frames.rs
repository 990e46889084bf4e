//! Frames, as docs/cli/picker.md shows them.

use std::fmt::Write as _;
use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;

use super::support::{Desk, sessions};
use crate::args::ScopeChoice;
use crate::output::Style;
use crate::picker::state::Input;
use crate::picker::view::{self, Theme};
use crate::plain::{is_hostile, width};

/// What is on a screen of this size.
fn frame(desk: &mut Desk, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| view::draw(&mut desk.picker, Theme { color: false }, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..rows {
        let mut line = String::new();
        let mut x = 0;
        while x < columns {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // The cell behind a wide character is empty.
            x += u16::try_from(width(symbol)).unwrap().max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn said(desk: &mut Desk) {
    let row = desk.looked_at().unwrap().clone();
    let lines = vec![
        (Some(Style::Bold), "› Fix the login bug".to_owned()),
        (None, "  The session cookie is set without a path. I will change that.".to_owned()),
        (Some(Style::Dim), "  ⚙ Edit {\"file\":\"login.rs\"}".to_owned()),
        (Some(Style::Bold), "› Now add a test for it".to_owned()),
        (None, "  Done: `a_cookie_is_sent_to_every_page`.".to_owned()),
    ];
    desk.step(Input::Preview { row, lines });
}

/// The states that the page shows, in order.
fn recording() -> String {
    let mut page = String::from(include_str!("picker.md.head"));
    let mut shot = |title: &str, text: &str, frame: &str| {
        write!(page, "\n## {title}\n\n{text}\n\n```text\n{frame}```\n").unwrap();
    };
    let mut desk = Desk::new(ScopeChoice::Here);
    shot("The first frame", "It comes before anything is read.", &frame(&mut desk, 76, 7));
    desk.list(sessions());
    let text = "The beginning and the end of each file are read first, then all of it. Nobody has to wait for either.";
    shot("The first sessions", text, &frame(&mut desk, 76, 7));
    desk.step(Input::Complete);
    said(&mut desk);
    let text =
        "The last turns of the selected session stand below the list, or beside it where there is room.";
    shot("All is read", text, &frame(&mut desk, 76, 22));
    shot(
        "On a wide screen",
        "Long lines of what was said are wrapped, long titles are cut.",
        &frame(&mut desk, 120, 12),
    );
    desk.key(KeyCode::Tab);
    desk.key(KeyCode::Tab);
    let text = "Tab goes from this folder to the repository's work trees and to everything. What a title holds that would \
                change the screen is written out.";
    shot("All folders", text, &frame(&mut desk, 76, 9));
    desk.type_text("login");
    desk.key(KeyCode::Down);
    shot(
        "A search",
        "Words in any order, in titles, first prompts, branches, folders and ids.",
        &frame(&mut desk, 76, 9),
    );
    desk.type_text(" cellar");
    shot("Nothing found", "Ctrl-w takes the last word back.", &frame(&mut desk, 76, 5));
    desk.control('u');
    desk.key(KeyCode::Char('?'));
    shot("The keys", "Any key goes on.", &frame(&mut desk, 76, 14));
    page
}

#[test]
fn the_page_on_the_picker_shows_what_it_draws() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli/picker.md");
    let page = recording();
    // The house renders its documents anew on request only.
    if std::env::var_os("REJOIN_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        there, page,
        "render it anew: REJOIN_UPDATE=1 cargo test -p rejoin-cli the_page_on_the_picker"
    );
}

#[test]
fn no_frame_holds_what_would_change_the_screen() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.step(Input::Trouble("\u{1b}]0;owned\u{7}".to_owned()));
    let frame = frame(&mut desk, 100, 20);
    assert!(!frame.chars().any(|c| c != '\n' && is_hostile(c)), "{frame}");
    assert!(frame.contains(r"\u{1b}[2J"), "{frame}");
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    for columns in [1, 2, 5, 13, 40, 89, 90, 200] {
        for rows in [1, 2, 3, 5, 17, 60] {
            let mut desk = Desk::with_sessions(ScopeChoice::All);
            desk.type_text("日本語の");
            desk.control('u');
            said(&mut desk);
            desk.picker.help = true;
            let drawn = frame(&mut desk, columns, rows);
            assert_eq!(drawn.lines().count(), usize::from(rows));
        }
    }
}
