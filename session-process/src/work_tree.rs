//! Which project a work tree belongs to: its remote, its root commits, and the other work trees. All but the root commits is
//! read from git's own files.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::environment::Environment;
use crate::repository::pointer;

/// No configuration that a person keeps is longer.
const CONFIG_LIMIT: u64 = 256 * 1024;
/// More work trees than anybody has.
const TREES: usize = 10_000;
/// A history without an end is not waited for.
const ROOTS_TIME: Duration = Duration::from_secs(5);
/// As many root commits as tell a project; each is a line.
const ROOTS_OUTPUT: u64 = 64 * 65;
/// No remote that is a name is longer.
const REMOTE_LIMIT: usize = 1024;

/// The remote `origin` of a repository, as one name for all the ways to write it. Files that the configuration includes are
/// not read.
pub(crate) fn remote(common_dir: &Path) -> Option<String> {
    let path = common_dir.join("config");
    fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(CONFIG_LIMIT).read_to_end(&mut bytes).ok()?;
    url_in(&String::from_utf8_lossy(&bytes)).and_then(|url| normalised(&url))
}

/// The last `url` of the section `remote "origin"`, as git takes it.
fn url_in(config: &str) -> Option<String> {
    let (mut inside, mut url) = (false, None);
    for line in config.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            let section = line.trim_start_matches('[').split(']').next().unwrap_or_default().trim();
            let (name, rest) = section.split_once(char::is_whitespace).unwrap_or((section, ""));
            inside = name.eq_ignore_ascii_case("remote") && rest.trim() == "\"origin\"";
        } else if inside
            && let Some((name, value)) = line.split_once('=')
            && name.trim().eq_ignore_ascii_case("url")
        {
            let value = value.trim();
            let plain = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            url = Some(plain.unwrap_or(value).to_owned());
        }
    }
    url
}

/// Without scheme, user, password, port and `.git`: `github.com/o/r`. `None`: it names no place.
fn normalised(url: &str) -> Option<String> {
    let helper = url.split_once("::").is_some_and(|(before, _)| !before.contains(['/', '[']));
    if url.is_empty() || url.len() > REMOTE_LIMIT || url.chars().any(char::is_control) || helper {
        return None;
    }
    let name = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => rest.to_owned(),
        Some((_, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            let port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
            let host = host.rsplit_once(':').filter(|(_, p)| port(p)).map_or(host, |(host, _)| host);
            format!("{}/{path}", host.to_ascii_lowercase())
        }
        // As of ssh: a colon before the first slash.
        None => match url.split_once(':') {
            Some((host, path)) if !host.is_empty() && !host.contains('/') => {
                let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                format!("{}/{}", host.to_ascii_lowercase(), path.trim_start_matches('/'))
            }
            _ => url.to_owned(),
        },
    };
    let name = name.trim_end_matches('/');
    let name = name.strip_suffix(".git").unwrap_or(name).trim_end_matches('/');
    (!name.is_empty()).then(|| name.to_owned())
}

/// The work trees of a repository: the main one, and those that it has registered, there or not.
pub(crate) fn trees(common_dir: &Path) -> Vec<PathBuf> {
    let main = common_dir.file_name().filter(|name| *name == ".git").and_then(|_| common_dir.parent());
    let mut trees: Vec<PathBuf> = main.map(Path::to_owned).into_iter().collect();
    let Ok(registered) = fs::read_dir(common_dir.join("worktrees")) else { return trees };
    for one in registered.take(TREES).flatten() {
        let Some(git_file) = pointer(&one.path().join("gitdir"), b"") else { continue };
        let git_file = one.path().join(git_file);
        // One that is there by its real path, as sessions are compared.
        let tree = git_file.parent().map(|tree| tree.canonicalize().unwrap_or_else(|_| tree.to_owned()));
        trees.extend(tree.filter(|tree| tree.is_absolute()));
    }
    trees.sort();
    trees.dedup();
    trees
}

