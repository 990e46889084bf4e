//! Random trees, random changes, random ends.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use session_core::Restored;

use super::faulty::{Fault, Faulty};
use super::model::{Model, Thing, differing, model};
use super::platter::Platter;
use super::world::World;

/// Something that happens to a tree.
#[derive(Debug, Clone)]
enum Edit {
    Put(PathBuf, Thing),
    Remove(PathBuf),
    Move(PathBuf, PathBuf),
    Mode(PathBuf, u16),
}

fn path() -> impl Strategy<Value = PathBuf> {
    let name = prop_oneof![Just(b"a".to_vec()), Just(b"b".to_vec()), Just(b"a.b".to_vec()), Just(vec![0xff])];
    let name = name.prop_map(OsString::from_vec);
    prop::collection::vec(name, 1..4).prop_map(|names| names.into_iter().collect())
}

fn mode() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0o644), Just(0o755), Just(0o600), Just(0o500), Just(0o000), 0..0o1000_u16]
}

fn thing() -> impl Strategy<Value = Thing> {
    let content =
        prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u8>(), 1..40), Just(b"same".to_vec())];
    prop_oneof![
        4 => (mode(), content).prop_map(|(mode, content)| Thing::File(mode, content)),
        1 => path().prop_map(Thing::Link),
        2 => mode().prop_map(Thing::Folder),
    ]
}

fn edits(count: usize) -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        5 => (path(), thing()).prop_map(|(path, thing)| Edit::Put(path, thing)),
        2 => path().prop_map(Edit::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Edit::Move(from, to)),
        1 => (path(), mode()).prop_map(|(path, mode)| Edit::Mode(path, mode)),
        1 => mode().prop_map(|mode| Edit::Mode(PathBuf::new(), mode)),
    ];
    prop::collection::vec(edit, 0..count)
}

fn remove(model: &mut Model, path: &Path) {
    model.retain(|present, _| !present.starts_with(path));
}

fn put(model: &mut Model, path: &Path, thing: Thing) {
    if !matches!((model.get(path), &thing), (Some(Thing::Folder(_)), Thing::Folder(_))) {
        remove(model, path);
    }
    for folder in path.ancestors().skip(1) {
        if !matches!(model.get(folder), Some(Thing::Folder(_))) {
            model.insert(folder.to_owned(), Thing::Folder(0o755));
        }
    }
    model.insert(path.to_owned(), thing);
}

fn edited(model: &Model, edits: &[Edit]) -> Model {
    let mut model = model.clone();
    for edit in edits {
        match edit {
            Edit::Put(path, thing) => put(&mut model, path, thing.clone()),
            Edit::Remove(path) => remove(&mut model, path),
            Edit::Move(from, to) if !to.starts_with(from) && !from.starts_with(to) => {
                let moved: Model = model
                    .iter()
                    .filter(|(path, _)| path.starts_with(from))
                    .map(|(path, thing)| (path.clone(), thing.clone()))
                    .collect();
                remove(&mut model, from);
                for (path, thing) in moved {
                    let below = path.strip_prefix(from).unwrap();
                    put(&mut model, &if below == Path::new("") { to.clone() } else { to.join(below) }, thing);
                }
            }
            Edit::Move(..) => {}
            Edit::Mode(path, mode) => {
                if let Some(Thing::File(present, _) | Thing::Folder(present)) = model.get_mut(path) {
                    *present = *mode;
                }
            }
        }
    }
    model
}

