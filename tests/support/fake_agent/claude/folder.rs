//! Where Claude Code keeps the transcripts of a working directory.

use std::path::{Path, PathBuf};

/// How many UTF-16 units of a folder name are kept.
const KEPT: usize = 200;

/// The folder below `projects/` for a working directory, as Claude Code 2.1 names it.
///
/// Every UTF-16 unit except ASCII letters and digits becomes a dash. A name longer than 200 units is cut and
/// ends in a hash of the path.
#[must_use]
pub fn project_folder_name(cwd: &str) -> String {
    let units: Vec<u16> = cwd.encode_utf16().collect();
    let name: String = units
        .iter()
        .map(|unit| match u8::try_from(*unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
            _ => '-',
        })
        .collect();
    if units.len() <= KEPT {
        return name;
    }
    let hash = units.iter().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)));
    format!("{}-{}", &name[..KEPT], base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).expect("a remainder of 36 is a digit of base 36"));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The transcripts of one configuration folder, seen from one working directory.
#[derive(Debug)]
pub(super) struct Projects {
    root: PathBuf,
    own: PathBuf,
}

impl Projects {
    /// Reads the places from the environment of the process.
    pub(super) fn of(cwd: &Path) -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self::with(
            cwd,
            var("CLAUDE_CONFIG_DIR").map(PathBuf::from).as_deref(),
            var("HOME").map(PathBuf::from).as_deref(),
            var("CLAUDE_CODE_PROJECT_DIR_NAME").and_then(|name| name.into_string().ok()).as_deref(),
        )
    }

    fn with(cwd: &Path, config: Option<&Path>, home: Option<&Path>, name: Option<&str>) -> Self {
        let root = config
            .map_or_else(|| cwd.join(home.unwrap_or(Path::new("."))).join(".claude"), |dir| cwd.join(dir))
            .join("projects");
        // The name counts only beside a configuration folder of one's own.
        let name = name.filter(|name| config.is_some() && is_folder_name(name));
        let own = root.join(name.map_or_else(|| project_folder_name(&cwd.to_string_lossy()), str::to_owned));
        Self { root, own }
    }

    /// Where a new session of this working directory is kept.
    pub(super) fn own(&self, id: &str) -> PathBuf {
        self.own.join(format!("{id}.jsonl"))
    }

    /// The transcript of this session in any project. The own project wins; of two others neither does.
    pub(super) fn anywhere(&self, id: &str) -> Option<PathBuf> {
        let own = self.own(id);
        if own.exists() {
            return Some(own);
        }
        let name = format!("{id}.jsonl");
        let mut found = std::fs::read_dir(&self.root)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path().join(&name)))
            .filter(|path| path.exists());
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

fn is_folder_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_are_encoded_paths() {
        assert_eq!(project_folder_name("/w/demo"), "-w-demo");
        assert_eq!(project_folder_name("/w/Co.a b_é"), "-w-Co-a-b--");
        assert_eq!(project_folder_name("/😀"), "---");
    }

    #[test]
    fn long_names_are_cut_and_hashed() {
        let fits = format!("/{}", "a".repeat(199));
        assert_eq!(project_folder_name(&fits), format!("-{}", "a".repeat(199)));
        // As 2.1.332 named the folder of this path.
        let long = format!("/mnt{}", "/long näme.😀".repeat(20));
        let name = project_folder_name(&long);
        assert!(name.ends_with("-long-n-me-----y4ggys"), "{name}");
        assert_eq!(name.len(), 200 + "-y4ggys".len());
    }

    #[test]
    fn numbers_are_written_to_base_36() {
        assert_eq!(base36(0), "0");
        assert_eq!(base36(35), "z");
        assert_eq!(base36(36), "10");
        assert_eq!(base36(1 << 31), "zik0zk");
    }

    #[test]
    fn the_environment_says_where_the_projects_are() {
        let cwd = Path::new("/w/demo");
        let own = |config, home, name| {
            Projects::with(cwd, Option::map(config, Path::new), Option::map(home, Path::new), name).own("x")
        };
        assert_eq!(own(None::<&str>, Some("/h"), None), Path::new("/h/.claude/projects/-w-demo/x.jsonl"));
        assert_eq!(own(Some("/c"), Some("/h"), None), Path::new("/c/projects/-w-demo/x.jsonl"));
        assert_eq!(own(Some("rel"), None, None), Path::new("/w/demo/rel/projects/-w-demo/x.jsonl"));
        assert_eq!(own(Some("/c"), None, Some("box")), Path::new("/c/projects/box/x.jsonl"));
        assert_eq!(own(Some("/c"), None, Some("b/x")), Path::new("/c/projects/-w-demo/x.jsonl"));
        assert_eq!(own(None, Some("/h"), Some("box")), Path::new("/h/.claude/projects/-w-demo/x.jsonl"));
    }

    #[test]
    fn a_session_of_two_other_projects_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let projects = Projects::with(Path::new("/w/demo"), Some(dir.path()), None, None);
        let put = |folder: &str| {
            let folder = dir.path().join("projects").join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("x.jsonl"), "{}\n").unwrap();
            folder.join("x.jsonl")
        };
        assert_eq!(projects.anywhere("x"), None);
        let one = put("one");
        assert_eq!(projects.anywhere("x"), Some(one));
        put("two");
        assert_eq!(projects.anywhere("x"), None);
        let own = put("-w-demo");
        assert_eq!(projects.anywhere("x"), Some(own));
    }
}
