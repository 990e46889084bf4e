//! Starting children and hearing them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::task::{Context, Poll, Waker};

use libtest_mimic::Trial;
use session_core::SessionKey;

pub(crate) fn key(mailbox: &str) -> SessionKey {
    SessionKey::new(mailbox, "claude").unwrap()
}

/// Without a runtime, every operation is done when it is first polled.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("an operation waits for a runtime"),
    }
}

pub(crate) fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// A running child. It is killed when this is dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(what: &str, base: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("child").arg(what).arg(base);
        Self::spawn(&mut command)
    }

    /// Starts the child through a line of shell, which ends with `"$@"`.
    pub(crate) fn through_shell(line: &str, what: &str, base: &Path) -> Self {
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).arg("sh").arg(std::env::current_exe().unwrap());
        command.arg("child").arg(what).arg(base);
        Self::spawn(&mut command)
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line; empty at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn rest(mut self) -> Vec<String> {
        let lines = std::iter::repeat_with(|| self.line()).take_while(|line| !line.is_empty()).collect();
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
        lines
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets the child go its way to the end.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail where it has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