/// What has to hold whatever was changed meanwhile, also after an end in the midst of it.
fn check(from: &Model, to: &Model, meanwhile: &Model, now: &Model, restored: &Restored, ended: bool) {
    let paths = differing(from, to);
    for path in differing(meanwhile, now) {
        assert!(paths.contains(&path), "{} was touched", path.display());
    }
    let is_foreign = |path: &Path| {
        let (state, before, after) = (meanwhile.get(path), from.get(path), to.get(path));
        // Where a file and a folder take turns there is nothing for a moment, and nobody can tell whose doing that is.
        let is_folder = |thing: Option<&Thing>| matches!(thing, Some(Thing::Folder(_)));
        let may_be_ours = ended && state.is_none() && is_folder(before) != is_folder(after);
        state != before && state != after && !may_be_ours
    };
    let foreign: Vec<&PathBuf> =
        from.keys().chain(to.keys()).chain(meanwhile.keys()).filter(|path| is_foreign(path)).collect();
    for path in &paths {
        let told = restored.left.iter().any(|left| left.path == *path);
        assert!(told != restored.done.contains(path), "{} is told once", path.display());
        assert!(told || now.get(path) == to.get(path), "{} is not as told", path.display());
        if is_foreign(path) {
            assert!(told && now.get(path) == meanwhile.get(path), "{} is another's", path.display());
        }
        let is_near = |other: &&PathBuf| other.starts_with(path) || path.starts_with(other);
        assert!(!told || foreign.iter().any(is_near), "{} is left without need", path.display());
    }
    let left = restored.left.iter().filter(|left| !paths.contains(&left.path)).count();
    assert_eq!(left, 0, "{restored:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_is_put_back_to_any_other(first in edits(20), second in edits(12), third in edits(6), end in 0..400_usize, kept in any::<u64>()) {
        let from = edited(&model(&[]), &first);
        let to = edited(&from, &second);
        let meanwhile = edited(&from, &third);
        let world = World::new();
        let (a, b) = (world.keep(&from), world.keep(&to));
        let paths = differing(&from, &to);
        let changes = world.diff(a, b).unwrap();
        prop_assert_eq!(changes.iter().map(|change| change.path.clone()).collect::<Vec<_>>(), paths.clone());

        // Nobody else was there.
        world.build(&from);
        let restored = world.restore(a, b, &paths);
        prop_assert_eq!(&restored.left, &vec![]);
        prop_assert_eq!(&world.read(), &to);
        // And back.
        let restored = world.restore(b, a, &paths);
        prop_assert_eq!(&restored.left, &vec![]);
        prop_assert_eq!(&world.read(), &from);

        // Somebody else was there.
        world.build(&meanwhile);
        let hands = Faulty::new(Fault::Never);
        let restored = world.restore_by(&hands, a, b, &paths).unwrap();
        let now = world.read();
        check(&from, &to, &meanwhile, &now, &restored, false);

        // And the process ended in the midst of it.
        world.build(&meanwhile);
        let at = 1 + end % hands.count();
        if at < hands.count() {
            let hands = Faulty::new(Fault::Ends(at));
            prop_assert!(hands.run(|hands| world.restore_by(hands, a, b, &paths)).is_none());
            let recovered = world.recover_by(&Faulty::new(Fault::Never)).unwrap();
            match recovered.first() {
                // It had only looked.
                None => prop_assert_eq!(world.read(), meanwhile.clone()),
                Some(recovered) => check(&from, &to, &meanwhile, &world.read(), &recovered.restored, true),
            }
            prop_assert_eq!(world.rows(), 0);

            // And the power with it.
            world.build(&meanwhile);
            let hands = Faulty::new(Fault::Ends(at));
            let platter = Platter::new(&hands, &world.root, &meanwhile);
            prop_assert!(hands.run(|_| world.restore_by(&platter, a, b, &paths)).is_none());
            let left = platter.into_state().after(|change| kept.rotate_right((change % 64) as u32) & 1 == 1);
            world.build(&left);
            match world.recover_by(&Faulty::new(Fault::Never)).unwrap().first() {
                None => prop_assert_eq!(left, meanwhile),
                Some(recovered) => check(&from, &to, &meanwhile, &world.read(), &recovered.restored, true),
            }
            prop_assert_eq!(world.rows(), 0);
        }
    }
}
