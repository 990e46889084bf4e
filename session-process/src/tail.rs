//! The end of a stream, in bounded memory.

/// How much is kept, in bytes.
const KEPT: usize = 64 * 1024;

/// Keeps the last 64 KiB.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    dropped: u64,
}

impl Tail {
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let chunk = match chunk.len().checked_sub(KEPT) {
            Some(excess) => {
                self.dropped += excess as u64;
                &chunk[excess..]
            }
            None => chunk,
        };
        // Moved together only when twice the size is reached, so that every byte is moved once at most.
        if self.bytes.len() + chunk.len() > 2 * KEPT {
            self.trim(KEPT - chunk.len());
        }
        self.bytes.extend_from_slice(chunk);
    }

    fn trim(&mut self, keep: usize) {
        let excess = self.bytes.len().saturating_sub(keep);
        self.dropped += excess as u64;
        self.bytes.drain(..excess);
    }

    /// The text, with a mark where something is missing. Bytes that are no UTF-8 are replaced.
    pub(crate) fn into_text(mut self) -> String {
        self.trim(KEPT);
        let text = String::from_utf8_lossy(&self.bytes);
        match self.dropped {
            0 => text.into_owned(),
            dropped => format!("[{dropped} bytes left out]\n{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_the_rest_is_counted() {
        let all: Vec<u8> = (0..200_000_u32).map(|i| b'a' + u8::try_from(i % 26).unwrap()).collect();
        for chunk in [1, 100, 8192, KEPT, 150_000, 200_000] {
            let mut tail = Tail::default();
            for chunk in all.chunks(chunk) {
                tail.push(chunk);
                assert!(tail.bytes.len() <= 2 * KEPT, "memory is bounded at every moment");
            }
            let text = tail.into_text();
            let (mark, kept) = text.split_once('\n').unwrap();
            assert_eq!(mark, format!("[{} bytes left out]", all.len() - KEPT), "{chunk}");
            assert_eq!(kept.as_bytes(), &all[all.len() - KEPT..], "{chunk}");
        }
        let mut short = Tail::default();
        short.push(b"caf\xc3");
        short.push(b"\xa9");
        assert_eq!(short.into_text(), "café");
    }
}
