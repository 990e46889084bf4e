//! Where things lie: pure functions from keys to names. No I/O.
//!
//! Names are injective also where the file system folds letter case or normalises Unicode: they hold only
//! lower-case ASCII letters, digits and `-_.+@`. A half of a key that is such a text already stands for itself;
//! any other is shown as far as it can be, then `+` and a hash of its exact bytes. No half that stands for
//! itself holds a `+`, and none holds an `@`, which joins the halves.

use std::path::{Path, PathBuf};

use session_core::{MailboxId, SessionKey};
use sha2::{Digest, Sha256};

/// The folder below the base, and the folders within it.
pub(crate) const ROOT: &str = ".agent-sessions";
pub(crate) const RECORDS: &str = "records";
pub(crate) const AUDIT: &str = "audit";
pub(crate) const LOCKS: &str = "locks";
pub(crate) const STATE: &str = "state";
pub(crate) const QUARANTINE: &str = "quarantine";
pub(crate) const VERSION_FILE: &str = "version.json";
pub(crate) const RECORD_SUFFIX: &str = ".json";

/// Hexadecimal digits of a hash in a name: 128 bits.
pub(crate) const HASH_DIGITS: usize = 32;
/// How much of a hashed half is shown. With the longest suffix (`.write`), a name stays below 100 bytes.
pub(crate) const MAILBOX_SHOWN: usize = 20;
pub(crate) const AGENT_SHOWN: usize = 6;
/// No name is longer.
const LONGEST: usize = 100;

/// The paths of one store.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(base: &Path) -> Self {
        Self { root: base.join(ROOT) }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn version_file(&self) -> PathBuf {
        self.root.join(VERSION_FILE)
    }

    pub(crate) fn ignore_file(&self) -> PathBuf {
        self.root.join(".gitignore")
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.root.join(RECORDS)
    }

    pub(crate) fn record(&self, key: &SessionKey) -> PathBuf {
        self.of_key(RECORDS, key, RECORD_SUFFIX)
    }

    pub(crate) fn audits(&self) -> PathBuf {
        self.root.join(AUDIT)
    }

    pub(crate) fn audit(&self, key: &SessionKey) -> PathBuf {
        self.of_key(AUDIT, key, ".jsonl")
    }

    pub(crate) fn states(&self) -> PathBuf {
        self.root.join(STATE)
    }

    /// The lease, held by the run.
    pub(crate) fn lease_lock(&self, key: &SessionKey) -> PathBuf {
        self.of_key(LOCKS, key, ".lock")
    }

    /// The lock of a write, held for that write only.
    pub(crate) fn write_lock(&self, key: &SessionKey) -> PathBuf {
        self.of_key(LOCKS, key, ".write")
    }

    fn of_key(&self, folder: &str, key: &SessionKey, suffix: &str) -> PathBuf {
        let mut path = PathBuf::with_capacity(self.root.as_os_str().len() + folder.len() + 2 + LONGEST);
        path.push(&self.root);
        path.push(folder);
        let mut name = String::with_capacity(LONGEST);
        push_key(&mut name, key);
        name.push_str(suffix);
        path.push(name);
        path
    }

    pub(crate) fn quarantine(&self) -> PathBuf {
        self.root.join(QUARANTINE)
    }

    pub(crate) fn quarantined(&self, key: &SessionKey, unique: &str) -> PathBuf {
        self.quarantine().join(format!("{}.{unique}", key_segment(key)))
    }
}

/// The name of a key: one path segment of fewer than 100 bytes, suffix included.
pub(crate) fn key_segment(key: &SessionKey) -> String {
    let mut name = String::with_capacity(LONGEST);
    push_key(&mut name, key);
    name
}

fn push_key(name: &mut String, key: &SessionKey) {
    push_segment(name, key.mailbox.as_str(), MAILBOX_SHOWN);
    name.push('@');
    push_segment(name, key.agent.as_str(), AGENT_SHOWN);
}

/// The key of a name whose halves both stand for themselves; `None` for any other name, also one that hides its key.
pub(crate) fn key_of(name: &str) -> Option<SessionKey> {
    let (mailbox, agent) = name.split_once('@')?;
    let key = SessionKey::new(mailbox, agent).ok()?;
    (key_segment(&key) == name).then_some(key)
}

/// The name of the mailbox alone.
pub(crate) fn mailbox_segment(key: &SessionKey) -> String {
    segment(key.mailbox.as_str(), MAILBOX_SHOWN)
}

