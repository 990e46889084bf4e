//! Lines of a file, in constant memory, and records that are glued to something else.

use std::io::{self, BufRead};

/// The longest line that is read, without its end. Longer ones are left out, so that memory stays bounded.
pub(crate) const LINE_LIMIT: usize = 32 << 20;

/// A line, without its end.
pub(crate) enum Line<'a> {
    Ended(&'a [u8]),
    EndedTooLong,
    /// What stands behind the last newline; empty where nothing does.
    Last(&'a [u8]),
    LastTooLong,
}

/// Hands on every line, in constant memory, and says how many bytes there were.
pub(crate) fn each_line(
    mut file: impl BufRead,
    limit: usize,
    each: &mut dyn FnMut(Line<'_>),
) -> io::Result<u64> {
    // The start of a line that does not lie in one chunk.
    let mut carried = Vec::new();
    let (mut too_long, mut bytes) = (false, 0);
    loop {
        let chunk = match file.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            each(if too_long { Line::LastTooLong } else { Line::Last(&carried) });
            return Ok(bytes);
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            let piece = &chunk[start..end];
            start = end + 1;
            if too_long || carried.len() + piece.len() > limit {
                each(Line::EndedTooLong);
            } else if carried.is_empty() {
                each(Line::Ended(piece));
            } else {
                carried.extend_from_slice(piece);
                each(Line::Ended(&carried));
            }
            carried.clear();
            too_long = false;
        }
        let rest = &chunk[start..];
        if too_long || carried.len() + rest.len() > limit {
            too_long = true;
            carried.clear();
        } else {
            carried.extend_from_slice(rest);
        }
        let length = chunk.len();
        bytes += length as u64;
        file.consume(length);
    }
}

/// The whole record at the end of a line that begins with half of one, or with NULs; `read` tells what is one.
///
/// From the end: an object inside of the record does not reach to the end of the line, so the first one that
/// does is the record itself, and each try is as short as the object. After some megabytes of tries it is given up: a line
/// can be made so that each of them is long.
pub(crate) fn glued<'a, T>(line: &'a [u8], read: impl Fn(&'a [u8]) -> Option<T>) -> Option<T> {
    let mut effort = line.len().saturating_mul(16).saturating_add(64 << 20);
    memchr::memmem::rfind_iter(line, b"{\"")
        .take_while(|at| {
            let left = effort.checked_sub(line.len() - at);
            effort = left.unwrap_or_default();
            left.is_some()
        })
        .find_map(|at| read(&line[at..]))
}
