//! However a checkpoint is taken, it is the same.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use session_checkpoint::FsCheckpoints;

use crate::support::{World, key, take, tree_of};

/// Something done to a tree. Names are drawn from few, so that things meet.
#[derive(Debug, Clone)]
enum Edit {
    Write(PathBuf, Vec<u8>),
    /// The same size and modification time as before.
    Sneak(PathBuf),
    Remove(PathBuf),
    Folder(PathBuf),
    Link(PathBuf, String),
    Rename(PathBuf, PathBuf),
    Mode(PathBuf, u32),
    Ignore(PathBuf, String),
}

fn path() -> impl Strategy<Value = PathBuf> {
    proptest::collection::vec(prop_oneof!["[abc]", Just("name\u{e9}".to_owned())], 1..4)
        .prop_map(|names| names.iter().collect())
}

fn edit() -> impl Strategy<Value = Edit> {
    let content = proptest::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        6 => (path(), content).prop_map(|(path, text)| Edit::Write(path, text)),
        2 => path().prop_map(Edit::Sneak),
        2 => path().prop_map(Edit::Remove),
        2 => path().prop_map(Edit::Folder),
        1 => (path(), "[abc]{0,2}x").prop_map(|(path, target)| Edit::Link(path, target)),
        2 => (path(), path()).prop_map(|(from, to)| Edit::Rename(from, to)),
        2 => (path(), prop_oneof![Just(0o700), Just(0o755), Just(0o711)])
            .prop_map(|(path, mode)| Edit::Mode(path, mode)),
        1 => (path(), "(!|/)?[abc]/?").prop_map(|(path, rule)| Edit::Ignore(path, rule)),
    ]
}

impl Edit {
    /// Does it, where it can be done, and says which paths may have changed.
    fn act(&self, root: &Path) -> Vec<PathBuf> {
        let make_way = |path: &Path| drop(fs::create_dir_all(root.join(path).parent().unwrap()));
        match self {
            Self::Write(path, text) => {
                make_way(path);
                // Through a link, another path would change than is told.
                if root.join(path).is_symlink() {
                    fs::remove_file(root.join(path)).unwrap();
                }
                drop(fs::write(root.join(path), text));
                // Folders on the way may be new.
                path.ancestors().filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned).collect()
            }
            Self::Sneak(path) => {
                let file = root.join(path);
                if let Ok(meta) = file.symlink_metadata()
                    && meta.is_file()
                {
                    let text = fs::read(&file).unwrap().iter().map(|byte| byte ^ 1).collect::<Vec<_>>();
                    fs::write(&file, text).unwrap();
                    fs::File::open(&file).unwrap().set_modified(meta.modified().unwrap()).unwrap();
                }
                vec![path.clone()]
            }
            Self::Remove(path) => {
                drop(fs::remove_file(root.join(path)));
                drop(fs::remove_dir_all(root.join(path)));
                vec![path.clone()]
            }
            Self::Folder(path) => {
                drop(fs::create_dir_all(root.join(path)));
                path.ancestors().filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned).collect()
            }
            Self::Link(path, target) => {
                make_way(path);
                drop(symlink(target, root.join(path)));
                path.ancestors().filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned).collect()
            }
            Self::Rename(from, to) => {
                drop(fs::rename(root.join(from), root.join(to)));
                vec![from.clone(), to.clone()]
            }
            Self::Mode(path, mode) => {
                if root.join(path).symlink_metadata().is_ok_and(|meta| !meta.is_symlink()) {
                    fs::set_permissions(root.join(path), fs::Permissions::from_mode(*mode)).unwrap();
                }
                vec![path.clone()]
            }
            Self::Ignore(path, rule) => {
                if root.join(path).is_dir() {
                    fs::write(root.join(path).join(".gitignore"), rule).unwrap();
                }
                vec![path.join(".gitignore")]
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn one_that_reads_little_is_as_one_that_reads_all(
        rounds in proptest::collection::vec(proptest::collection::vec(edit(), 0..8), 1..6)
    ) {
        let world = World::with_repository();
        let bases = ["seen", "known", "young"].map(|name| world.base.join(name));
        let [seen, known, young] = bases.clone().map(FsCheckpoints::new);
        let mut first = true;
        for (n, round) in rounds.iter().enumerate() {
            let changed: Vec<_> = round.iter().flat_map(|edit| edit.act(&world.tree)).collect();
            let scratch = world.base.join(format!("scratch{n}"));
            let whole = take(&FsCheckpoints::new(&scratch), &key("a"), &world.tree, None).unwrap();
            let truth = tree_of(&scratch);
            let incremental = take(&seen, &key("a"), &world.tree, None).unwrap();
            prop_assert_eq!(&tree_of(&bases[0]), &truth);
            prop_assert_eq!((incremental.files, incremental.bytes), (whole.files, whole.bytes));
            let told = take(&known, &key("a"), &world.tree, (!first).then_some(changed.as_slice())).unwrap();
            prop_assert_eq!(&tree_of(&bases[1]), &truth);
            prop_assert_eq!((told.files, told.bytes), (whole.files, whole.bytes));
            // A process that knows nothing of what the one before it had in memory.
            let other = FsCheckpoints::new(&bases[2]);
            let changed = (n % 2 == 1).then_some(&changed);
            take(if n % 3 == 0 { &young } else { &other }, &key("a"), &world.tree, changed.map(Vec::as_slice)).unwrap();
            prop_assert_eq!(&tree_of(&bases[2]), &truth);
            first = false;
        }
    }
}
