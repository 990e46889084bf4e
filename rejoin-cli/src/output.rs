//! The one place that prints.

use std::io::{self, BufWriter, IsTerminal as _, Write};

use serde::Serialize;

use crate::args::{ColorChoice, Common};
use crate::exit::{Exit, Failure};
use crate::place::Surroundings;
use crate::plain;

/// The version of the documents that `--json` prints. It grows when a field goes or changes its meaning, not when one is
/// added.
pub(crate) const SCHEMA: u32 = 1;

/// A document of `--json`.
#[derive(Debug, Serialize)]
struct Document<'a, T> {
    schema: u32,
    command: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    error: ErrorText<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorText<'a> {
    code: Exit,
    exit: u8,
    message: &'a str,
    candidates: &'a [String],
}

/// How text is made to stand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Dim,
    Warn,
}

/// Where the output goes, and how it looks.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: BufWriter<io::Stdout>,
    command: &'static str,
    pub(crate) json: bool,
    pub(crate) color: bool,
    /// Whether nobody but a person reads this: then long lines are cut.
    pub(crate) columns: Option<usize>,
    /// Whether a person sees stderr.
    progress: bool,
    /// Whether a line of progress stands there.
    open: bool,
}

impl Output {
    pub(crate) fn new(command: &'static str, common: &Common, around: &Surroundings) -> Self {
        let terminal = io::stdout().is_terminal();
        let color = match common.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !around.no_color && !around.is_dumb,
        };
        let size = || ratatui::crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
        Self {
            stdout: BufWriter::new(io::stdout()),
            command,
            json: common.json,
            color: color && !common.json,
            columns: terminal.then(|| size().filter(|columns| *columns >= 20)).flatten(),
            progress: io::stderr().is_terminal() && !common.quiet && !around.is_dumb,
            open: false,
        }
    }

    /// One line. What comes of others has to be made plain before.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.clear();
        let written = self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.write_all(b"\n"));
        written.map_err(|error| broken(&error))
    }

    /// The document of this command.
    pub(crate) fn document(&mut self, body: &impl Serialize) -> Result<(), Failure> {
        let document = Document { schema: SCHEMA, command: self.command, body };
        let text = serde_json::to_string(&document).map_err(|error| Failure::failed(&error))?;
        self.line(&plain::json(&text))?;
        self.flush()
    }

    /// What was written is seen.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(|error| broken(&error))
    }

    /// Text in a style, where colours are wanted.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Warn => "33",
        };
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// A word on stderr for people; nothing where programs read.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.json {
            self.clear();
            let _ = writeln!(io::stderr(), "{}", plain::lines(text));
        }
    }

    /// What is being done, on a line of stderr that goes again; only where a person sees it.
    pub(crate) fn progress(&mut self, text: &str) {
        if self.progress {
            let text = plain::cut(&plain::line(text), self.columns.unwrap_or(79).saturating_sub(1));
            let _ = write!(io::stderr(), "\r{text}\u{1b}[K");
            self.open = true;
        }
    }

    /// Takes the line of progress away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }

    /// Says why the command failed, and what its exit is.
    pub(crate) fn fail(&mut self, failure: &Failure) -> Exit {
        self.clear();
        if failure.told {
            return self.flush().map_or_else(|_| failure.exit, |()| failure.exit);
        }
        if self.json {
            let error = ErrorText {
                code: failure.exit,
                exit: failure.exit.number(),
                message: &failure.message,
                candidates: &failure.candidates,
            };
            // Whoever does not read it has the exit code.
            let _ = self.document(&ErrorBody { error });
        } else {
            let _ = self.flush();
            if !failure.message.is_empty() {
                let _ = writeln!(io::stderr(), "rejoin: {}", plain::lines(&failure.message));
            }
            for candidate in &failure.candidates {
                let _ = writeln!(io::stderr(), "    {}", plain::line(candidate));
            }
        }
        failure.exit
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A reader that went away is no error.
fn broken(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::gone();
    }
    Failure::new(Exit::Failed, format!("the output could not be written: {error}"))
}

/// Help, and errors of how the command was called, as they are.
pub(crate) fn clap(error: &clap::Error, json: bool, command: Option<&str>) -> Exit {
    let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
    if exit == Exit::Ok {
        // Whoever does not read it did not want it.
        let _ = error.print();
        return exit;
    }
    // It repeats words of the command line, which may be others'.
    let message = error.render().to_string();
    let message = message.trim_end();
    if json {
        let text = ErrorText { code: exit, exit: exit.number(), message, candidates: &[] };
        let document = Document {
            schema: SCHEMA,
            command: command.unwrap_or("rejoin"),
            body: &ErrorBody { error: text },
        };
        let document = serde_json::to_string(&document).unwrap_or_default();
        let _ = writeln!(io::stdout(), "{}", plain::json(&document));
    } else {
        let _ = writeln!(io::stderr(), "{}", plain::lines(message));
    }
    exit
}

/// An error from before anything was known of how to say it.
pub(crate) fn bare(failure: &Failure) -> Exit {
    let _ = writeln!(io::stderr(), "rejoin: {}", plain::lines(&failure.message));
    failure.exit
}
