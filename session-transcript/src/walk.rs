//! All session files below some folders, by their names and stamps alone: nothing is opened.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use session_core::history::{FileKind, FolderKind, Notice, NoticeKind, SessionFile, SessionRoot};
use session_core::{NativeId, TranscriptFormat};

use crate::find::{is_absent, is_same, why_unseen};
use crate::parts::segment;
use crate::plain::{Plain, Stamped};
use crate::pool;
use crate::stamp::Stamp;

/// A session file that was seen.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: PathBuf,
    pub(crate) file: SessionFile,
    pub(crate) stamp: Stamp,
    pub(crate) archived: bool,
    /// The segment's id, where the name tells one.
    pub(crate) segment: Option<NativeId>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) files: Vec<Seen>,
    pub(crate) notices: Vec<Notice>,
}

/// How to walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk<'a> {
    pub(crate) format: &'a dyn TranscriptFormat,
    /// The state dir, as a real path, where the roots are in one: it is never left.
    pub(crate) state_dir: Option<&'a Path>,
    /// Whether the files of helpers are wanted.
    pub(crate) sidechains: bool,
    /// The one session that is wanted; `None`: all.
    pub(crate) only: Option<&'a NativeId>,
    /// The names that its files can have; empty: any.
    pub(crate) names: &'a [String],
    /// How many entries of folders are looked at.
    pub(crate) limit: usize,
    /// What is known of folders, for a search by names.
    pub(crate) plain: Option<&'a Plain>,
}

/// A folder to look into.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Its path below the root.
    below: PathBuf,
    depth: u8,
    archived: bool,
}

/// A home of the agent that somebody named, and that is not there: its sessions are missing from all that is told.
pub(crate) fn missing_home(format: &dyn TranscriptFormat, state_dir: Option<&Path>) -> Option<Notice> {
    let home = format.named_home().filter(|_| state_dir.is_none())?;
    match fs::metadata(&home) {
        Err(error) if is_absent(&error) => Some(notice(&home, &error)),
        // What it holds is told by whoever looks into it.
        _ => None,
    }
}

/// What a folder holds.
#[derive(Debug, Default)]
struct Looked {
    folders: Vec<Folder>,
    found: Walked,
}

pub(crate) fn notice(path: &Path, why: &(impl ToString + ?Sized)) -> Notice {
    Notice { path: path.to_owned(), offset: None, kind: NoticeKind::Unreadable(why.to_string()) }
}