/// The root commits of what is checked out in the main work tree, sorted. None at all where nobody can tell: no git, no
/// commit, a history that was cut, or one that takes too long.
///
/// What an agent wrote into the repository is not to start anything: git reads no configuration but the repository's own,
/// runs no hook, pager or monitor, and fetches nothing. A git that lies in one of the work trees is not run.
pub(crate) async fn roots(common_dir: &Path, trees: &[PathBuf]) -> Vec<String> {
    if common_dir.join("shallow").exists() {
        return Vec::new();
    }
    let Some(git) = git_outside(trees) else { return Vec::new() };
    let mut command = Command::new(git);
    command
        .args(["--no-pager", "--no-replace-objects", "--no-optional-locks"])
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
        .args(["-c", "protocol.allow=never", "-c", "core.commitGraph=true"])
        .arg("--git-dir")
        .arg(common_dir)
        .args(["rev-list", "--max-parents=0", "HEAD", "--"])
        .env_clear()
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_PAGER", "cat")])
        .envs([("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "")])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir(common_dir)
        .kill_on_drop(true);
    let answer = async {
        let mut child = command.spawn().ok()?;
        let mut printed = String::new();
        child.stdout.take()?.take(ROOTS_OUTPUT + 1).read_to_string(&mut printed).await.ok()?;
        let whole = printed.len() as u64 <= ROOTS_OUTPUT && child.wait().await.ok()?.success();
        whole.then_some(printed)
    };
    let printed = tokio::time::timeout(ROOTS_TIME, answer).await.ok().flatten().unwrap_or_default();
    let is_commit = |line: &&str| line.len() >= 40 && line.bytes().all(|b| b.is_ascii_hexdigit());
    let mut roots: Vec<String> = printed.lines().filter(is_commit).map(str::to_owned).collect();
    roots.sort();
    roots
}

/// The first git in the `PATH` that is in none of these folders.
fn git_outside(trees: &[PathBuf]) -> Option<PathBuf> {
    let environment = Environment::inherited();
    let path = environment.map().get("PATH")?;
    let program = if cfg!(windows) { "git.exe" } else { "git" };
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).find_map(|folder| {
        let real = folder.join(program).canonicalize().ok().filter(|real| real.is_file())?;
        let ours = |path: &Path| trees.iter().any(|tree| path.starts_with(tree));
        (!ours(&real) && !ours(&folder)).then_some(real)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_write_a_remote_are_one_name() {
        let same = [
            "https://github.com/o/r",
            "https://user:secret@GitHub.com/o/r.git",
            "https://github.com:443/o/r.git/",
            "ssh://git@github.com:22/o/r.git",
            "git@github.com:o/r.git",
            "github.com:/o/r",
            "git://github.com/o/r/",
        ];
        for url in same {
            assert_eq!(normalised(url).as_deref(), Some("github.com/o/r"), "{url}");
        }
        assert_eq!(normalised("/srv/git/r.git").as_deref(), Some("/srv/git/r"));
        assert_eq!(normalised("file:///srv/git/r.git").as_deref(), Some("/srv/git/r"));
        for none in ["", "ext::sh -c evil", ".git", "a\u{1b}[2J"] {
            assert_eq!(normalised(none), None, "{none:?}");
        }
        assert_ne!(normalised("git@github.com:o/r.git"), normalised("git@github.com:o/R.git"));
    }

    #[test]
    fn the_remote_is_that_of_its_section_and_the_last_one_counts() {
        let config = "[core]\n\turl = no\n[remote \"other\"]\n url = no\n[Remote \"origin\"]\n; url = no\n\tURL = \"a/b\"\n\turl=c/d\n[branch \"x\"]\nurl = no\n";
        assert_eq!(url_in(config).as_deref(), Some("c/d"));
        assert_eq!(url_in("[remote \"Origin\"]\nurl = no"), None);
        assert_eq!(url_in("[remote \"origin\"\nurl"), None);
    }
}
