//! Open files and folders of the simulated disk.

use std::io;

use rustix::io::Errno;

use super::disk::{Call, Course, Lying, Simulated};
use super::platter::Id;
use crate::disk::{DiskFile, DiskFolder, Meta};

#[derive(Debug)]
pub(super) struct File {
    pub(super) disk: Simulated,
    pub(super) id: Id,
    pub(super) handle: u64,
}

impl File {
    fn sync(&self) -> io::Result<()> {
        self.disk.call(Call::SyncFile, |inner, course| {
            match course {
                Course::Lost => {
                    inner.state.lose_file(self.id);
                    return Err(Errno::IO.into());
                }
                _ if inner.lying == Lying::NoFileSync => {}
                _ => inner.state.sync_file(self.id),
            }
            Ok(())
        })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // The kernel releases the lock with the last handle, whatever happened before.
        self.disk.inner().state.unlock(self.id, self.handle);
    }
}

fn half(length: usize, course: &Course) -> usize {
    if matches!(course, Course::Half) { length.div_ceil(2) } else { length }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.call(Call::Read, |inner, course| {
            let content = inner.state.file(self.id)?;
            let rest = content.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
            let count = half(rest.len().min(buffer.len()), &course);
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.call(Call::Write, |inner, course| {
            let (count, offset) = (half(bytes.len(), &course), usize::try_from(offset).unwrap());
            inner.note_half(self.id, offset, &bytes[..count / 2]);
            inner.state.write(self.id, offset, &bytes[..count]);
            Ok(count)
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.disk.call(Call::Other, |inner, _| {
            inner.state.set_len(self.id, usize::try_from(length).unwrap());
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn meta(&self) -> io::Result<Meta> {
        self.disk.call(Call::Other, |inner, _| Ok(self.disk.meta(&inner.state, self.id)))
    }

    fn make_private(&self) -> io::Result<()> {
        self.disk.call(Call::Other, |_, _| Ok(()))
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.disk.call(Call::Other, |inner, _| Ok(inner.state.lock(self.id, self.handle)))
    }

    fn unlock(&self) -> io::Result<()> {
        self.disk.call(Call::Other, |inner, _| {
            inner.state.unlock(self.id, self.handle);
            Ok(())
        })
    }
}

#[derive(Debug)]
pub(super) struct Folder {
    pub(super) disk: Simulated,
    pub(super) id: Id,
}

impl DiskFolder for Folder {
    fn make(&self, name: &str) -> io::Result<bool> {
        self.disk.call(Call::Other, |inner, _| {
            let missing = !inner.state.entries(self.id)?.contains_key(name);
            if missing {
                inner.state.create(self.id, name.into(), true);
            }
            Ok(missing)
        })
    }

    fn enter(&self, name: &str) -> io::Result<Box<dyn DiskFolder>> {
        self.disk.call(Call::Other, |inner, _| {
            let id = *inner.state.entries(self.id)?.get(name).ok_or(Errno::NOENT)?;
            self.disk.folder(&inner.state, id)
        })
    }

    fn meta(&self) -> io::Result<Meta> {
        self.disk.call(Call::Other, |inner, _| Ok(self.disk.meta(&inner.state, self.id)))
    }

    fn make_private(&self) -> io::Result<()> {
        self.disk.call(Call::Other, |_, _| Ok(()))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.call(Call::Other, |inner, _| {
            if inner.lying != Lying::NoFolderSync {
                inner.state.sync_folder(self.id);
            }
            Ok(())
        })
    }
}
