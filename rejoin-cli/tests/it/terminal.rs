//! The picker in a pseudo-terminal. Nothing here waits for a time: only for what is on the screen, or for an end.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};

use crate::support::Machine;
use crate::support::sessions::{CHANGELOG, Claude, LOGIN};

/// After so long without the awaited, a test has failed. Nothing is slower for it.
const NEVER: Duration = Duration::from_secs(60);

/// The command in a terminal.
struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    bytes: Receiver<Vec<u8>>,
    parser: vt100::Parser,
}

impl Terminal {
    fn start(machine: &Machine, words: &[&str]) -> Self {
        Self::with(machine, words, |command| command)
    }

    fn with(machine: &Machine, words: &[&str], change: impl FnOnce(Command) -> Command) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(24, 80)).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_rejoin"))
            .args(words)
            .env_clear()
            .env("HOME", &machine.home)
            .env("PATH", machine.home.join("bin"))
            .env("TERM", "xterm-256color")
            .current_dir(&machine.project);
        let child = change(command).spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let (sender, bytes) = channel();
        let reader = Arc::clone(&pty);
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            // The terminal ends with an error once nobody has it open.
            while let Ok(read @ 1..) = (&*reader).read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { pty, child, bytes, parser: vt100::Parser::new(24, 80, 0) }
    }

    fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the screen is as it should be.
    fn until(&mut self, what: &str, is: impl Fn(&str) -> bool) {
        while !is(&self.screen()) {
            match self.bytes.recv_timeout(NEVER) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(error) => panic!("no {what} ({error}):\n{}", self.screen()),
            }
        }
    }

    fn until_shows(&mut self, text: &str) {
        self.until(text, |screen| screen.contains(text));
    }

    fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        self.parser.screen_mut().set_size(rows, columns);
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    /// Waits for the end, and looks whether the terminal is as it was.
    fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.bytes.recv_timeout(NEVER) {
            self.parser.process(&bytes);
        }
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen(), "the other screen was left");
        assert!(
            !screen.hide_cursor() && !screen.bracketed_paste(),
            "the cursor is back, and pasting is as it was"
        );
        let modes = tcgetattr(&*self.pty).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "lines are edited and echoed again");
        (status, screen.contents())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// So many sessions of one turn, each with a title and an answer of its own.
fn many(machine: &Machine, sessions: u32) {
    for number in 0..sessions {
        let id = format!("{number:08x}-2222-4222-8222-000000000002");
        let answer = format!("The answer of {number}.");
        Claude::new(machine, &id, &machine.project, number % 60)
            .turn("Do what the title says", &answer)
            .title(&format!("Piece of work number {number} of many"))
            .write();
    }
}

#[test]
fn one_of_five_thousand_sessions_is_picked() {
    let machine = Machine::new();
    many(&machine, 5000);
    let mut terminal = Terminal::start(&machine, &["resume"]);
    // Keys are taken while sessions are still being read.
    terminal.until_shows("esc leave");
    terminal.press("number 4321");
    terminal.until("one that fits, with its last turns", |screen| {
        let selected =
            screen.lines().any(|line| line.starts_with('▌') && line.contains("number 4321 of many"));
        selected && screen.contains("/5000 · here") && screen.contains("The answer of 4321.")
    });
    terminal.press("\r");
    let (status, screen) = terminal.end();
    assert!(status.success(), "{screen}");
    let screen = screen.replace('\n', "");
    assert!(screen.contains("claude --resume 000010e1-2222-4222-8222-000000000002"), "{screen}");
    assert!(
        !screen.contains('▌') && !screen.contains("esc leave"),
        "nothing of the picker is left: {screen}"
    );
}

#[test]
fn escape_leaves_a_terminal_as_it_was() {
    let machine = Machine::with_sessions();
    let mut terminal = Terminal::start(&machine, &["resume"]);
    terminal.until_shows("Fix the login bug");
    terminal.press("\u{1b}");
    let (status, screen) = terminal.end();
    assert_eq!((status.code(), screen.as_str()), (Some(130), ""));
}

#[test]
fn a_signal_ends_the_picker_and_leaves_a_terminal_as_it_was() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let machine = Machine::with_sessions();
        let mut terminal = Terminal::start(&machine, &["resume"]);
        terminal.until_shows("Fix the login bug");
        kill_process(Pid::from_child(&terminal.child), signal).unwrap();
        let (status, screen) = terminal.end();
        assert_eq!((status.code(), status.signal(), screen.as_str()), (Some(code), None, ""));
    }
}

#[test]
fn a_terminal_of_another_size_is_filled_anew() {
    let machine = Machine::with_sessions();
    let mut terminal = Terminal::start(&machine, &["resume"]);
    terminal.until("the preview below", |screen| screen.contains("There is one now."));
    terminal.resize(10, 120);
    terminal.until("the preview beside", |screen| {
        let lines: Vec<_> = screen.lines().collect();
        lines.len() == 10 && lines[9].contains("esc leave") && lines[1].contains('┌')
    });
    terminal.resize(5, 40);
    terminal.until("a list alone", |screen| {
        screen.lines().nth(4).is_some_and(|line| !line.is_empty()) && !screen.contains('┌')
    });
    terminal.press("\u{3}");
    assert_eq!(terminal.end().0.code(), Some(130));
}

