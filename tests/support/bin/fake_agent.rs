//! The scripted agent CLI as a program: `fake-agent --fake-agent <script.json> <agent arguments…>`.
//!
//! It is a recorder, too: `fake-agent --record <folder> <program> <arguments…>`.
//!
//! The script and what it can do are described at `rejoin_test_support::fake_agent`.

use std::io::Write;
use std::process::ExitCode;

use rejoin_test_support::{fake_agent, recorder};

fn main() -> ExitCode {
    recorder::become_recorder_if_asked().or_else(fake_agent::become_agent_if_asked).unwrap_or_else(|| {
        // Nobody is left to tell when standard error is gone.
        let _ =
            writeln!(std::io::stderr(), "usage: fake-agent --fake-agent <script.json> <agent arguments…>");
        ExitCode::from(fake_agent::BROKEN_SCRIPT)
    })
}