/// The name of the agent alone.
pub(crate) fn agent_segment(key: &SessionKey) -> String {
    segment(key.agent.as_str(), AGENT_SHOWN)
}

/// The name of a mailbox that may have no key.
pub(crate) fn name_of(mailbox: &MailboxId) -> String {
    segment(mailbox.as_str(), MAILBOX_SHOWN)
}

fn segment(text: &str, shown: usize) -> String {
    let mut name = String::new();
    push_segment(&mut name, text, shown);
    name
}

fn push_segment(name: &mut String, text: &str, shown: usize) {
    if text.len() <= shown + 1 + HASH_DIGITS && stands_for_itself(text) {
        name.push_str(text);
    } else {
        name.push_str(&shown_part(text, shown));
        name.push('+');
        name.push_str(&hex(&Sha256::digest(text))[..HASH_DIGITS]);
    }
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')
}

/// Whether the text is a safe name everywhere. A leading `-` would be a flag to many a tool, a leading `.`
/// hides the file, a trailing `.` is dropped by Windows.
pub(crate) fn stands_for_itself(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(is_plain)
        && !text.starts_with(['.', '-'])
        && !text.ends_with('.')
        && !is_device(text)
}

/// Whether Windows takes the name for a device; it does so whatever the extension.
fn is_device(text: &str) -> bool {
    let stem = text.split('.').next().unwrap_or_default();
    match stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt")) {
        Some(number) => number.len() == 1 && number.bytes().all(|b| b.is_ascii_digit()),
        None => matches!(stem, "con" | "prn" | "aux" | "nul"),
    }
}

