//! A store on a disk that is full to the last byte.

use std::fs;
use std::io::Write as _;

use session_checkpoint::CheckpointLimits;
use session_core::error::CheckpointErrorKind;
use session_core::{Checkpointer as _, Forget, Health};

use crate::child::{Site, block, key};

/// So many that no transaction which drops them all finds room in what is set aside, nor some of those that drop ever more.
const FILES: u32 = 8000;

pub(crate) fn act(mut site: Site, step: &str) {
    let mut limits = CheckpointLimits::default();
    limits.free_bytes = 0;
    site.checkpoints = site.checkpoints.limits(limits);
    match step {
        "take" => take_two(&site),
        "fill" => fill(&site),
        "refused" => refused(&site),
        _ => drop_some(&site),
    }
}

/// Content of which no two files have the same, short and longer ones in turns.
fn text(of: u32, round: u32) -> String {
    format!("{round} {of}\n").repeat(if of.is_multiple_of(2) { 20 } else { 300 })
}

/// Whether the second mailbox has another content of a file than the first one.
fn is_changed(of: &u32) -> bool {
    of % 4 < 2
}

/// Two mailboxes that share some.
fn take_two(site: &Site) {
    for (round, mailbox) in [(0, "a"), (1, "b")] {
        for of in (0..FILES).filter(|of| round == 0 || is_changed(of)) {
            fs::create_dir_all(site.tree.join(format!("d{}", of % 50))).unwrap();
            fs::write(site.tree.join(format!("d{}/{of}", of % 50)), text(of, round)).unwrap();
        }
        site.take(mailbox, "").unwrap();
    }
}

fn fill(site: &Site) {
    let mut filler = fs::File::create(site.base.join("filler")).unwrap();
    for size in [1 << 16, 1 << 12] {
        while filler.write_all(&vec![0; size]).is_ok() {}
    }
}

fn free(site: &Site) -> u64 {
    let space = rustix::fs::statvfs(&site.base).unwrap();
    space.f_bavail * space.f_frsize
}

/// What cannot be done says what it is.
fn refused(site: &Site) {
    assert_eq!(free(site), 0);
    let room = site.base.join(".agent-sessions/checkpoints/room.reserve");
    let aside = site.tree.join("room.reserve");
    fs::copy(&room, &aside).unwrap();
    // Somebody took what was set aside.
    let mut filler = fs::OpenOptions::new().append(true).open(site.base.join("filler")).unwrap();
    fs::remove_file(&room).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    let forget = block(site.checkpoints.forget(&key("a"), Forget::All)).unwrap_err();
    let list = block(site.checkpoints.list(&key("a"))).unwrap_err();
    for (error, operation) in [(forget, "forget"), (list, "list")] {
        assert_eq!(error.kind(), CheckpointErrorKind::NoRoom, "{error:?}");
        let said = error.to_string();
        assert!(said.starts_with("the disk has too little room"), "{said}");
        assert!(said.contains(&format!("({operation} ")), "{said}");
    }
    let take = site.take("a", "").unwrap_err();
    assert!(take.to_string().starts_with("there is no room for a checkpoint"), "{take:?}");
    // As it was.
    let bytes = fs::metadata(&aside).unwrap().len();
    filler.set_len(filler.metadata().unwrap().len() - bytes).unwrap();
    fs::copy(&aside, &room).unwrap();
    fs::remove_file(&aside).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
}

fn drop_some(site: &Site) {
    assert_eq!(free(site), 0);
    let dropped = block(site.checkpoints.forget(&key("a"), Forget::All)).unwrap();
    assert_eq!(dropped.checkpoints, 1);
    // So much was of that one alone.
    let own: usize = (0..FILES).filter(is_changed).map(|of| text(of, 0).len()).sum();
    assert!(dropped.bytes >= own as u64, "{dropped:?}");
    assert!(free(site) >= own as u64, "{} of {own}", free(site));
    assert!(block(site.checkpoints.list(&key("a"))).unwrap().is_empty());
    let kept = block(site.checkpoints.list(&key("b"))).unwrap();
    assert_eq!(block(site.checkpoints.check(&key("b"), kept[0].id)).unwrap(), Health::Whole);
    // What was seen speaks of nothing that is gone.
    let again = site.take("b", "").unwrap();
    assert_eq!(block(site.checkpoints.check(&key("b"), again.id)).unwrap(), Health::Whole);
    assert_eq!(site.forget("b", &[kept[0].id, again.id]), 2);
}
