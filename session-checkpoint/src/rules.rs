//! What the ignore rules of a tree leave out: those of its `.gitignore` files and of `.git/info/exclude`, each repository in it by
//! its own. The user's own rules, outside of the tree, are not read.

use std::collections::HashMap;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sha2::{Digest as _, Sha256};

use crate::checkpoints::FsCheckpoints;
use crate::handle::{self, Sort};
use crate::place::{self, Git, Tree};
use crate::tracked::Tracked;

/// A longer list of rules is not read.
const LONGEST: u64 = 4 << 20;
/// Nor one that costs more with those above it: parsed, a byte takes hundreds, and anybody who writes into the tree may write rules.
const MOST: usize = 256 << 10;

/// The rules that hold in a folder.
#[derive(Debug)]
pub(crate) struct Rules {
    repository: Arc<Repository>,
    /// Those that this folder adds to the ones above it.
    list: Option<List>,
    above: Option<Arc<Self>>,
    /// The folder is ignored, and only what is tracked in it is covered.
    only_tracked: bool,
    /// What these cost, and the ones above them.
    cost: usize,
    digest: [u8; 32],
}

/// A list of rules.
#[derive(Debug)]
struct List {
    /// The folder that they count from, within the tree.
    folder: Vec<u8>,
    text: Vec<u8>,
    parsed: OnceLock<Arc<Parsed>>,
}

/// A repository in the tree, or the tree itself without one.
#[derive(Debug)]
struct Repository {
    /// Within the tree.
    folder: Vec<u8>,
    /// Where its index is.
    index: Option<PathBuf>,
    tracked: OnceLock<Tracked>,
    known: Arc<KnownLists>,
    /// Nothing is ignored.
    off: bool,
}

/// A list of rules that was parsed: in several parts, in their order, where it is longer than can be matched at once.
#[derive(Debug, Default)]
struct Parsed(Vec<Gitignore>);

/// Lists of rules that were parsed, by what they say.
#[derive(Debug, Default)]
pub(crate) struct KnownLists {
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    parsed: HashMap<[u8; 32], Arc<Parsed>>,
    /// What they cost, all in all.
    cost: usize,
}

/// So many are remembered.
const REMEMBERED: usize = 256;

impl KnownLists {
    fn parsed(&self, text: &[u8]) -> Arc<Parsed> {
        let key = Sha256::digest(text).into();
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = lists.parsed.get(&key) {
            return Arc::clone(parsed);
        }
        let cost = cost(text);
        if lists.parsed.len() > REMEMBERED || lists.cost + cost > MOST {
            *lists = Lists::default();
        }
        let parsed = Arc::new(Parsed::of(text));
        lists.parsed.insert(key, Arc::clone(&parsed));
        lists.cost += cost;
        parsed
    }
}

/// What rules say of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// No rule leaves it out.
    Covered,
    /// A rule does, but git tracks it, or something in it.
    Tracked,
    /// It is left out.
    Out,
}

impl Rules {
    /// The rules of a tree, but for those in its files.
    pub(crate) fn of(checkpoints: &FsCheckpoints, tree: &Tree) -> Arc<Self> {
        let known = Arc::clone(&checkpoints.known_lists);
        Self::of_repository(Vec::new(), tree.git.as_ref(), checkpoints.with_ignored, (known, 0))
    }

    /// `above` is what the rules outside of it cost.
    fn of_repository(
        folder: Vec<u8>,
        git: Option<&Git>,
        off: bool,
        (known, above): (Arc<KnownLists>, usize),
    ) -> Arc<Self> {
        let exclude =
            git.filter(|_| !off).and_then(|git| place::read(&git.common.join("info/exclude"), LONGEST));
        let list = exclude.map(|text| rules_in(&text));
        let list = list.filter(|text| !text.is_empty() && above + cost(text) <= MOST);
        let cost = above + list.as_deref().map_or(0, cost);
        let digest = digest(&[u8::from(off)], list.as_deref().unwrap_or_default());
        let list = list.map(|text| List { folder: folder.clone(), text, parsed: OnceLock::new() });
        let index = git.map(|git| git.dir.join("index"));
        let repository = Arc::new(Repository { folder, index, tracked: OnceLock::new(), known, off });
        Arc::new(Self { repository, list, above: None, only_tracked: false, cost, digest })
    }

