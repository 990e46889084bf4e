//! Cures for a session's file that lose nothing of it. None is written through a link: the agent may have put it there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;

use session_core::TranscriptFormat;

use crate::find::options;
use crate::lines::LINE_LIMIT;
use crate::scan::READ_LIMIT;

/// Writes a line end behind a last line that has none, and says whether it did.
pub(crate) fn end_last_line(path: &Path, bytes: u64) -> io::Result<bool> {
    let Some(mut file) = unchanged(path, bytes, options().append(true))?.filter(|_| bytes > 0) else {
        return Ok(false);
    };
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(false);
    }
    file.write_all(b"\n")?;
    Ok(true)
}

/// Gives every record behind the first numbered one its number, counting on from there, and says whether it did. The
/// file is written anew beside itself and takes its own place whole. One that a look does not read whole stays as it is.
pub(crate) fn number_records(format: &dyn TranscriptFormat, path: &Path, bytes: u64) -> io::Result<bool> {
    number_within(format, path, bytes, Limits { file: READ_LIMIT, line: LINE_LIMIT })
}

/// What is read whole.
#[derive(Debug, Clone, Copy)]
struct Limits {
    file: u64,
    line: usize,
}

fn number_within(format: &dyn TranscriptFormat, path: &Path, bytes: u64, limits: Limits) -> io::Result<bool> {
    if bytes > limits.file {
        return Ok(false);
    }
    let Some(file) = unchanged(path, bytes, &mut options())? else { return Ok(false) };
    let folder = path.parent().ok_or_else(|| io::Error::other("a file without a folder"))?;
    let mut anew = tempfile::Builder::new().prefix(".mend-").tempfile_in(folder)?;
    let out = BufWriter::new(anew.as_file_mut());
    // What is appended meanwhile is not waited for.
    if !copy_numbered(format, BufReader::new((&file).take(bytes)), out, limits)? {
        return Ok(false);
    }
    // Nobody wrote meanwhile, as far as the size tells.
    if file.metadata()?.len() != bytes {
        return Ok(false);
    }
    anew.as_file().set_permissions(file.metadata()?.permissions())?;
    anew.as_file().sync_all()?;
    anew.persist(path).map_err(|error| error.error)?;
    sync_folder(folder)?;
    Ok(true)
}

/// Copies the lines, with numbers. `false`: a line, or the copy, is longer than what a look reads.
fn copy_numbered(
    format: &dyn TranscriptFormat,
    mut lines: impl BufRead,
    mut out: impl Write,
    limits: Limits,
) -> io::Result<bool> {
    let (mut line, mut last, mut copied) = (Vec::new(), None::<u64>, 0);
    // One byte more than a line may have: its end, or the proof that it is too long.
    let longest = limits.line as u64 + 1;
    while lines.by_ref().take(longest).read_until(b'\n', &mut line)? > 0 {
        if line.len() > limits.line && !line.ends_with(b"\n") {
            return Ok(false);
        }
        let facts = format.record(&line);
        let written = match (facts.as_ref().and_then(|facts| facts.number), last) {
            (Some(number), _) => {
                last = Some(number);
                None
            }
            (None, Some(before)) if facts.is_some() => {
                let text = line.trim_ascii_end();
                // Behind the last number that there is, there is none.
                let numbered =
                    before.checked_add(1).and_then(|next| Some((next, format.numbered(text, next)?)));
                let (next, mut numbered) =
                    numbered.ok_or_else(|| io::Error::other("a record that can have no number"))?;
                last = Some(next);
                numbered.push(b'\n');
                Some(numbered)
            }
            _ => None,
        };
        let written = written.as_deref().unwrap_or(&line);
        copied += written.len() as u64;
        if copied > limits.file {
            return Ok(false);
        }
        out.write_all(written)?;
        line.clear();
    }
    out.flush()?;
    Ok(true)
}

/// Moves a file of the archive back to where it belongs, and says whether it did. Never over another one.
pub(crate) fn unarchive(path: &Path, bytes: u64, home: &Path) -> io::Result<bool> {
    if unchanged(path, bytes, &mut options())?.is_none() {
        return Ok(false);
    }
    let folder = home.parent().ok_or_else(|| io::Error::other("a file without a folder"))?;
    create(folder)?;
    // A link first: unlike a rename, it fails where something is.
    fs::hard_link(path, home)?;
    fs::remove_file(path)?;
    sync_folder(folder)?;
    Ok(true)
}

/// Whether the folder of this path, as far as it is there, is one of the state dir: a link on the way may lead to another
/// mailbox.
pub(crate) fn stays_in(path: &Path, state_dir: &Path) -> io::Result<()> {
    let out = || io::Error::other("it leads out of the state dir");
    let folder = path.ancestors().skip(1).find(|folder| folder.symlink_metadata().is_ok());
    let real = folder.ok_or_else(out)?.canonicalize()?;
    if real.starts_with(state_dir.canonicalize()?) { Ok(()) } else { Err(out()) }
}

/// The file, if it is one, has still that size, and no other name: under that, it may be another mailbox's.
fn unchanged(path: &Path, bytes: u64, options: &mut OpenOptions) -> io::Result<Option<File>> {
    let not_a_file = || io::Error::other("not a regular file");
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(not_a_file());
    }
    let file = no_links(options).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_a_file());
    }
    Ok((metadata.len() == bytes && names(&metadata) == 1).then_some(file))
}

#[cfg(unix)]
fn names(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;

    metadata.nlink()
}

/// There is no number to ask for.
#[cfg(not(unix))]
const fn names(_: &fs::Metadata) -> u64 {
    1
}

#[cfg(unix)]
fn create(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// A renamed file is durable when its folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same face on every system")]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NOFOLLOW;
    options.custom_flags(flags.bits().cast_signed())
}

#[cfg(not(unix))]
const fn no_links(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(test)]
#[path = "mend_tests.rs"]
mod tests;
