//! What keys and findings do.

use ratatui::crossterm::event::KeyCode;
use rejoin::history::{Resumability, SessionKind, Unresumable};

use super::support::{Desk, session, sessions};
use crate::args::ScopeChoice;
use crate::picker::state::{Effect, Input};

#[test]
fn the_newest_session_here_is_selected_and_enter_takes_it() {
    let mut desk = Desk::with_sessions(ScopeChoice::Here);
    assert_eq!(desk.shown(), ["0f3a1c", "1b2c3d", "2c3d4e"]);
    desk.key(KeyCode::Enter);
    assert_eq!(desk.chosen(), Some("0f3a1c"));
}

#[test]
fn tab_goes_from_here_to_the_repository_to_all_and_round() {
    let mut desk = Desk::with_sessions(ScopeChoice::Here);
    let mut counts = vec![desk.shown().len()];
    for _ in 0..3 {
        desk.key(KeyCode::Tab);
        counts.push(desk.shown().len());
    }
    assert_eq!(counts, [3, 4, 6, 3]);
}

#[test]
fn typing_narrows_and_erasing_widens() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.type_text("login");
    assert_eq!(desk.shown()[..2], ["0f3a1c", "3d4e5f"]);
    desk.type_text(" sso");
    assert_eq!(desk.shown(), ["3d4e5f"]);
    desk.control('w');
    assert_eq!(desk.picker.query, "login ");
    assert_eq!(desk.shown()[..2], ["0f3a1c", "3d4e5f"]);
    desk.control('u');
    assert_eq!(desk.shown().len(), 6);
}

#[test]
fn a_word_behind_a_wide_blank_is_erased_alone() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.type_text("日本\u{3000}語");
    desk.control('w');
    assert_eq!(desk.picker.query, "日本\u{3000}");
    desk.control('w');
    assert_eq!(desk.picker.query, "");
}

#[test]
fn narrowing_step_by_step_finds_what_a_search_from_the_beginning_finds() {
    for text in ["login bug", "clog", "the", "日本", "cellar", "zzz", "a\\ b"] {
        let mut typed = Desk::with_sessions(ScopeChoice::All);
        typed.type_text(text);
        let mut pasted = Desk::with_sessions(ScopeChoice::All);
        pasted.step(Input::Paste(text.to_owned()));
        assert_eq!(typed.shown(), pasted.shown(), "{text:?}");
    }
}

#[test]
fn a_search_that_was_overtaken_changes_nothing() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.slow = true;
    desk.type_text("login s");
    let searches = std::mem::take(&mut desk.waiting);
    desk.answer(searches.last().unwrap());
    let shown = desk.shown().join(" ");
    desk.answer(&searches[0]);
    assert_eq!(desk.shown().join(" "), shown);
}

#[test]
fn enter_before_the_search_is_done_takes_what_the_search_brings_to_the_top() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.slow = true;
    desk.type_text("cellar");
    desk.key(KeyCode::Enter);
    assert_eq!(desk.chosen(), None, "the row on the screen is not what was typed");
    let last = desk.waiting.pop().unwrap();
    desk.answer(&last);
    assert_eq!(desk.chosen(), Some("4e5f60"));
}

#[test]
fn enter_where_nothing_matches_takes_nothing() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.type_text("zzzzzz");
    assert!(desk.shown().is_empty());
    desk.key(KeyCode::Enter);
    assert_eq!(desk.chosen(), None);
}

#[test]
fn the_row_that_a_person_went_to_stays_selected_when_others_come() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.key(KeyCode::Down);
    desk.key(KeyCode::Down);
    let mut more = sessions();
    more.insert(0, session("claude", "newest", "Just begun", "/home/ada/shop", 0));
    desk.list(more);
    desk.key(KeyCode::Enter);
    assert_eq!(desk.chosen(), Some("2c3d4e"));
}

#[test]
fn who_went_nowhere_stays_at_the_newest() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    let mut more = sessions();
    more.insert(0, session("claude", "newest", "Just begun", "/home/ada/shop", 0));
    desk.list(more);
    desk.key(KeyCode::Enter);
    assert_eq!(desk.chosen(), Some("newest"));
}