    /// The rules that hold within a folder that is open. `has` tells whether there may be something of a name in it.
    pub(crate) fn within(
        self: &Arc<Self>,
        root: &Path,
        path: &[u8],
        folder: &OwnedFd,
        has: impl Fn(&[u8]) -> bool,
    ) -> Arc<Self> {
        if self.repository.off {
            return Arc::clone(self);
        }
        let mut rules = Arc::clone(self);
        if !path.is_empty() && has(b".git") && handle::look(folder, b".git").is_ok() {
            let git = place::git_of(&root.join(handle::path(path))).ok().flatten();
            if let Some(git) = git {
                let known = Arc::clone(&self.repository.known);
                rules = Self::of_repository(path.to_vec(), Some(&git), false, (known, self.cost));
            }
        }
        if has(b".gitignore")
            && let Some(text) = gitignore(folder)
            && let cost = rules.cost + cost(&text)
            && cost <= MOST
        {
            rules = Arc::new(Self {
                cost,
                repository: Arc::clone(&rules.repository),
                digest: digest(&rules.digest, &text),
                only_tracked: rules.only_tracked,
                above: Some(rules),
                list: Some(List { folder: path.to_vec(), text, parsed: OnceLock::new() }),
            });
        }
        rules
    }

    /// The rules to start with in a folder in this one, of which they said this.
    pub(crate) fn for_child(self: &Arc<Self>, judgement: Judgement) -> Arc<Self> {
        if judgement != Judgement::Tracked || self.only_tracked {
            return Arc::clone(self);
        }
        Arc::new(Self {
            repository: Arc::clone(&self.repository),
            list: None,
            above: None,
            only_tracked: true,
            cost: self.cost,
            digest: digest(&self.digest, b"only what is tracked"),
        })
    }

    /// What tells these rules from others; what is tracked aside.
    pub(crate) const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// What they say of something in a folder.
    pub(crate) fn judge(&self, folder: &[u8], name: &[u8], is_folder: bool) -> Judgement {
        if self.repository.off {
            return Judgement::Covered;
        }
        // A list that left itself out could not be taken back.
        if name == b".gitignore" && !is_folder && !self.only_tracked {
            return Judgement::Covered;
        }
        let path = handle::join(folder, name);
        if !self.only_tracked && !self.match_up(&path, is_folder) {
            return Judgement::Covered;
        }
        if self.repository.tracks(&path, is_folder) { Judgement::Tracked } else { Judgement::Out }
    }