#[test]
fn scope_and_help_have_their_keys() {
    let machine = Machine::with_sessions();
    let mut terminal = Terminal::start(&machine, &["resume", "--current", LOGIN]);
    terminal.until("the others of this folder", |screen| {
        screen.contains("2/2 · here") && !screen.contains("reading") && !screen.contains("Fix the login bug")
    });
    terminal.press("\t\t");
    terminal.until_shows("3/3 · all");
    terminal.press("?");
    terminal.until_shows("┌ keys");
    terminal.press("\u{1b}");
    terminal.until("no help", |screen| !screen.contains("┌ keys"));
    terminal.press("\u{3}");
    assert_eq!(terminal.end().0.code(), Some(130));
}

#[test]
fn exec_starts_the_agent_in_the_folder_of_the_session() {
    let machine = Machine::with_sessions();
    machine.install(
        "claude",
        "#!/bin/sh\necho \"started with $* in $PWD\"\nread -r line\necho \"read $line\"\nexit 7\n",
    );
    let mut terminal = Terminal::start(&machine, &["resume", "--exec"]);
    terminal.until_shows("Fix the login bug");
    terminal.press("changelog");
    terminal.until("the row", |screen| {
        screen.lines().any(|line| line.starts_with("▌") && line.contains("changelog"))
    });
    terminal.press("\r");
    terminal.until("the agent", |screen| {
        screen.replace('\n', "").contains(&format!("started with --resume {CHANGELOG}"))
    });
    terminal.press("hello\r");
    terminal.until_shows("read hello");
    let (status, screen) = terminal.end();
    assert_eq!(status.code(), Some(7), "it has the place of the command: {screen}");
}

#[test]
fn what_is_picked_goes_to_stdout_alone() {
    let machine = Machine::with_sessions();
    let mut terminal =
        Terminal::with(&machine, &["resume", "--pick"], |command| command.stdout(Stdio::piped()));
    let mut stdout = terminal.child.stdout.take().unwrap();
    terminal.until_shows("Fix the login bug");
    terminal.press("\r");
    let (status, screen) = terminal.end();
    assert!(status.success() && screen.is_empty(), "{screen}");
    let mut line = String::new();
    stdout.read_to_string(&mut line).unwrap();
    assert_eq!(line, format!("cd {} && claude --resume {LOGIN}\n", machine.project.display()));
}

#[test]
fn without_colours_a_frame_has_none() {
    let machine = Machine::with_sessions();
    for (name, value, colours) in [("NO_COLOR", "1", false), ("IGNORED", "1", true)] {
        let mut terminal = Terminal::with(&machine, &["resume"], |command| command.env(name, value));
        terminal.until_shows("Fix the login bug");
        let screen = terminal.parser.screen();
        let (rows, columns) = screen.size();
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let mut cells = cells.filter_map(|(row, column)| screen.cell(row, column));
        assert_eq!(cells.any(|cell| cell.fgcolor() != vt100::Color::Default), colours, "{name}");
        terminal.press("\u{3}");
        terminal.end();
    }
}

#[test]
fn on_a_narrow_terminal_ids_are_cut_as_far_as_they_are_unique_and_folders_from_the_left() {
    let machine = Machine::new();
    let folder = machine.folder("a-folder-with-a-very-long-name/and-another-one-in-it/src");
    for id in ["0f3a1c00-1111-4111-8111-000000000001", "0f3a1c00-1222-4111-8111-000000000002"] {
        Claude::new(&machine, id, &folder, 30).turn("Fix what is broken here", "Yes.").write();
    }
    let (status, screen) = Terminal::start(&machine, &["list"]).end();
    assert!(status.success());
    let lines: Vec<_> = screen.lines().collect();
    assert_eq!(lines.len(), 2, "{screen}");
    for (line, id) in lines.iter().zip(["0f3a1c00-11 ", "0f3a1c00-12 "]) {
        assert!(
            line.contains(id) && line.contains("Fix what is broken") && line.ends_with("in-it/src"),
            "{screen}"
        );
    }
}

#[test]
fn a_terminal_that_knows_no_escape_codes_gets_none() {
    let machine = Machine::new();
    many(&machine, 2);
    let run = |words: &[&str], variable: (&str, &str)| {
        let (name, value) = (variable.0.to_owned(), variable.1.to_owned());
        let mut terminal = Terminal::with(&machine, words, move |command| command.env(name, value));
        let status = terminal.child.wait().unwrap();
        let mut bytes = Vec::new();
        while let Ok(more) = terminal.bytes.recv_timeout(NEVER) {
            bytes.extend(more);
        }
        (status.code(), String::from_utf8(bytes).unwrap())
    };
    for words in [&["list"][..], &["search", "answer"], &["doctor"]] {
        let (code, said) = run(words, ("TERM", "dumb"));
        assert!(code == Some(0) && !said.contains('\u{1b}'), "{words:?}: {said:?}");
    }
    let (code, said) = run(&["resume"], ("TERM", "dumb"));
    assert!(code == Some(2) && !said.contains('\u{1b}') && said.contains("TERM is dumb"), "{said:?}");
    // A variable that is empty says nothing.
    assert!(run(&["list", "--quiet"], ("NO_COLOR", "")).1.contains("\u{1b}[2m"));
    assert!(!run(&["list", "--quiet"], ("NO_COLOR", "1")).1.contains('\u{1b}'));
}
