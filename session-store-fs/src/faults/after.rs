//! After a crash: what is found, and how it goes on.

use std::path::{Path, PathBuf};

use session_core::{Document, Guard, Removed};

use super::act::{Act, Answer, What, key, open};
use super::disk::{Lying, Simulated};
use super::history::KEYS;
use super::model::{Checked, Model, ensure};
use super::platter::{BASE, State};
use super::world::{event, told};
use crate::FsStore;
use crate::disk::{Access, Disk as _};
use crate::files;
use crate::layout::Layout;

/// How it ended.
#[derive(Debug)]
pub(super) enum Left<'a> {
    /// The process was killed: the cache stays.
    Killed(&'a State),
    /// The power went, and these changes had reached the platter.
    Crashed(&'a State, &'a [bool]),
}

/// Opens the store on what is left, looks, goes on working, and looks again after a crash that keeps nothing but what
/// was promised.
pub(super) fn check(left: &Left<'_>, lying: Lying, model: &Model, cut_off: Option<&Act>) -> Checked {
    let state = match left {
        Left::Killed(state) => state.killed(),
        Left::Crashed(state, keep) => state.crashed(|change| keep[change]),
    };
    let disk = Simulated::new(state, lying);
    let mut model = model.clone();
    model.everybody_died();
    let store = open(&disk).map_err(|error| told(&error))?;
    look(&disk, &store, &mut model, cut_off)?;
    if let Left::Crashed(..) = left {
        model.crashed();
    }
    go_on(&disk, &store, &mut model, cut_off).map_err(|error| format!("going on, {error}"))?;
    settle(&disk, lying, &model, None).map_err(|error| format!("after going on and another crash, {error}"))
}

/// Looks at what a crash leaves that keeps nothing but what is durable.
pub(super) fn settle(disk: &Simulated, lying: Lying, model: &Model, cut_off: Option<&Act>) -> Checked {
    let disk = Simulated::new(disk.state().crashed(|_| false), lying);
    let mut model = model.clone();
    model.everybody_died();
    let store = open(&disk).map_err(|error| told(&error))?;
    look(&disk, &store, &mut model, cut_off)
}

/// Compares all that the store shows with the model, which takes over what an operation that was cut off has done.
pub(super) fn look(disk: &Simulated, store: &FsStore, model: &mut Model, cut_off: Option<&Act>) -> Checked {
    for index in 0..KEYS {
        let ask = |what| {
            let act = Act { key: index, what };
            act.perform(disk, Some(store)).map_err(|error| told(&error))
        };
        let (Answer::Loaded(record), Answer::Entries(entries)) = (ask(What::Load)?, ask(What::Audit)?) else {
            return Err("another answer".to_owned());
        };
        model.found(index, record, &entries, cut_off).map_err(|error| format!("{}: {error}", key(index)))?;
        let slot = &model.keys[index];
        for (place, document) in &slot.aside {
            ensure!(is_aside(disk, place, document), "{document:?} is not at {}", place.display());
        }
        let dir = slot.dir.as_ref().filter(|dir| !disk.is_folder(dir));
        ensure!(dir.is_none(), "the state dir {dir:?} is gone");
    }
    done(disk, store, model, &Act { key: 0, what: What::List }).map(drop)
}

/// Whether a document lies in this place, or, where that is not known, anywhere in the quarantine.
fn is_aside(disk: &Simulated, place: &Path, document: &Document) -> bool {
    let holds = |path: &Path| {
        let bytes = disk.open(path, Access::Read).and_then(|file| files::read(&*file, 0, 1 << 16));
        bytes.is_ok_and(|bytes| bytes.ends_with(document.as_bytes()))
    };
    if place != Path::new("") {
        return holds(place);
    }
    let folder = Layout::new(Path::new(BASE)).quarantine();
    disk.entries(&folder)
        .is_ok_and(|mut entries| entries.any(|entry| holds(&folder.join(entry.unwrap().name))))
}

/// Temporary files, which nobody is writing any more.
pub(super) fn leftovers(disk: &Simulated) -> Vec<PathBuf> {
    let layout = Layout::new(Path::new(BASE));
    let mut found = Vec::new();
    for folder in [layout.root(), &layout.records()] {
        let entries = disk.entries(folder).into_iter().flatten();
        let names = entries.map(|entry| folder.join(entry.unwrap().name));
        found.extend(names.filter(|path| path.file_name().unwrap().as_encoded_bytes().starts_with(b".tmp-")));
    }
    found
}

fn done(disk: &Simulated, store: &FsStore, model: &mut Model, act: &Act) -> Checked<Answer> {
    let answer = act.perform(disk, Some(store)).map_err(|error| told(&error))?;
    model.answered(act, &answer)?;
    Ok(answer)
}

fn go_on(disk: &Simulated, store: &FsStore, model: &mut Model, cut_off: Option<&Act>) -> Checked {
    let key = cut_off.map_or(0, |act| act.key);
    let next = |model: &mut Model, what| done(disk, store, model, &Act { key, what });
    drop(next(model, What::Lease)?);
    model.released(key);
    let taken_away = cut_off.is_some_and(|act| matches!(act.what, What::Remove(_) | What::SetAside(_)));
    if taken_away && model.keys[key].current.is_none() {
        // Whoever asks again is told that it is gone; then it is.
        let answer = next(model, What::Remove(Guard::Any))?;
        ensure!(matches!(answer, Answer::Removed(Removed::NothingThere)), "{answer:?}");
        return Ok(());
    }
    let document = Document::new(b"after all".to_vec());
    let revision = model.keys[key].revision().cloned();
    let old = model.keys[key].revisions.iter().rev().filter(|old| Some(*old) != revision.as_ref());
    for old in old.take(2).cloned().collect::<Vec<_>>() {
        next(model, What::Save(document.clone(), Guard::Revision(old), None))?;
    }
    next(model, What::Save(document, revision.map_or(Guard::Absent, Guard::Revision), None))?;
    next(model, What::Load)?;
    let left = leftovers(disk);
    ensure!(left.is_empty(), "{left:?} are left");
    next(model, What::Append(event(u32::MAX, 10)))?;
    next(model, What::Audit)?;
    next(model, What::StateDir)?;
    if cut_off.is_some_and(|act| matches!(act.what, What::Open)) {
        next(model, What::SetAside(Guard::Any))?;
    }
    Ok(())
}
