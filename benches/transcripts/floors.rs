//! What the machine needs for the least that anybody could do: one thread, one buffer, nothing parsed.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// How much of a beginning and of an end is read.
const WINDOW: u64 = 64 << 10;
/// How much is read at once of a whole file.
const CHUNK: usize = 1 << 20;

/// The session files below a folder, so many folders deep, with their sizes.
pub(crate) fn stat_all(root: &Path, depth: u8) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    let mut folders = vec![(root.to_owned(), depth)];
    while let Some((folder, left)) = folders.pop() {
        for child in fs::read_dir(folder).unwrap() {
            let child = child.unwrap();
            if child.file_type().unwrap().is_dir() {
                if let Some(left) = left.checked_sub(1) {
                    folders.push((child.path(), left));
                }
            } else if child.path().extension().is_some_and(|extension| extension == "jsonl") {
                files.push((child.path(), child.metadata().unwrap().len()));
            }
        }
    }
    files
}

/// Has the system drop what it keeps in memory of the content of the files; what it keeps of folders stays.
pub(crate) fn forget(root: &Path, depth: u8) {
    for (path, _) in stat_all(root, depth) {
        let file = File::open(path).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
}

/// Beginning and, where that is wanted, end of each file.
pub(crate) fn read_ends(root: &Path, depth: u8, tail: bool) -> u64 {
    let mut buffer = Vec::with_capacity(usize::try_from(WINDOW).unwrap());
    let mut bytes = 0;
    for (path, size) in stat_all(root, depth) {
        let mut file = File::open(path).unwrap();
        let mut read = |file: &mut File| {
            buffer.clear();
            bytes += file.take(WINDOW).read_to_end(&mut buffer).unwrap() as u64;
        };
        read(&mut file);
        if tail && size > WINDOW {
            file.seek(SeekFrom::Start((size - WINDOW).max(WINDOW))).unwrap();
            read(&mut file);
        }
    }
    bytes
}

/// All of every file, its newlines counted.
pub(crate) fn newlines(root: &Path, depth: u8) -> u64 {
    let mut buffer = vec![0; CHUNK];
    let mut lines = 0;
    for (path, _) in stat_all(root, depth) {
        let mut file = File::open(path).unwrap();
        loop {
            let length = file.read(&mut buffer).unwrap();
            if length == 0 {
                break;
            }
            lines += memchr::memchr_iter(b'\n', &buffer[..length]).count() as u64;
        }
    }
    lines
}

#[derive(Deserialize)]
struct Line {
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    output_tokens: u64,
}

/// Every file whole, and every line that holds a usage parsed for it; nothing is counted once only.
pub(crate) fn usage(root: &Path, depth: u8) -> u64 {
    let finder = memchr::memmem::Finder::new(b"\"usage\":");
    let mut tokens = 0;
    for (path, _) in stat_all(root, depth) {
        for line in fs::read(path).unwrap().split(|byte| *byte == b'\n') {
            if finder.find(line).is_some()
                && let Ok(Line { message: Some(Message { usage: Some(usage) }) }) =
                    serde_json::from_slice(line)
            {
                tokens += usage.output_tokens;
            }
        }
    }
    tokens
}

/// Tries to open a file of that name in each folder of the root.
pub(crate) fn open_in_each(root: &Path, name: &str) -> usize {
    let folders = fs::read_dir(root).unwrap().map(|child| child.unwrap().path());
    folders.filter(|folder| File::open(folder.join(name)).is_ok()).count()
}
