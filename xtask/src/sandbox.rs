//! A network namespace with nothing but loopback, where the system allows one.

use std::path::Path;
use std::process::{Command, Stdio};

/// Brings loopback up and becomes the program.
const ENTER: &str = "ip link set lo up && exec \"$@\"";

/// A command that runs the program without any network but loopback. Where that cannot be had, the program runs
/// as it is, and the reason is told: it still talks to loopback only, but nothing enforces it.
pub(crate) fn command(program: &Path) -> (Command, Option<String>) {
    for flags in [&["-n"][..], &["-r", "-n"]] {
        let probe = Command::new("unshare")
            .args(flags)
            .args(["sh", "-c", ENTER, "sh", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if probe.is_ok_and(|status| status.success()) {
            let mut command = Command::new("unshare");
            command.args(flags).args(["sh", "-c", ENTER, "sh"]).arg(program);
            return (command, None);
        }
    }
    let why =
        "no network namespace can be made here (it needs `unshare` and `ip`, and the right to use them)";
    (Command::new(program), Some(why.to_owned()))
}
