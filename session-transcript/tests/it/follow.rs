//! A transcript that grows, is cut, replaced and removed while it is followed. Time is paused: a pause takes none.

use std::fs::{self, OpenOptions};
use std::future::Future as _;
use std::io::Write as _;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use session_core::history::PageQuery;
use session_core::{NativeId, SessionCatalog as _};
use session_transcript::{FileCatalog, Follow, Followed};

use crate::words::{Talk, source, told};

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

async fn step(follow: &mut Follow) -> Result<Vec<String>, &'static str> {
    match follow.next().await.unwrap() {
        Followed::Added { entries, notices } => {
            assert_eq!(notices, []);
            Ok(entries.iter().map(|located| told(&located.entry)).collect())
        }
        Followed::Anew => Err("anew"),
        Followed::Gone => Err("gone"),
        other => panic!("{other:?}"),
    }
}

fn words(all: &[&str]) -> Result<Vec<String>, &'static str> {
    Ok(all.iter().map(|word| (*word).to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn every_record_comes_once_whatever_happens_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, "{\"p\":\"1\"}\n").unwrap();
    let catalog = FileCatalog::new(Talk);
    let mut follow = catalog.follow(source(&path), None);
    assert_eq!(step(&mut follow).await, words(&["p 1"]));
    append(&path, "{\"a\":\"2\"}\n{\"p\":\"3");
    assert_eq!(step(&mut follow).await, words(&["a 2"]));
    append(&path, "\"}\n");
    assert_eq!(step(&mut follow).await, words(&["p 3"]));
    // Cut.
    fs::write(&path, "{\"p\":\"n\"}\n").unwrap();
    assert_eq!(step(&mut follow).await, Err("anew"));
    assert_eq!(step(&mut follow).await, words(&["p n"]));
    // Replaced, by one that begins in the same way.
    let other = folder.path().join("other");
    fs::write(&other, "{\"p\":\"n\"}\n{\"a\":\"m\"}\n").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(step(&mut follow).await, Err("anew"));
    assert_eq!(step(&mut follow).await, words(&["p n", "a m"]));
    // Rewritten, no shorter than before.
    fs::write(&path, "{\"p\":\"o\"}\n{\"a\":\"m\"}\n{\"a\":\"q\"}\n").unwrap();
    assert_eq!(step(&mut follow).await, Err("anew"));
    assert_eq!(step(&mut follow).await, words(&["p o", "a m", "a q"]));
    fs::remove_file(&path).unwrap();
    assert_eq!(step(&mut follow).await, Err("gone"));
    fs::write(&path, "{\"p\":\"back\"}\n").unwrap();
    assert_eq!(step(&mut follow).await, Err("anew"));
    assert_eq!(step(&mut follow).await, words(&["p back"]));
}

#[tokio::test(start_paused = true)]
async fn it_waits_while_nothing_happens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, "{\"p\":\"1\"}\n").unwrap();
    let catalog = FileCatalog::new(Talk);
    let page =
        catalog.page(&NativeId::new("s"), &source(&path), &PageQuery::Last { turns: 1 }).await.unwrap();
    let mut follow = catalog.follow(source(&path), page.after);
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), follow.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    append(&path, "{\"a\":\"2\"}\n");
    assert_eq!(step(&mut follow).await, words(&["a 2"]));
}

#[test]
fn a_step_that_is_dropped_loses_nothing() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, "{\"p\":\"1\"}\n").unwrap();
        let mut follow = FileCatalog::new(Talk).follow(source(&path), None);
        // The one thread for looks is taken, so that none is over before it is dropped.
        let (release, held) = std::sync::mpsc::channel::<()>();
        let taken = tokio::task::spawn_blocking(move || held.recv());
        for _ in 0..3 {
            let step = pin!(follow.next());
            let poll = step.poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(poll, Poll::Pending));
        }
        drop(release);
        taken.await.unwrap().unwrap_err();
        assert_eq!(step(&mut follow).await, words(&["p 1"]));
    });
}