    /// Whether a rule leaves it out: the last one of the nearest folder counts.
    fn match_up(&self, path: &[u8], is_folder: bool) -> bool {
        let mut next = Some(self);
        while let Some(rules) = next {
            if let Some(list) = &rules.list {
                match list
                    .parsed(&self.repository.known)
                    .matched(handle::path(within(path, &list.folder)), is_folder)
                {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            next = rules.above.as_deref();
        }
        false
    }
}

impl Repository {
    fn tracks(&self, path: &[u8], is_folder: bool) -> bool {
        let Some(index) = &self.index else { return false };
        self.tracked.get_or_init(|| Tracked::read(index)).has(within(path, &self.folder), is_folder)
    }
}

impl List {
    fn parsed(&self, known: &KnownLists) -> &Parsed {
        self.parsed.get_or_init(|| known.parsed(&self.text))
    }
}

impl Parsed {
    fn of(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let lines: Vec<_> = text.lines().map(literal_braces).collect();
        let mut parsed = Self::default();
        parsed.add(&lines);
        parsed
    }

    fn add(&mut self, lines: &[String]) {
        let mut builder = GitignoreBuilder::new("");
        for line in lines {
            // As for git, a line that is no pattern means nothing.
            drop(builder.add_line(None, line));
        }
        match builder.build() {
            Ok(part) => self.0.push(part),
            Err(_) if lines.len() > 1 => {
                let (first, second) = lines.split_at(lines.len() / 2);
                self.add(first);
                self.add(second);
            }
            Err(_) => {}
        }
    }

    /// What the last rule says that names a path.
    fn matched(&self, path: &Path, is_folder: bool) -> Match<()> {
        let said = self.0.iter().rev().map(|part| part.matched(path, is_folder).map(|_| ()));
        said.into_iter().find(|said| !said.is_none()).unwrap_or(Match::None)
    }
}

/// A list without its remarks and empty lines, which cost nothing, and take room all the same.
fn rules_in(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n');
    let rules = lines.filter(|line| !matches!(line, [] | [b'\r'] | [b'#', ..]));
    rules.flat_map(|rule| [rule, b"\n"]).flatten().copied().collect()
}

/// The bytes of the rules in a list, and some for each rule, for each of its stars: all of them are looked for at every letter of a
/// path. Paths, and names by their extension, take less room and time, and count for a quarter.
fn cost(rules: &[u8]) -> usize {
    let (mut plain, mut other) = (0, 0);
    for line in rules.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let rule = line.strip_prefix(b"!").unwrap_or(line);
        let extension = rule.strip_prefix(b"*.").filter(|rest| !rest.iter().any(|byte| b"./".contains(byte)));
        let is_plain = !extension.unwrap_or(rule).iter().any(|byte| b"*?[".contains(byte));
        let stars = rule.iter().filter(|byte| **byte == b'*').count().max(1);
        *(if is_plain { &mut plain } else { &mut other }) += (line.len() + 16) * stars;
    }
    other + plain / 4
}

/// Braces mean themselves in git's patterns.
fn literal_braces(line: &str) -> String {
    let mut literal = String::with_capacity(line.len());
    let (mut escaped, mut class) = (false, false);
    for letter in line.chars() {
        if matches!(letter, '{' | '}') && !escaped && !class {
            literal.push('\\');
        }
        literal.push(letter);
        class = !escaped && (letter == '[' || class && letter != ']');
        escaped = !escaped && letter == '\\';
    }
    literal
}

/// The rules in a folder's own file of them: a link is none.
fn gitignore(folder: &OwnedFd) -> Option<Vec<u8>> {
    let file = handle::file(folder, b".gitignore").ok()?;
    let look = handle::look_at(&file).ok()?;
    if look.sort != Sort::File || look.stamp.size > LONGEST {
        return None;
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    let text = rules_in(&text);
    (!text.is_empty()).then_some(text)
}

/// A path that lies in a folder, as seen from there.
fn within<'p>(path: &'p [u8], folder: &[u8]) -> &'p [u8] {
    if folder.is_empty() { path } else { path.get(folder.len() + 1..).unwrap_or_default() }
}

fn digest(before: &[u8], text: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update((before.len() as u64).to_le_bytes());
    hasher.update(before);
    hasher.update(text);
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::{Parsed, cost, literal_braces, rules_in};

    /// One list that is too long to be matched at once keeps the meaning of each of its lines.
    #[test]
    fn no_rule_is_lost_in_a_long_list() {
        let mut text = "first*.log\ntwice\n".to_owned();
        for n in 0..10_000 {
            writeln!(text, "dir{n}*x/**/foo{n}?bar*").unwrap();
        }
        text.push_str("!twice\nlast*.log\n");
        let parsed = Parsed::of(text.as_bytes());
        assert!(parsed.0.len() > 1, "it is in parts");
        let matched = |path: &str| parsed.matched(Path::new(path), false);
        for path in ["first-1.log", "last-1.log", "dir7-x/a/b/foo7-bar", "dir9999-x/foo9999-bar"] {
            assert!(matched(path).is_ignore(), "{path}");
        }
        assert!(matched("twice").is_whitelist());
        assert!(matched("other").is_none());
    }

    #[test]
    fn remarks_and_empty_lines_take_no_room() {
        let text = b"\xEF\xBB\xBF# remark\n\na\r\n\r\n #b\n\\#c\n!d \n#\ne";
        assert_eq!(rules_in(text), b"a\r\n #b\n\\#c\n!d \ne\n");
        assert_eq!(rules_in(&b"#\n\n\r\n".repeat(1000)).capacity(), 0);
        assert_eq!(cost(&rules_in(text)), cost(b"a\r\n #b\n\\#c\n!d \ne"));
    }

    #[test]
    fn braces_mean_themselves() {
        assert_eq!(literal_braces("a{b,c}"), r"a\{b,c\}");
        assert_eq!(literal_braces(r"a\{b\\{"), r"a\{b\\\{");
        assert_eq!(literal_braces("[{]x}"), r"[{]x\}");
    }
}
