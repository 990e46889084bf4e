//! Every system call of a restore is the last of its process once, and fails once.

use std::path::PathBuf;

use rustix::io::Errno;
use session_core::{CheckpointId, LeftWhy, Restored};

use super::faulty::{Fault, Faulty};
use super::model::{Model, Thing, differing, file, link, model};
use super::world::World;
use crate::restore::hands::Hands;

/// Two trees, and what is not as in the first of them when it is put back to the second.
pub(super) struct Scene {
    from: Model,
    to: Model,
    pub(super) meanwhile: Model,
}

pub(super) fn scenes() -> Vec<Scene> {
    let folder = Thing::Folder;
    let scene = |from: &[(&str, Thing)], to: &[(&str, Thing)], meanwhile: &[(&str, Thing)]| {
        let (from, to) = (model(from), model(to));
        let mut now = from.clone();
        now.extend(meanwhile.iter().map(|(path, thing)| (PathBuf::from(path), thing.clone())));
        Scene { from, to, meanwhile: now }
    };
    vec![
        scene(
            &[("a", file(0o600, "now")), ("b", file(0o644, "b")), ("c", link("a")), ("m", file(0o644, "m"))],
            &[("a", file(0o644, "then")), ("c", link("b")), ("m", file(0o755, "m")), ("n", file(0o600, ""))],
            &[("mine", file(0o644, "mine"))],
        ),
        // A folder becomes a file and the other way round.
        scene(
            &[("x", folder(0o755)), ("x/a", file(0o644, "a")), ("x/b", link("a")), ("y", file(0o600, "y"))],
            &[
                ("x", file(0o640, "x")),
                ("y", folder(0o700)),
                ("y/d", folder(0o555)),
                ("y/d/a", file(0o444, "a")),
            ],
            &[],
        ),
        // Folders that cannot be worked in as they are, and one that is narrowed.
        scene(
            &[
                ("r", folder(0o555)),
                ("r/a", file(0o444, "now")),
                ("r/s", folder(0o500)),
                ("r/s/t", file(0o644, "t")),
                ("w", folder(0o777)),
                ("w/a", file(0o644, "now")),
            ],
            &[
                ("r", folder(0o555)),
                ("r/a", file(0o444, "then")),
                ("r/l", link("a")),
                ("w", folder(0o500)),
                ("w/a", file(0o644, "then")),
                ("w/e", folder(0o111)),
            ],
            &[],
        ),
        // Something is new in a folder that is to go, and something was changed.
        scene(
            &[("d", folder(0o555)), ("d/a", file(0o644, "a")), ("e", file(0o644, "e")), ("f", link("e"))],
            // Whoever makes folders mostly hides some of all permissions.
            &[("f", folder(0o750)), ("f/a", file(0o644, "a")), ("g", folder(0o777))],
            &[("d/mine", file(0o600, "mine")), ("e", file(0o644, "changed"))],
        ),
    ]
}

/// What was left on purpose, not for an error of the system.
pub(super) fn on_purpose(restored: &Restored) -> Vec<(PathBuf, LeftWhy)> {
    restored.left.iter().map(|left| (left.path.clone(), left.why.clone())).collect()
}

pub(super) struct Stage {
    pub(super) world: World,
    pub(super) scene: Scene,
    ids: (CheckpointId, CheckpointId),
    paths: Vec<PathBuf>,
    /// What is there in the end, and what is told then.
    pub(super) end: Model,
    pub(super) left: Vec<(PathBuf, LeftWhy)>,
    pub(super) calls: usize,
    /// The first of them that comes after it was written down; those before only look.
    pub(super) begins: usize,
}