impl Walk<'_> {
    /// Walks the roots, level by level. A root that is not there holds nothing, unless the home around it was named.
    pub(crate) fn run(&self, roots: &[SessionRoot]) -> Walked {
        let mut walked = Walked::default();
        walked.notices.extend(missing_home(self.format, self.state_dir));
        let told = !walked.notices.is_empty();
        let left = AtomicUsize::new(self.limit);
        let mut level = Vec::new();
        for SessionRoot { folder, depth, archived } in roots {
            match self.is_outside(folder) {
                Ok(false) => level.push(Folder {
                    path: folder.clone(),
                    below: PathBuf::new(),
                    depth: *depth,
                    archived: *archived,
                }),
                Ok(true) => walked.notices.push(notice(folder, "it leads out of the state dir")),
                Err(error) => {
                    walked.notices.extend(why_unseen(folder, &error).map(|why| notice(folder, &why)));
                }
            }
        }
        if !told {
            self.levels(level, &left, &mut walked);
        }
        walked
    }

    fn levels(&self, mut level: Vec<Folder>, left: &AtomicUsize, walked: &mut Walked) {
        while !level.is_empty() {
            let looked = pool::map(&level, 2, || (), |(), folder| self.look(folder, left));
            level.clear();
            for Looked { folders, found } in looked {
                level.extend(folders);
                walked.files.extend(found.files);
                walked.notices.extend(found.notices);
            }
        }
    }

    /// Looks for the one session at the places that its id alone tells: in each root, and in each folder of one. Where it is
    /// at none of these, everywhere.
    pub(crate) fn search(&self, roots: &[SessionRoot]) -> Walked {
        // An id that is a path is none.
        let is_name = |name: &String| Path::new(name).file_name() == Some(OsStr::new(name));
        if self.names.is_empty() || !self.names.iter().all(is_name) {
            return self.run(roots);
        }
        let mut walked = Walked::default();
        let mut deeper = Some(Vec::new());
        for root in roots {
            match self.is_outside(&root.folder) {
                Ok(false) => self.probe(root, &mut walked, &mut deeper),
                Err(error) if is_absent(&error) => {}
                _ => deeper = None,
            }
        }
        if !walked.files.is_empty() {
            return walked;
        }
        match deeper {
            Some(deeper) => self.levels(deeper, &AtomicUsize::new(self.limit), &mut walked),
            None => walked = self.run(roots),
        }
        walked
    }

    /// Collects the folders that have to be read; `None`: all, from the root on.
    fn probe(&self, root: &SessionRoot, walked: &mut Walked, deeper: &mut Option<Vec<Folder>>) {
        let SessionRoot { folder, depth, archived } = root;
        self.probe_in(folder, Path::new(""), *archived, walked);
        let Ok(children) = fs::read_dir(folder) else {
            *deeper = None;
            return;
        };
        let mut path = folder.clone();
        for child in children {
            let Ok((child, kind)) = child.and_then(|child| child.file_type().map(|kind| (child, kind)))
            else {
                *deeper = None;
                continue;
            };
            if kind.is_file() || *depth == 0 {
                continue;
            }
            let name = child.file_name();
            path.push(&name);
            // What to do with a link, or a name that is no text, is for the walk to say, where nothing is found without.
            if !kind.is_dir() || name.to_str().is_none() {
                *deeper = None;
            }
            let enters = kind.is_dir() || (kind.is_symlink() && self.state_dir.is_none() && path.is_dir());
            if enters && self.format.folder(Path::new(&name)) == FolderKind::Sessions {
                self.probe_in(&path, Path::new(&name), *archived, walked);
                if let Some(deeper) = deeper
                    && !self.plain.is_some_and(|plain| plain.knows(&path))
                {
                    let (path, below) = (path.clone(), PathBuf::from(name));
                    deeper.push(Folder { path, below, depth: *depth - 1, archived: *archived });
                }
            }
            path.pop();
        }
    }

    fn probe_in(&self, folder: &Path, below: &Path, archived: bool, walked: &mut Walked) {
        for name in self.names {
            let path = folder.join(name);
            let metadata = match path.symlink_metadata() {
                // What stands for nearly all folders.
                Err(error) if is_absent(&error) => continue,
                Ok(metadata) if metadata.is_symlink() => self.through_link(&path),
                metadata => metadata,
            };
            let below = below.join(name);
            if let Some(file) = self.format.session_file(&below).filter(|file| self.wants(&below, file)) {
                walked.add(path, metadata, archived, (file, self.format.segment(name)));
            }
        }
    }

    fn is_outside(&self, path: &Path) -> io::Result<bool> {
        let Some(dir) = self.state_dir else { return Ok(false) };
        Ok(!path.canonicalize()?.starts_with(dir))
    }

    fn look(&self, folder: &Folder, left: &AtomicUsize) -> Looked {
        let mut looked = Looked::default();
        let before = self.plain.map(|_| Stamped::of(&folder.path));
        let children = match fs::read_dir(&folder.path) {
            Ok(children) => children,
            Err(error) => {
                // What went away meanwhile holds nothing; a file that took a folder's place meanwhile neither.
                let is_root = folder.below.as_os_str().is_empty();
                let why = if is_root { why_unseen(&folder.path, &error) } else { Some(error.to_string()) };
                let why = why.filter(|_| is_root || !is_absent(&error));
                looked.found.notices.extend(why.map(|why| notice(&folder.path, &why)));
                return looked;
            }
        };
        // One path for all children: most of them are files, and every one is asked for by its path below the root.
        let mut below = folder.below.clone();
        for child in children {
            if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
                let kind = NoticeKind::LimitReached;
                looked.found.notices.push(Notice { path: folder.path.clone(), offset: None, kind });
                return looked;
            }
            match child {
                Ok(child) => {
                    let name = child.file_name();
                    below.push(&name);
                    self.child(folder, &child, (&name, &below), &mut looked);
                    below.pop();
                }
                Err(error) => {
                    looked.found.notices.push(notice(&folder.path, &error));
                    return looked;
                }
            }
        }
        if let (Some(plain), Some(Some(before))) = (self.plain, before)
            && looked.folders.is_empty()
            && looked.found.notices.is_empty()
        {
            plain.learn(&folder.path, &before);
        }
        looked
    }

    fn child(&self, folder: &Folder, child: &DirEntry, (name, below): (&OsStr, &Path), looked: &mut Looked) {
        let Ok(kind) = child.file_type() else { return };
        if kind.is_file() && !self.names.is_empty() && !self.names.iter().any(|wanted| name == &**wanted) {
            return;
        }
        if let Some(file) = self.format.session_file(below) {
            if self.wants(below, &file) {
                // `join` would make room twice.
                let mut path = PathBuf::with_capacity(folder.path.as_os_str().len() + 1 + name.len());
                path.extend([folder.path.as_os_str(), name]);
                let linked = kind.is_symlink();
                let metadata = if linked { self.through_link(&path) } else { child.metadata() };
                let segment = name.to_str().and_then(|name| self.format.segment(name));
                looked.found.add(path, metadata, folder.archived, (file, segment));
            }
            return;
        }
        let holds = |below: &Path| match self.format.folder(below) {
            FolderKind::Sessions => true,
            FolderKind::Sidechains => self.sidechains,
            FolderKind::Other => false,
        };
        let Some(depth) = folder.depth.checked_sub(1) else { return };
        if !(kind.is_dir() || kind.is_symlink()) {
            return;
        }
        if name.to_str().is_none() && holds(Path::new(&*below.to_string_lossy())) {
            // Formats know names as text.
            let path = folder.path.join(name);
            return looked.found.notices.push(notice(&path, "its name is not UTF-8"));
        }
        if !holds(below) {
            return;
        }
        let path = folder.path.join(name);
        if kind.is_symlink() {
            match fs::metadata(&path) {
                Ok(metadata) if !metadata.is_dir() => return,
                // In a state dir, a link may lead back, or into another mailbox.
                Ok(_) if self.state_dir.is_some() => {
                    return looked.found.notices.push(notice(&path, "a link to a folder is not entered"));
                }
                Ok(_) => {}
                Err(error) if is_absent(&error) => return,
                Err(error) => return looked.found.notices.push(notice(&path, &error)),
            }
        }
        looked.folders.push(Folder { path, below: below.to_owned(), depth, archived: folder.archived });
    }

    fn wants(&self, below: &Path, file: &SessionFile) -> bool {
        let asked = |id: &NativeId| file.id == *id || segment(self.format, below).as_ref() == Some(id);
        (file.kind == FileKind::Session || self.sidechains) && self.only.is_none_or(asked)
    }

    fn through_link(&self, path: &Path) -> io::Result<Metadata> {
        let metadata = fs::metadata(path)?;
        if let Some(dir) = self.state_dir {
            let real = path.canonicalize()?;
            if !real.starts_with(dir) || !is_same(&metadata, &real.symlink_metadata()?) {
                return Err(io::Error::other("it leads out of the state dir"));
            }
        }
        Ok(metadata)
    }
}

impl Walked {
    fn add(
        &mut self,
        path: PathBuf,
        metadata: io::Result<Metadata>,
        archived: bool,
        (file, segment): (SessionFile, Option<NativeId>),
    ) {
        match metadata {
            Ok(metadata) if metadata.is_file() => {
                self.files.push(Seen { path, file, stamp: Stamp::of(&metadata), archived, segment });
            }
            Ok(_) => self.notices.push(notice(&path, "it is no regular file")),
            // It went away, or the link leads nowhere.
            Err(error) if is_absent(&error) => {}
            Err(error) => self.notices.push(notice(&path, &error)),
        }
    }
}
