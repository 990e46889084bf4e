//! Files of gigabytes, in little memory.
#![cfg(target_os = "linux")]

use std::process::Command;

use crate::support::sessions::{CHANGELOG, Claude, LOGIN};
use crate::support::{Machine, Said};

/// The command, with at most 128 MiB of its own.
fn in_little_memory(machine: &Machine, words: &[&str]) -> Said {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "ulimit -d 131072 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rejoin")])
        .args(words)
        .env_clear()
        .env("HOME", &machine.home)
        .env("PATH", machine.home.join("bin"))
        .current_dir(&machine.project);
    command.output().unwrap().into()
}

#[test]
fn beside_a_session_of_gigabytes_another_is_listed_shown_and_resumed_in_little_memory() {
    let machine = Machine::new();
    Claude::new(&machine, LOGIN, &machine.project, 20).turn("The large one", "Yes.").write();
    Claude::new(&machine, CHANGELOG, &machine.project, 30).turn("The small one", "Yes.").write();
    let name: String = machine
        .project
        .to_str()
        .unwrap()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let large = machine.home.join(".claude/projects").join(name).join(format!("{LOGIN}.jsonl"));
    // Sparse: it takes no room on the disk.
    std::fs::File::options().append(true).open(&large).unwrap().set_len(4 << 30).unwrap();
    let list = in_little_memory(&machine, &["list", "--quick", "--json"]).ok().json();
    let sizes: Vec<_> = list["sessions"].as_array().unwrap().iter().map(|s| s["bytes"].clone()).collect();
    assert!(sizes.len() == 2 && sizes.contains(&(4_u64 << 30).into()), "{list}");
    assert!(in_little_memory(&machine, &["show", CHANGELOG]).ok().stdout.contains("The small one"));
    assert!(in_little_memory(&machine, &["search", "-n", "1", "small"]).stdout.contains("The small one"));
    assert!(in_little_memory(&machine, &["resume", CHANGELOG]).ok().stdout.contains(CHANGELOG));
}
