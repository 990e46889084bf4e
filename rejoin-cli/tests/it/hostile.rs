//! Titles, prompts, answers and paths of others.

use crate::support::Machine;
use crate::support::sessions::{Claude, LOGIN};

const EVIL: &str = "a\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}b\u{2066}c\u{2028}d\u{85}e\u{200b}";

fn is_safe(text: &str) -> bool {
    let hostile = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    !text.contains(hostile)
}

#[test]
fn nothing_of_others_reaches_a_terminal_raw() {
    let machine = Machine::new();
    let folder = machine.folder("evil \u{1b}[2J\u{9b}");
    Claude::new(&machine, LOGIN, &folder, 30).turn(EVIL, EVIL).tool(EVIL, EVIL, EVIL).title(EVIL).write();
    let commands: &[&[&str]] = &[
        &["list"],
        &["show", LOGIN, "--full"],
        &["resume"],
        &["resume", LOGIN],
        &["search", "owned"],
        &["doctor"],
        &["show", EVIL],
        &["explain", EVIL],
        &["run", "-m", EVIL, "-a", "claude", "--", "x"],
        &["resume", "nothing \u{1b}[2J like it"],
        &["--store", EVIL, "list"],
        &["list", "--color", EVIL],
        &[EVIL],
        &["relocate", EVIL, EVIL],
    ];
    for words in commands {
        for json in [false, true] {
            let mut words = words.to_vec();
            if json {
                words.insert(0, "--json");
            }
            let said = machine.rejoin(&words);
            assert!(is_safe(&said.stdout) && is_safe(&said.stderr), "{words:?}: {said:?}");
        }
    }
    let list = machine.rejoin(&["list"]).ok();
    assert!(list.stdout.contains(r"a\u{1b}]0;owned\u{7}"), "{list:?}");
    let told = machine.rejoin(&["list", "--json"]).ok();
    assert!(told.stdout.contains(r"\u2028"), "{told:?}");
    assert_eq!(told.json()["sessions"][0]["title"], EVIL, "a program gets what is there");
}
