use session_core::history::SessionSource;
use session_core::{Places, RecordFacts, Said, SessionQuery};

use super::*;

/// Sessions of a folder lie in `/places/<its path, with dots>`.
#[derive(Debug)]
struct Dotted;

fn name(folder: &Path) -> String {
    folder.to_str().unwrap().replace(['/', '.'], ".")
}

impl TranscriptFormat for Dotted {
    fn places(&self, _: &SessionQuery<'_>) -> Places {
        Places::default()
    }
    fn is_file_of(&self, _: &str, _: &SessionQuery<'_>) -> bool {
        false
    }
    fn filed_in(&self, cwd: &Path, _: Option<&Path>) -> Vec<PathBuf> {
        vec![Path::new("/places").join(name(cwd))]
    }
    fn may_lie_in(&self, folder: &Path, place: &Path) -> bool {
        place.file_name().unwrap().to_str().unwrap().starts_with(&name(folder))
    }
    fn record(&self, _: &[u8]) -> Option<RecordFacts> {
        None
    }
    fn said(&self, _: &[u8]) -> Option<Said> {
        None
    }
    fn numbered(&self, _: &[u8], _: u64) -> Option<Vec<u8>> {
        None
    }
    fn unarchived(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}

fn found(folder: &Path) -> Option<PathBuf> {
    let path = Path::new("/places").join(name(folder)).join("s.log");
    folder_of(&Dotted, &SessionSource { path, state_dir: None })
}

#[test]
fn a_folder_is_found_by_the_name_of_its_place_where_no_other_has_that() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let folder = root.join("a.b/c");
    std::fs::create_dir_all(&folder).unwrap();
    // Neither of these has its name.
    for other in ["a.b/cd", "a.b2", "a"] {
        std::fs::create_dir_all(root.join(other)).unwrap();
    }
    assert_eq!(found(&folder), Some(folder.clone()));
    assert_eq!(found(&root.join("gone")), None);
    std::fs::create_dir_all(root.join("a/b/c")).unwrap();
    assert_eq!(found(&folder), None, "nobody can tell which");
}

#[cfg(unix)]
#[test]
fn a_link_is_no_way_to_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
    std::os::unix::fs::symlink(&root, root.join("real/loop")).unwrap();
    assert_eq!(found(&root.join("link")), None);
    assert_eq!(found(&root.join("real")), Some(root.join("real")));
}
