//! Room for what is read, which is made once: to write zeros into it for each file would take a part of the time of reading.

use std::ops::Deref;

/// What was read, and behind it room for more.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    room: Vec<u8>,
    filled: usize,
}

impl Filled {
    pub(crate) const fn clear(&mut self) {
        self.filled = 0;
    }

    /// So much room behind what was read; what is in it means nothing.
    pub(crate) fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.filled + length;
        if self.room.len() < end {
            self.room.resize(end, 0);
        }
        &mut self.room[self.filled..end]
    }

    /// Takes so many bytes of the room for read.
    pub(crate) fn grow(&mut self, length: usize) {
        self.filled = self.room.len().min(self.filled + length);
    }
}

impl Deref for Filled {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.room[..self.filled]
    }
}
