//! A work tree to measure on: deterministic, committed to git.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const WORDS: [&str; 16] = [
    "alpha", "beta", "gamma", "delta", "session", "token", "parser", "cache", "store", "lease", "retry",
    "worker", "branch", "merge", "fixture", "schema",
];

/// Numbers that look random, by their seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % end
    }

    /// Between zero and one.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Sizes of source files: the median is 2.5 KB, few are large.
    fn size(&mut self) -> usize {
        let normal =
            (-2.0 * self.part().max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * self.part()).cos();
        (7.8 + 1.1 * normal).exp() as usize
    }

    fn text(&mut self, bytes: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes + 100);
        while text.len() < bytes {
            for _ in 0..3 + self.below(9) {
                text.extend_from_slice(WORDS[self.below(WORDS.len())].as_bytes());
                text.push(b' ');
            }
            writeln!(text, "{:08x}", self.next() >> 32).unwrap();
        }
        text.truncate(bytes.max(1));
        text
    }
}

/// A tree of so many files.
pub(crate) struct Forest {
    pub(crate) root: PathBuf,
    pub(crate) files: usize,
}

impl Forest {
    /// Grows it: 25 files a folder, some five deep, in a repository.
    pub(crate) fn grow(root: PathBuf, files: usize) -> Self {
        let forest = Self { root, files };
        for n in 0..files {
            let path = forest.root.join(forest.path(n));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut dice = Dice::new(n as u64 + 1);
            let size = dice.size();
            fs::write(path, dice.text(size)).unwrap();
        }
        fs::write(forest.root.join(".gitignore"), "target/\n").unwrap();
        git(&forest.root, &["init", "-q", "-b", "main"], &[]);
        git(&forest.root, &["config", "gc.auto", "0"], &[]);
        git(&forest.root, &["add", "-A"], &[]);
        git(&forest.root, &["commit", "-q", "-m", "tree"], &[]);
        git(&forest.root, &["repack", "-adq"], &[]);
        forest
    }

    /// Copies files to their paths below another folder.
    pub(crate) fn copy(&self, paths: &[PathBuf], to: &Path) {
        for path in paths {
            let copy = to.join(path);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(self.root.join(path), copy).unwrap();
        }
    }

    fn path(&self, n: usize) -> PathBuf {
        let (c, m, d) = (n / 2500, n / 250 % 10, n / 25 % 10);
        PathBuf::from(format!("crates/c{c:03}/src/m{m}/d{d}/file_{n:06}.rs"))
    }

    /// Rewrites so many files, the same ones each time, with what this salt makes of them.
    pub(crate) fn touch(&self, count: usize, salt: u64) -> Vec<PathBuf> {
        self.touch_among(self.files, count, salt)
    }

    /// The same, spread over its first files.
    pub(crate) fn touch_among(&self, files: usize, count: usize, salt: u64) -> Vec<PathBuf> {
        let step = files / count;
        let touched: Vec<_> = (0..count).map(|n| self.path(n * step + step / 2)).collect();
        for (n, path) in touched.iter().enumerate() {
            fs::write(self.root.join(path), Dice::new(salt * 1000 + n as u64).text(3000)).unwrap();
        }
        touched
    }
}

/// Runs git there, with the user's own settings out of the way.
pub(crate) fn git(folder: &Path, arguments: &[&str], environment: &[(&str, &Path)]) {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}
