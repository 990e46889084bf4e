use std::fs;
use std::path::PathBuf;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

fn packed(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

fn text(lines: u32) -> Vec<u8> {
    (0..lines).flat_map(|n| format!("{{\"n\":{n}}}\n").into_bytes()).collect()
}

#[test]
fn a_file_is_unpacked_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("s.jsonl.zst"), folder.path().join("s.jsonl"));
    let text = text(40_000);
    let whole = packed(&text);

    for bad in [&whole[..whole.len() / 2], &text[..], b""] {
        fs::write(&from, bad).unwrap();
        assert_eq!(unpack_to(&from, &to).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    fs::write(&from, &whole).unwrap();
    assert_eq!(unpack_to(&from, &to).unwrap(), text.len() as u64);
    assert!(fs::read(&to).unwrap() == text && fs::read(&from).unwrap() == whole);

    fs::write(&to, "newer").unwrap();
    assert_eq!(unpack_to(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&to).unwrap(), "newer");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// A folder with a packed file of that content, as bytes.
fn folder_with(text: &[u8]) -> (tempfile::TempDir, PathBuf, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("s.jsonl.zst"), folder.path().join("s.jsonl"));
    let whole = packed(text);
    fs::write(&from, &whole).unwrap();
    (folder, from, to, whole)
}

#[test]
fn whoever_is_killed_at_any_step_leaves_the_session_whole() {
    let text = text(5000);
    let (_folder, from, to, whole) = folder_with(&text);
    let mut steps = Vec::new();
    let done = in_place_of(&from, whole.len() as u64, &mut |step| {
        steps.push(step);
        let (plain, packed) = (fs::read(&to).ok(), fs::read(&from).ok());
        // The plain one goes before the packed one, so it may not be there in part.
        assert!(plain.as_ref().is_none_or(|it| *it == text), "{step:?}");
        assert!(packed.as_ref().is_none_or(|it| *it == whole), "{step:?}");
        assert!(plain.is_some() || packed.is_some(), "{step:?}");
        assert_eq!(packed.is_some(), step != Step::Removed, "{step:?}");
        Ok(())
    });
    assert!(done.unwrap());
    assert_eq!(steps, [Step::Written, Step::Compared, Step::Named, Step::Removed]);
}

#[test]
fn a_packed_file_that_became_another_one_meanwhile_stays_and_counts() {
    let other = packed(b"other\n");
    for step in [Step::Written, Step::Compared, Step::Named] {
        let (folder, from, to, whole) = folder_with(&text(5000));
        let change = |how: &str| match how {
            "appended" => fs::write(&from, [&whole[..], &other].concat()).unwrap(),
            "replaced" => {
                // Of the same size, and of the same time.
                let written = fs::metadata(&from).unwrap().modified().unwrap();
                fs::write(folder.path().join("new"), &whole).unwrap();
                fs::rename(folder.path().join("new"), &from).unwrap();
                fs::File::options().write(true).open(&from).unwrap().set_modified(written).unwrap();
            }
            _ => fs::remove_file(&from).unwrap(),
        };
        for how in ["replaced", "appended", "removed"] {
            fs::write(&from, &whole).unwrap();
            let done = in_place_of(&from, whole.len() as u64, &mut |now| {
                if now == step {
                    change(how);
                }
                Ok(())
            });
            if (how, step) == ("removed", Step::Named) {
                assert!(done.unwrap() && to.exists(), "the plain one is all there is");
                fs::remove_file(&to).unwrap();
                continue;
            }
            assert!(!matches!(done, Ok(true)), "{how} after {step:?}: {done:?}");
            assert!(!to.exists(), "{how} after {step:?}: what is older does not stand before it");
            assert_eq!(from.exists(), how != "removed", "{how} after {step:?}");
        }
    }
}

#[test]
fn what_was_written_is_read_again_before_the_packed_one_goes() {
    let (folder, from, to, whole) = folder_with(&text(5000));
    let done = in_place_of(&from, whole.len() as u64, &mut |step| {
        if step == Step::Written {
            let mut beside = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path());
            let anew = beside.find(|path| *path != from).unwrap();
            let mut bytes = fs::read(&anew).unwrap();
            bytes[1000] ^= 1;
            fs::write(&anew, bytes).unwrap();
        }
        Ok(())
    });
    assert_eq!(done.unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(fs::read(&from).unwrap(), whole);
    assert!(!to.exists() && fs::read_dir(folder.path()).unwrap().count() == 1);
}

#[test]
fn a_plain_file_that_is_there_is_not_touched_and_the_packed_one_stays() {
    let (_folder, from, to, whole) = folder_with(&text(10));
    fs::write(&to, "newer").unwrap();
    assert!(in_place_of(&from, whole.len() as u64, &mut |_| Ok(())).is_err());
    assert_eq!((fs::read_to_string(&to).unwrap().as_str(), fs::read(&from).unwrap()), ("newer", whole));
}