/// What can be shown of a text: lower-case letters, digits and `_`, with one `-` for whatever stands between.
fn shown_part(text: &str, shown: usize) -> String {
    let mut part = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        if part.len() == shown {
            break;
        }
        if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' {
            part.push(c);
        } else if !part.is_empty() && !part.ends_with('-') {
            part.push('-');
        }
    }
    let part = part.trim_end_matches('-');
    if part.is_empty() { "_".to_owned() } else { part.to_owned() }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::names::halves;

    fn name(mailbox: &str, agent: &str) -> String {
        key_segment(&SessionKey::new(mailbox, agent).unwrap())
    }

    /// The rules of a safe name, written a second time and in other words.
    fn assert_safe(name: &str) {
        assert!(name.len() + ".write".len() < 100, "{name}");
        let allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_.+@";
        assert!(name.chars().all(|c| allowed.contains(c)), "{name}");
        for half in name.split('@') {
            assert!(!half.is_empty() && !half.starts_with(['.', '-', '+']) && !half.ends_with('.'), "{name}");
            let stem = half.split(['.', '@']).next().unwrap();
            for device in ["con", "prn", "aux", "nul", "com1", "lpt9", "com0"] {
                assert_ne!(stem, device, "{name}");
            }
        }
        assert_eq!(name.matches('@').count(), 1, "{name}");
    }

    #[test]
    fn a_plain_key_is_readable() {
        assert_eq!(name("issue-42", "claude"), "issue-42@claude");
        assert_eq!(name("v1.2_rc", "opencode"), "v1.2_rc@opencode");
        let long = "x".repeat(53);
        assert_eq!(name(&long, "claude"), format!("{long}@claude"));
    }

    #[test]
    fn a_changed_name_shows_what_it_can_and_hashes_the_exact_bytes() {
        assert_eq!(name("feature/Foo", "claude"), "feature-foo+436797b9622812c76d2aee1edf2a0697@claude");
        for (mailbox, shown) in [
            ("..", "_+"),
            (".hidden", "hidden+"),
            ("trailing.", "trailing+"),
            ("aux", "aux+"),
            ("com1.txt", "com1-txt+"),
            ("-rf", "rf+"),
            ("😀", "_+"),
            ("über/1", "ber-1+"),
            ("a+b", "a-b+"),
            ("a@b", "a-b+"),
            (" a ", "a+"),
        ] {
            let name = name(mailbox, "claude");
            assert!(name.starts_with(shown), "{mailbox:?} became {name}");
            assert_safe(&name);
        }
        assert_safe(&name(&"x".repeat(1024), &"y".repeat(64)));
        assert_safe(&name("a", ".."));
    }

    #[test]
    fn devices_with_two_digits_are_names() {
        assert_eq!(name("com10", "claude"), "com10@claude");
        assert_eq!(name("console", "claude"), "console@claude");
    }

    #[test]
    fn twins_stay_apart() {
        let twins = [
            "feature/foo",
            "feature-foo",
            "Feature/foo",
            "feat/a-b",
            "feat-a/b",
            "feat/a/b",
            "issue/#12",
            "issue-12",
            "a.lock",
            "a.write",
            &format!("feature/{}1", "x".repeat(250)),
            &format!("feature/{}2", "x".repeat(250)),
            "\u{e9}",
            "e\u{301}",
            "\u{212b}",
            "\u{c5}",
            "A\u{30a}",
            "a",
            "A",
            "a ",
            " a",
            "a.",
            ".a",
            "ß",
            "ss",
            "ı",
            "i",
            "İ",
            "K",
            "\u{212a}",
            "k",
            "con",
            "Con",
            "..",
            "...",
            "_",
            "a/../b",
            "a/b",
            "ﬁ",
            "fi",
            "a\u{200d}b",
            "ab",
        ];
        let mut names = BTreeMap::new();
        for twin in twins {
            let name = name(twin, "claude");
            assert_safe(&name);
            if let Some(other) = names.insert(name.clone(), twin) {
                panic!("{twin:?} and {other:?} are both {name}");
            }
        }
        // What a hashed name looks like cannot be taken by a plain one.
        let hashed = name("feature/Foo", "claude");
        let copied = hashed.split('@').next().unwrap();
        assert_ne!(name(copied, "claude"), hashed);
    }

    fn mailbox() -> impl Strategy<Value = String> {
        let awkward = prop::sample::select(vec![
            "a", "A", "b", "-", "_", ".", "/", "..", "\\", "@", "+", " ", "é", "e\u{301}", "É", "😀", "con",
            "ß", "ss", "0", "~", "%", ":", "json", ".write", ".lock",
        ]);
        prop_oneof![
            prop::collection::vec(awkward, 1..6).prop_map(|parts| parts.concat()),
            "[a-c]{1,3}",
            "\\PC{1,40}",
            "[a-z0-9/]{1000,1024}",
        ]
        .prop_filter("a mailbox", |text| !text.trim().is_empty() && text.len() <= 1024)
    }

    fn key() -> impl Strategy<Value = SessionKey> {
        (mailbox(), "[a-b.-]{1,3}|[a-z0-9._-]{1,64}").prop_map(|(m, a)| SessionKey::new(m, a).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn names_are_injective_and_safe(a in key(), b in key()) {
            let (name_a, name_b) = (key_segment(&a), key_segment(&b));
            assert_safe(&name_a);
            // Equal names would mean equal keys. Folding changes nothing, as the names are ASCII in lower case.
            prop_assert_eq!(a == b, name_a == name_b);
            prop_assert_eq!(name_a.to_lowercase(), name_a.clone());
            // What is read out of a name is the key, or nothing where a half is hashed.
            let plain = !name_a.contains('+');
            prop_assert_eq!(key_of(&name_a), plain.then(|| a.clone()));
            // The halves alone are injective too, for the state dirs.
            prop_assert_eq!(a.mailbox == b.mailbox, mailbox_segment(&a) == mailbox_segment(&b));
            prop_assert_eq!(a.agent == b.agent, agent_segment(&a) == agent_segment(&b));
            // What is made is known again.
            prop_assert!(halves(&name_a) == Some((&*mailbox_segment(&a), &*agent_segment(&a))));
        }

        /// A near miss of every key has another name: one letter in other case, one character more or less.
        #[test]
        fn near_misses_differ(key in key(), at in any::<prop::sample::Index>(), extra in "[a-zA-Z./@+ -]") {
            let text = key.mailbox.as_str();
            let at = text.char_indices().map(|(i, _)| i).nth(at.index(text.chars().count())).unwrap();
            let (head, tail) = text.split_at(at);
            let c = tail.chars().next().unwrap();
            let rest = &tail[c.len_utf8()..];
            let others = [
                format!("{head}{extra}{tail}"), format!("{head}{rest}"),
                format!("{head}{}{rest}", c.to_uppercase()), format!("{head}{}{rest}", c.to_lowercase()),
            ];
            for other in others.iter().filter(|other| *other != text) {
                if let Ok(other) = SessionKey::new(other.as_str(), key.agent.as_str()) {
                    prop_assert_ne!(key_segment(&key), key_segment(&other));
                }
            }
        }
    }
}
