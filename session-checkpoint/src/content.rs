//! Reads what is in files and links that changed, on two threads, for one to write it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use session_core::LeftOutWhy;

use crate::found::{Found, Harvest, Missed, State};
use crate::handle::{self, Sort, Stamp};
use crate::node::What;
use crate::object::{Hash, Kind, PIECE};
use crate::trouble::{Outcome, Trouble};

/// A file that changes is read so many times before it is left out.
const TRIES: usize = 4;
/// So many bytes are read by the caller's thread alone.
const SMALL: u64 = 1 << 20;
const THREADS: usize = 2;
/// So many pieces wait to be written.
const WAITING: usize = 16;

/// An object on its way into the database.
pub(crate) type Piece = (Kind, Hash, Vec<u8>);

/// What came of reading something.
type Content = Result<State, LeftOutWhy>;

/// Reads all that has to be read, gives it to `put`, and settles the states.
pub(crate) fn read_all(
    harvest: &mut Harvest<'_>,
    top: &OwnedFd,
    limit: u64,
    mut put: impl FnMut(Piece) -> Outcome<()>,
) -> Outcome<()> {
    let orders = orders(harvest);
    let bytes: u64 = orders.iter().flat_map(|order| &order.items).map(|item| item.stamp.size).sum();
    let done = if bytes <= SMALL && orders.len() < 100 {
        let mut done = Vec::new();
        for order in &orders {
            order.read(top, limit, &mut put, &mut done)?;
        }
        done
    } else {
        apart(&orders, top, limit, put)?
    };
    for (folder, at, content) in done {
        let Some(Found::Folder(folder)) = harvest.found.get_mut(folder) else { continue };
        let item = &mut folder.items[at];
        item.state = content.unwrap_or_else(|why| {
            harvest.left_out.push((handle::join(&folder.path, &item.name), why));
            State::Other
        });
    }
    Ok(())
}

/// What has to be read in one folder.
struct Order<'s> {
    folder: usize,
    path: &'s [u8],
    open: Option<&'s OwnedFd>,
    items: Vec<Wanted>,
}

struct Wanted {
    at: usize,
    name: Vec<u8>,
    stamp: Stamp,
    sort: Sort,
}

fn orders<'s>(harvest: &'s Harvest<'_>) -> Vec<Order<'s>> {
    let mut orders = Vec::new();
    for (folder, found) in harvest.found.iter().enumerate() {
        let Found::Folder(scanned) = found else { continue };
        let wanted = scanned.items.iter().enumerate().filter_map(|(at, item)| match item.state {
            State::Read(stamp, sort) => Some(Wanted { at, name: item.name.to_vec(), stamp, sort }),
            _ => None,
        });
        let items: Vec<_> = wanted.collect();
        if !items.is_empty() {
            orders.push(Order { folder, path: &scanned.path, open: scanned.handle.as_ref(), items });
        }
    }
    orders
}

type Done = Vec<(usize, usize, Content)>;

/// Reads on threads, while this one writes.
fn apart(
    orders: &[Order<'_>],
    top: &OwnedFd,
    limit: u64,
    mut put: impl FnMut(Piece) -> Outcome<()>,
) -> Outcome<Done> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = mpsc::sync_channel::<Piece>(WAITING);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..THREADS)
            .map(|_| {
                let sender = sender.clone();
                let (next, stop) = (&next, &stop);
                scope.spawn(move || {
                    let mut done = Vec::new();
                    let mut send = |piece| sender.send(piece).map_err(|_| Trouble::Busy);
                    while let Some(order) = orders.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        order.read(top, limit, &mut send, &mut done)?;
                    }
                    Ok(done)
                })
            })
            .collect();
        drop(sender);
        let mut written = Ok(());
        for piece in receiver {
            written = put(piece);
            if written.is_err() {
                break;
            }
        }
        // With the receiver gone, a reader that is at work ends at its next piece.
        stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        let mut read: Outcome<()> = Ok(());
        for reader in readers {
            match reader.join().expect("a reader does not panic") {
                Ok(mut done) => all.append(&mut done),
                Err(trouble) => read = Err(trouble),
            }
        }
        written?;
        read?;
        Ok(all)
    })
}

impl Order<'_> {
    fn read(
        &self,
        top: &OwnedFd,
        limit: u64,
        put: &mut impl FnMut(Piece) -> Outcome<()>,
        done: &mut Done,
    ) -> Outcome<()> {
        let opened;
        let folder = match self.open.map_or_else(|| handle::below(top, self.path).map(Some), |_| Ok(None)) {
            Ok(folder) => {
                opened = folder;
                opened.as_ref().or(self.open).expect("it was open, or is now")
            }
            Err(error) => {
                let content = failed(self.path, error)?;
                done.extend(self.items.iter().map(|item| (self.folder, item.at, content)));
                return Ok(());
            }
        };
        for item in &self.items {
            let content = match item.sort {
                Sort::Link => link(folder, &item.name, put)?,
                _ => file(folder, &item.name, limit, put)?,
            };
            done.push((self.folder, item.at, content));
        }
        Ok(())
    }
}

