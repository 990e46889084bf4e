//! The terminal: taken, and given back however the program ends.

use std::io::{self, BufWriter, Stderr};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};

use super::state::{Input, Picker};
use super::view::{self, Theme};

/// Whether the terminal is taken. It is given back once: to leave the other screen twice would move the cursor.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// How long the reader of keys waits until it looks whether it is still wanted.
const WAIT: Duration = Duration::from_millis(50);

/// The other screen of the terminal, on stderr, so that stdout is free for the answer.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    theme: Theme,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take(theme: Theme) -> io::Result<Self> {
        give_back_on_panic();
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let entered = execute!(io::stderr(), EnterAlternateScreen, EnableBracketedPaste);
        let terminal =
            entered.and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::new(io::stderr()))));
        match terminal {
            Ok(terminal) => Ok(Self { terminal, theme }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    pub(crate) fn draw(&mut self, picker: &mut Picker) -> io::Result<()> {
        let theme = self.theme;
        self.terminal.draw(|frame| view::draw(picker, theme, frame)).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Nobody is left to be told that it failed.
        let _ = execute!(io::stderr(), DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

/// A panic is told on the screen that the person sees afterwards.
fn give_back_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}

/// The thread that reads keys. Dropping it ends it, before the terminal is another program's.
pub(crate) struct Keys {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    /// Begins. `took` says whether anybody still wants them; a terminal that cannot be read is told once.
    pub(crate) fn read(took: impl Fn(io::Result<Input>) -> bool + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let input = match event::poll(WAIT) {
                    Ok(false) => continue,
                    Ok(true) => event::read().map(input),
                    Err(error) => Err(error),
                };
                let is_over = input.is_err();
                let wanted = match input {
                    Ok(None) => true,
                    Ok(Some(input)) => took(Ok(input)),
                    Err(error) => took(Err(error)),
                };
                if is_over || !wanted {
                    break;
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of it was told where it came.
            let _ = thread.join();
        }
    }
}

fn input(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) => Some(Input::Key(key)),
        Event::Paste(text) => Some(Input::Paste(text)),
        Event::Resize(..) => Some(Input::Resize),
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}