impl Stage {
    pub(super) fn of(scene: Scene) -> Self {
        let world = World::new();
        let ids = (world.keep(&scene.from), world.keep(&scene.to));
        let paths = differing(&scene.from, &scene.to);
        world.build(&scene.meanwhile);
        let hands = Faulty::new(Fault::Never);
        let restored = world.restore_by(&hands, ids.0, ids.1, &paths).unwrap();
        let (end, left) = (world.read(), on_purpose(&restored));
        let mut stage = Self { world, scene, ids, paths, end, left, calls: hands.count(), begins: 0 };
        stage.check_untouched();
        let told = |path: &PathBuf| stage.left.iter().any(|(left, _)| left == path);
        for path in &stage.paths {
            let is_there = stage.end.get(path) == stage.scene.to.get(path);
            assert_eq!(is_there, !told(path), "{}", path.display());
        }
        while stage.world.rows() == 0 {
            stage.begins += 1;
            stage.world.build(&stage.scene.meanwhile);
            assert!(stage.restore(&Faulty::new(Fault::Ends(stage.begins))).is_none());
        }
        stage.world.recover_by(&Faulty::new(Fault::Never)).unwrap();
        stage
    }

    /// The restore, cut off or failing.
    fn restore(&self, hands: &Faulty) -> Option<crate::trouble::Outcome<Restored>> {
        hands.run(|hands| self.restore_by(hands))
    }

    pub(super) fn restore_by(&self, hands: &dyn Hands) -> crate::trouble::Outcome<Restored> {
        self.world.restore_by(hands, self.ids.0, self.ids.1, &self.paths)
    }

    /// Whatever is no path of the restore is as it was, and nothing else is there.
    fn check_untouched(&self) {
        let now = self.world.read();
        for path in differing(&self.scene.meanwhile, &now) {
            assert!(self.paths.contains(&path), "{} was touched", path.display());
        }
    }

    pub(super) fn check_end(&self, how: &str) {
        assert_eq!(self.world.read(), self.end, "{how}");
        assert_eq!(self.world.rows(), 0, "{how}");
    }
}

#[test]
fn whatever_call_is_the_last_the_restore_is_finished() {
    for stage in scenes().into_iter().map(Stage::of) {
        for at in 0..stage.calls {
            stage.world.build(&stage.scene.meanwhile);
            let ended = stage.restore(&Faulty::new(Fault::Ends(at)));
            assert!(ended.is_none(), "the process ends at {at}");
            let recovered = stage.world.recover_by(&Faulty::new(Fault::Never)).unwrap();
            assert_eq!(recovered.len(), usize::from(at >= stage.begins));
            if at < stage.begins {
                assert_eq!(stage.world.read(), stage.scene.meanwhile);
                continue;
            }
            stage.check_end(&format!("after {at}"));
            for recovered in recovered {
                assert_eq!(on_purpose(&recovered.restored), stage.left, "after {at}");
            }
        }
    }
}

#[test]
fn whatever_call_of_the_recovery_is_the_last_the_next_one_finishes() {
    for stage in scenes().into_iter().map(Stage::of) {
        // Every call of the first and of the second, but not every pair: the steps share no factor.
        for at in stage.begins..stage.calls {
            let mut again = at % 7;
            loop {
                stage.world.build(&stage.scene.meanwhile);
                assert!(stage.restore(&Faulty::new(Fault::Ends(at))).is_none());
                let hands = Faulty::new(Fault::Ends(again));
                let was_cut_off = hands.run(|hands| stage.world.recover_by(hands)).is_none();
                let third = Faulty::new(Fault::Ends(again / 2 + at % 3));
                drop(third.run(|hands| stage.world.recover_by(hands)));
                stage.world.recover_by(&Faulty::new(Fault::Never)).unwrap();
                stage.check_end(&format!("after {at} and {again}"));
                if !was_cut_off {
                    break;
                }
                again += 7;
            }
        }
    }
}

