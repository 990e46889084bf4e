//! The fake model as a program: `fake-model [--port N] [--log FILE]`.
//!
//! It prints one line, `{"url":"http://127.0.0.1:PORT"}`, and serves until it is killed. What it answers is
//! described at `rejoin_test_support::fake_model`.

use std::io::{self, Write};
use std::process::ExitCode;

use rejoin_test_support::fake_model::{FakeModel, FakeModelOptions};

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when standard error is gone.
            let _ = writeln!(io::stderr(), "fake-model: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve() -> io::Result<()> {
    let model = FakeModel::start_with(&options(std::env::args().skip(1))?)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{{\"url\":\"{}\"}}", model.url())?;
    out.flush()?;
    loop {
        std::thread::park();
    }
}

fn options(mut args: impl Iterator<Item = String>) -> io::Result<FakeModelOptions> {
    let mut options = FakeModelOptions::default();
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| usage(&format!("{flag} needs a value")));
        match flag.as_str() {
            "--port" => options.port = value()?.parse().map_err(|_| usage("the port is no number"))?,
            "--log" => options.log = Some(value()?.into()),
            _ => return Err(usage(&format!("{flag} is unknown"))),
        }
    }
    Ok(options)
}

fn usage(mistake: &str) -> io::Error {
    io::Error::other(format!("{mistake}; usage: fake-model [--port N] [--log FILE]"))
}