#[test]
fn the_sessions_of_another_agent_stand_among_those_of_the_first() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.list(vec![session("codex", "c0de", "Between them", "/home/ada/shop", 2)]);
    assert_eq!(desk.shown()[..3], ["0f3a1c", "c0de", "1b2c3d"]);
}

#[test]
fn the_current_session_helpers_and_what_cannot_be_continued_are_not_offered() {
    let mut desk = Desk::new(ScopeChoice::All);
    let mut helper = session("claude", "helper", "A helper's", "/home/ada/shop", 1);
    helper.entry.kind = SessionKind::Sidechain;
    let mut empty = session("claude", "empty", "Nothing said", "/home/ada/shop", 1);
    empty.entry.resumable = Resumability::No(Unresumable::Empty);
    let current = session("claude", "current", "This one", "/home/ada/shop", 1);
    let mut archived = session("claude", "archived", "Put away", "/home/ada/shop", 1);
    archived.entry.resumable = Resumability::Archived;
    desk.list(vec![helper, empty, current, archived]);
    assert_eq!(desk.shown(), [""; 0]);
}

#[test]
fn moving_stops_at_both_ends_and_pages_go_by_the_size_of_the_screen() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.picker.set_page(2);
    desk.key(KeyCode::Up);
    assert_eq!(desk.picker.selected, 0);
    desk.key(KeyCode::PageDown);
    assert_eq!((desk.picker.selected, desk.picker.first), (2, 1));
    desk.key(KeyCode::End);
    assert_eq!((desk.picker.selected, desk.picker.first), (5, 4));
    desk.control('n');
    assert_eq!(desk.picker.selected, 5);
    desk.control('p');
    assert_eq!((desk.picker.selected, desk.picker.first), (4, 4));
    desk.key(KeyCode::Home);
    assert_eq!((desk.picker.selected, desk.picker.first), (0, 0));
}

#[test]
fn a_screen_that_shrinks_still_shows_the_selected_row() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.picker.set_page(6);
    desk.key(KeyCode::End);
    for page in [3, 1, 2, 6, 4] {
        desk.step(Input::Resize);
        desk.picker.set_page(page);
        let (first, selected) = (desk.picker.first, desk.picker.selected);
        assert!((first..first + page).contains(&selected), "{page}: {first} {selected}");
        assert!(first + page <= 6 || first == 0, "no room is wasted: {page} {first}");
    }
}

#[test]
fn last_turns_are_read_only_of_the_selected_session_and_late_ones_are_dropped() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    let first = desk.looked_at().unwrap().clone();
    desk.key(KeyCode::Down);
    let second = desk.looked_at().unwrap().clone();
    assert_eq!(second.listed.entry.id.as_str(), "1b2c3d");
    let lines = |text: &str| vec![(None, text.to_owned())];
    desk.step(Input::Preview { row: first, lines: lines("late") });
    assert!(desk.picker.preview.as_ref().unwrap().lines.is_none());
    desk.step(Input::Preview { row: second, lines: lines("in time") });
    assert_eq!(desk.picker.preview.as_ref().unwrap().lines, Some(lines("in time")));
    let asked = desk.effects.iter().filter(|effect| matches!(effect, Effect::Preview(_))).count();
    assert_eq!(asked, 2, "one a selection");
}

#[test]
fn a_question_mark_is_help_only_where_nothing_is_typed() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.key(KeyCode::Char('?'));
    assert!(desk.picker.help);
    desk.key(KeyCode::Esc);
    assert!(!desk.picker.help && desk.effects.iter().all(|effect| !matches!(effect, Effect::Leave)));
    desk.type_text("why?");
    assert_eq!(desk.picker.query, "why?");
    desk.key(KeyCode::F(1));
    assert!(desk.picker.help);
}

#[test]
fn escape_and_control_c_leave() {
    for leave in [|desk: &mut Desk| desk.key(KeyCode::Esc), |desk: &mut Desk| desk.control('c')] {
        let mut desk = Desk::with_sessions(ScopeChoice::All);
        leave(&mut desk);
        assert!(matches!(desk.effects.last(), Some(Effect::Leave)));
    }
}

#[test]
fn pasted_text_is_one_line_without_control_characters() {
    let mut desk = Desk::with_sessions(ScopeChoice::All);
    desk.step(Input::Paste("login\r\n\u{1b}[2J\tbug".to_owned()));
    assert_eq!(desk.picker.query, "login [2J bug");
}