#[test]
fn whatever_call_fails_it_is_told_and_nothing_is_half_done() {
    let faults = |at| {
        let errors = [Errno::IO, Errno::ACCESS, Errno::NOSPC];
        errors.map(|errno| Fault::Fails(at, errno)).into_iter().chain([Fault::Fills(at)])
    };
    for stage in scenes().into_iter().map(Stage::of) {
        for fault in (0..stage.calls).flat_map(faults) {
            stage.world.build(&stage.scene.meanwhile);
            match stage.restore(&Faulty::new(fault)).unwrap() {
                Ok(restored) => {
                    check_told(&stage, &restored, fault);
                    assert_eq!(stage.world.rows(), 0, "{fault:?}");
                }
                Err(error) if matches!(fault, Fault::Fails(0, _)) => {
                    assert!(!matches!(error, crate::trouble::Trouble::CutOff(_)), "{error:?}");
                    assert_eq!(stage.world.read(), stage.scene.meanwhile);
                }
                Err(error) => {
                    assert!(matches!(error, crate::trouble::Trouble::CutOff(_)), "{fault:?}: {error:?}");
                    stage.world.recover_by(&Faulty::new(Fault::Never)).unwrap();
                    assert_eq!(stage.world.rows(), 0, "{fault:?}");
                }
            }
            stage.check_untouched();
        }
    }
}

#[test]
fn whatever_call_of_the_recovery_fails_the_next_one_finishes() {
    for stage in scenes().into_iter().map(Stage::of) {
        for at in (stage.begins..stage.calls).step_by(5) {
            let mut failing = at % 3;
            loop {
                stage.world.build(&stage.scene.meanwhile);
                assert!(stage.restore(&Faulty::new(Fault::Ends(at))).is_none());
                let hands = Faulty::new(Fault::Fails(failing, Errno::IO));
                let recovered = stage.world.recover_by(&hands);
                match recovered {
                    Ok(recovered) => {
                        check_told(&stage, &recovered[0].restored, Fault::Fails(failing, Errno::IO));
                    }
                    Err(_) => drop(stage.world.recover_by(&Faulty::new(Fault::Never)).unwrap()),
                }
                stage.check_untouched();
                assert_eq!(stage.world.rows(), 0);
                if hands.count() <= failing {
                    break;
                }
                failing += 3;
            }
        }
    }
}

/// It was not begun: its caller may say that nothing was touched.
#[test]
fn where_what_another_one_left_cannot_be_finished_the_next_is_not_cut_off() {
    for stage in scenes().into_iter().map(Stage::of) {
        stage.world.build(&stage.scene.meanwhile);
        assert!(stage.restore(&Faulty::new(Fault::Ends(stage.begins))).is_none());
        let next = stage.restore(&Faulty::new(Fault::Fails(0, Errno::IO))).unwrap();
        assert!(matches!(next, Err(crate::trouble::Trouble::Io { .. })), "{next:?}");
        assert_eq!(stage.world.rows(), 1);
    }
}

/// Every path is in one of the two states, and told if it is not in the one that was asked for.
fn check_told(stage: &Stage, restored: &Restored, fault: Fault) {
    let now = stage.world.read();
    for path in &stage.paths {
        let thing = now.get(path);
        let told = restored.left.iter().find(|left| left.path == *path);
        assert!(told.is_some() != restored.done.contains(path), "{fault:?}: {}", path.display());
        if told.is_none() {
            assert_eq!(thing, stage.scene.to.get(path), "{fault:?}: {}", path.display());
            continue;
        }
        let known = [&stage.scene.from, &stage.scene.to, &stage.scene.meanwhile].map(|model| model.get(path));
        // Between a file and a folder there may be nothing.
        let is_kind_changed = kind(known[0]) != kind(known[1]);
        assert!(
            known.contains(&thing) || (thing.is_none() && is_kind_changed),
            "{fault:?}: {} is {thing:?}",
            path.display()
        );
    }
}

fn kind(thing: Option<&Thing>) -> u8 {
    match thing {
        None => 0,
        Some(Thing::File(..)) => 1,
        Some(Thing::Link(_)) => 2,
        Some(Thing::Folder(_)) => 3,
        Some(Thing::Special) => 4,
    }
}
