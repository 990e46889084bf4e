//! The power goes after any call of a restore: the disk holds what was synced, and any part of the rest. Then it is finished.

use super::crashes::{Stage, on_purpose, scenes};
use super::faulty::{Fault, Faulty};
use super::model::Model;
use super::platter::{Lie, Platter, State};
use super::world::Note;

/// Sides by chance, the same ones each time.
struct Coin(u64);

impl Coin {
    fn toss(&mut self) -> bool {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.count_ones().is_multiple_of(2)
    }
}

/// What may be there after the power went: nothing of what is pending, all of it, one alone, all but one, the first ones, those of
/// one kind, and some by chance.
fn survivors(state: &State, coin: &mut Coin) -> Vec<Model> {
    let count = state.pending();
    let mut found = vec![state.after(|_| false), state.after(|_| true)];
    for one in 0..count {
        found.extend([state.after(|at| at == one), state.after(|at| at != one), state.after(|at| at < one)]);
    }
    found.extend([state.after(|at| state.is_entry(at)), state.after(|at| !state.is_entry(at))]);
    found.extend((0..5).map(|_| by_chance(state, coin)));
    let mut different: Vec<Model> = Vec::new();
    for model in found {
        if !different.contains(&model) {
            different.push(model);
        }
    }
    different
}

fn by_chance(state: &State, coin: &mut Coin) -> Model {
    let kept: Vec<bool> = (0..state.pending()).map(|_| coin.toss()).collect();
    state.after(|at| kept[at])
}

impl Stage {
    /// The restore until it ends after so many calls; `None`: to its end. What the disk holds then, and the note that it was begun.
    fn cut_off(&self, after: Option<usize>, lie: Lie) -> (State, Option<Note>) {
        self.world.build(&self.scene.meanwhile);
        let hands = Faulty::new(after.map_or(Fault::Never, Fault::Ends));
        let platter = Platter::new(&hands, &self.world.root, &self.scene.meanwhile).lying(lie);
        let restored = hands.run(|_| self.restore_by(&platter));
        assert_eq!(restored.is_none(), after.is_some());
        (platter.into_state(), self.world.notes().pop())
    }

    /// The power went, and this is on the disk.
    fn goes_on_from(&self, left: &Model, note: &Note) {
        self.world.build(left);
        self.world.set_notes(std::slice::from_ref(note));
    }

    /// Whoever comes next finishes it.
    fn check_finished(&self, how: &str) {
        let recovered = self.world.recover_by(&Faulty::new(Fault::Never)).unwrap();
        self.check_end(how);
        let told: Vec<_> = recovered.iter().map(|recovered| on_purpose(&recovered.restored)).collect();
        assert_eq!(told, std::slice::from_ref(&self.left), "{how}");
    }
}

#[test]
fn whenever_the_power_goes_the_restore_is_finished() {
    let mut coin = Coin(7);
    for stage in scenes().into_iter().map(Stage::of) {
        for at in stage.begins..stage.calls {
            let (state, note) = stage.cut_off(Some(at), Lie::None);
            let note = note.expect("it was begun");
            for left in survivors(&state, &mut coin) {
                stage.goes_on_from(&left, &note);
                stage.check_finished(&format!("after {at}: {left:?}"));
            }
        }
    }
}

#[test]
fn whenever_the_power_goes_once_more_the_next_one_finishes() {
    let mut coin = Coin(13);
    for stage in scenes().into_iter().map(Stage::of) {
        for at in stage.begins..stage.calls {
            let (state, note) = stage.cut_off(Some(at), Lie::None);
            let note = note.expect("it was begun");
            // Every call of the first, and of the second one out of eleven.
            let mut again = at % 11;
            loop {
                let first = by_chance(&state, &mut coin);
                stage.goes_on_from(&first, &note);
                let hands = Faulty::new(Fault::Ends(again));
                let platter = Platter::new(&hands, &stage.world.root, &first);
                if hands.run(|_| stage.world.recover_by(&platter)).is_some() {
                    break;
                }
                let second = by_chance(&platter.into_state(), &mut coin);
                stage.goes_on_from(&second, &note);
                stage.check_finished(&format!("after {at} and {again}: {first:?}, {second:?}"));
                again += 11;
            }
        }
    }
}

/// What a restore told to be done is on the disk. Only the note that it began may be there still.
#[test]
fn what_was_done_stays_when_the_power_goes() {
    for stage in scenes().into_iter().map(Stage::of) {
        let (_, note) = stage.cut_off(Some(stage.calls - 1), Lie::None);
        let (state, none) = stage.cut_off(None, Lie::None);
        assert!(none.is_none());
        for left in survivors(&state, &mut Coin(11)) {
            assert_eq!(left, stage.end);
            stage.goes_on_from(&left, note.as_ref().unwrap());
            stage.check_finished("with its note");
        }
    }
}

#[test]
fn a_disk_that_lies_is_found_out() {
    for lie in [Lie::Files, Lie::Folders] {
        for stage in scenes().into_iter().map(Stage::of) {
            let (state, _) = stage.cut_off(None, lie);
            let lost = survivors(&state, &mut Coin(17)).into_iter().any(|left| left != stage.end);
            assert!(lost, "{lie:?}");
        }
    }
}