/// What became of something that could not be read.
fn failed(path: &[u8], error: io::Error) -> Outcome<Content> {
    match Missed::from(error) {
        Missed::Gone => Ok(Ok(State::Gone)),
        Missed::Out(why) => Ok(Err(why)),
        Missed::Failed(error) => Err(Trouble::io(handle::path(path))(error)),
    }
}

fn link(folder: &OwnedFd, name: &[u8], put: &mut impl FnMut(Piece) -> Outcome<()>) -> Outcome<Content> {
    for _ in 0..TRIES {
        let read = || -> io::Result<_> {
            let before = handle::look(folder, name)?;
            let target = handle::target(folder, name)?;
            Ok((before, target, handle::look(folder, name)?))
        };
        let (before, target, after) = match read() {
            Ok(read) => read,
            // It is no link any more.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Ok(Err(LeftOutWhy::Unsteady));
            }
            Err(error) => return failed(name, error),
        };
        if before.sort == Sort::Link && before.stamp == after.stamp {
            let hash = Hash::of(Kind::Piece, &target);
            let what = What::Link { bytes: target.len() as u64, target: hash };
            put((Kind::Piece, hash, target))?;
            return Ok(Ok(State::Kept(after.stamp, what)));
        }
    }
    Ok(Err(LeftOutWhy::Unsteady))
}

fn file(
    folder: &OwnedFd,
    name: &[u8],
    limit: u64,
    put: &mut impl FnMut(Piece) -> Outcome<()>,
) -> Outcome<Content> {
    for _ in 0..TRIES {
        let opened = handle::file(folder, name).and_then(|file| Ok((handle::look_at(&file)?, file)));
        let (before, mut file) = match opened {
            Ok(opened) => opened,
            Err(error) => return failed(name, error),
        };
        if before.sort != Sort::File {
            return Ok(Err(LeftOutWhy::Unsteady));
        }
        if before.stamp.size > limit {
            return Ok(Err(LeftOutWhy::TooLarge { bytes: before.stamp.size }));
        }
        let read = match pieces(&mut file, before.stamp.size, put)? {
            Ok(read) => read,
            Err(error) => return failed(name, error),
        };
        let after = match handle::look_at(&file) {
            Ok(after) => after.stamp,
            Err(error) => return failed(name, error),
        };
        if let (Some(content), true) = (read, before.stamp == after) {
            let what = What::File { mode: after.mode(), bytes: after.size, content };
            return Ok(Ok(State::Kept(after, what)));
        }
    }
    Ok(Err(LeftOutWhy::Unsteady))
}

/// Gives the content of a file of this size to `put`. `None`: it has another size by now.
fn pieces(
    file: &mut File,
    bytes: u64,
    put: &mut impl FnMut(Piece) -> Outcome<()>,
) -> Outcome<io::Result<Option<Hash>>> {
    let mut list = Vec::new();
    let mut left = bytes;
    loop {
        let size = left.min(PIECE as u64);
        let mut data = Vec::with_capacity(usize::try_from(size).unwrap_or(PIECE) + 1);
        // The last piece asks for a byte more, to see the end.
        let more = u64::from(size == left);
        match file.take(size + more).read_to_end(&mut data) {
            Err(error) => return Ok(Err(error)),
            Ok(read) if read as u64 != size => return Ok(Ok(None)),
            Ok(_) => {}
        }
        let hash = Hash::of(Kind::Piece, &data);
        put((Kind::Piece, hash, data))?;
        left -= size;
        if bytes <= PIECE as u64 {
            return Ok(Ok(Some(hash)));
        }
        list.extend_from_slice(&hash.0);
        if left == 0 {
            let hash = Hash::of(Kind::Pieces, &list);
            put((Kind::Pieces, hash, list))?;
            return Ok(Ok(Some(hash)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use session_core::LeftOutWhy;

    use super::{PIECE, State, TRIES, What, file, handle};

    /// Reads a file to which something is added after each of its first pieces, up to so many times.
    fn read(disturbed: usize) -> (Result<State, LeftOutWhy>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, vec![1; PIECE + 1]).unwrap();
        let mut times = 0;
        let read = file(&handle::top(folder.path()).unwrap(), b"f", u64::MAX, &mut |(_, _, data)| {
            if data.len() == PIECE && times < disturbed {
                times += 1;
                fs::File::options().append(true).open(&path).unwrap().write_all(b"more").unwrap();
            }
            Ok(())
        });
        (read.unwrap(), times)
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_read_again() {
        let (read, _) = read(TRIES - 1);
        let Ok(State::Kept(_, What::File { bytes, .. })) = read else { panic!("{read:?}") };
        assert_eq!(bytes, (PIECE + 1 + (TRIES - 1) * 4) as u64);
    }

    #[test]
    fn a_file_that_never_rests_is_left_out() {
        let (read, times) = read(usize::MAX);
        assert_eq!(read.unwrap_err(), LeftOutWhy::Unsteady);
        assert_eq!(times, TRIES);
    }
}
