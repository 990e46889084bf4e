//! Search in what was said.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use session_core::history::{
    Hit, HitPlace, ListQuery, NoticeKind, Scope, SearchQuery, Searched, SessionEntry, SessionSource,
};
use session_core::{NativeId, SessionCatalog as _};
use session_transcript::FileCatalog;

use crate::words::Talk;

struct Shelf(tempfile::TempDir);

impl Shelf {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn dir(&self) -> &Path {
        self.0.path()
    }

    /// A session that was written so many seconds after another.
    fn write(&self, name: &str, text: impl AsRef<[u8]>, seconds: u64) {
        let path = self.dir().join("talks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
        fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    }

    fn query(&self, words: &[&str]) -> SearchQuery {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        SearchQuery { state_dir: Some(self.dir().to_owned()), words, ..SearchQuery::default() }
    }

    async fn all(&self, query: &SearchQuery) -> (Vec<Hit>, Vec<NoticeKind>) {
        let mut search = FileCatalog::new(Talk).search(query).await.unwrap();
        let (mut hits, mut notices) = (Vec::new(), Vec::new());
        while let Some(searched) = search.next().await {
            match searched {
                Searched::Hit(hit) => hits.push(*hit),
                Searched::Notice(notice) => notices.push(notice.kind),
                other => panic!("{other:?}"),
            }
        }
        (hits, notices)
    }

    /// Sessions and excerpts.
    async fn hits(&self, words: &[&str]) -> Vec<(String, String)> {
        let (hits, notices) = self.all(&self.query(words)).await;
        assert_eq!(notices, []);
        hits.into_iter().map(|hit| (hit.id.to_string(), hit.excerpt)).collect()
    }
}

fn found(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(id, excerpt)| ((*id).to_owned(), (*excerpt).to_owned())).collect()
}

#[tokio::test]
async fn the_newest_session_and_its_last_word_come_first() {
    let shelf = Shelf::new();
    shelf.write("old.jsonl", "{\"p\":\"Fix the Parser\"}\n{\"a\":\"the parser is fixed\"}\n", 1);
    shelf.write("x/new.jsonl", "{\"t\":\"PARSER work\"}\n{\"p\":\"unrelated\"}\n", 2);
    let expected = [("new", "PARSER work"), ("old", "the parser is fixed"), ("old", "Fix the Parser")];
    assert_eq!(shelf.hits(&["parser"]).await, found(&expected));
    assert_eq!(shelf.hits(&["parser", "FIX"]).await, found(&expected[1..]));
    assert_eq!(shelf.hits(&["fix the"]).await, found(&expected[2..]));
    assert_eq!(shelf.hits(&["parser", "unrelated"]).await, []);
    let (hits, _) = shelf.all(&shelf.query(&["parser"])).await;
    let places: Vec<_> = hits.iter().map(|hit| hit.place).collect();
    assert_eq!(places, [HitPlace::Title, HitPlace::Reply, HitPlace::Prompt]);
    for hit in &hits {
        assert_eq!(hit.excerpt[hit.matched.clone()].to_lowercase(), "parser");
        let span = hit.span.unwrap();
        let bytes = fs::read(&hit.source.path).unwrap();
        let line = &bytes[usize::try_from(span.offset).unwrap()..][..usize::try_from(span.bytes).unwrap()];
        assert!(String::from_utf8_lossy(line).contains(&hit.excerpt), "{hit:?}");
    }
}

/// What tools say, names of keys and other records are not what somebody said.
#[tokio::test]
async fn only_what_was_said_is_found() {
    let shelf = Shelf::new();
    let lines = [
        "{\"n\":\"parser\"}",
        "{\"parser\":\"x\"}",
        "{\"p\":[\"parser\"]}",
        "{\"a\":\"said\",\"parser\":\"parser\"}",
        "{\"p\":\"\\u0070arser\"}",
    ];
    shelf.write("s.jsonl", lines.join("\n"), 1);
    assert_eq!(shelf.hits(&["parser"]).await, found(&[("s", "parser")]));
}

#[tokio::test]
async fn escapes_and_letters_of_any_alphabet_are_read_before_they_are_compared() {
    let shelf = Shelf::new();
    shelf.write(
        "s.jsonl",
        "{\"p\":\"caf\\u00E9 say \\\"hi\\\"\\nnext line\"}\n{\"p\":\"ПРИВЕТ 日本語\"}\n",
        1,
    );
    for words in ["CAFÉ", "\"hi\"\nnext", "é say"] {
        assert_eq!(shelf.hits(&[words]).await, found(&[("s", "café say \"hi\" next line")]), "{words}");
    }
    for words in ["привет", "本語"] {
        assert_eq!(shelf.hits(&[words]).await, found(&[("s", "ПРИВЕТ 日本語")]), "{words}");
    }
}

#[tokio::test]
async fn the_limit_counts_what_is_left_after_everything_else() {
    let shelf = Shelf::new();
    for at in 0..5 {
        shelf.write(&format!("{at}.jsonl"), "{\"n\":\"word\"}\n{\"p\":\"word 1\"}\n{\"p\":\"word 2\"}\n", at);
    }
    for (limit, expected) in [(0, 0), (1, 1), (3, 3), (10, 10), (99, 10)] {
        let query = SearchQuery { limit: Some(limit), ..shelf.query(&["word"]) };
        assert_eq!(shelf.all(&query).await.0.len(), expected, "{limit}");
    }
    // Nothing of this format tells a folder.
    let elsewhere = SearchQuery { scope: Scope::Below("/elsewhere".into()), ..shelf.query(&["word"]) };
    assert_eq!(shelf.all(&elsewhere).await.0, []);
}

#[tokio::test]
async fn what_is_left_out_is_told() {
    let shelf = Shelf::new();
    let long = format!("{{\"p\":\"word {}\"}}", "x".repeat(7 << 20));
    shelf.write("s.jsonl", format!("{{\"p\":\"word\"}}\n{{\"p\":\"word\n{long}\n{{\"p\":\"wo"), 2);
    shelf.write("older/s.jsonl", "{\"p\":\"word\"}\n", 1);
    let (hits, notices) = shelf.all(&shelf.query(&["word"])).await;
    assert_eq!(hits.len(), 1);
    assert_eq!(notices, [NoticeKind::LineTooLong, NoticeKind::SkippedLine, NoticeKind::OlderCopy]);
}

#[tokio::test]
async fn nothing_is_searched_for_is_an_error_and_nothing_to_search_is_none() {
    let shelf = Shelf::new();
    assert!(FileCatalog::new(Talk).search(&shelf.query(&["", ""])).await.is_err());
    assert_eq!(shelf.hits(&["word"]).await, []);
}

/// More hits than wait to be asked for: the search is at work when it is dropped, and the runtime waits for it at its end.
#[test]
fn a_search_that_is_dropped_ends() {
    let shelf = Shelf::new();
    shelf.write("s.jsonl", "{\"p\":\"word\"}\n".repeat(10_000), 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut search = FileCatalog::new(Talk).search(&shelf.query(&["word"])).await.unwrap();
        assert!(matches!(search.next().await, Some(Searched::Hit(_))));
    });
    drop(runtime);
}

#[tokio::test]
async fn every_part_of_a_session_is_searched_and_a_part_that_is_whole_is_a_session_of_its_own() {
    let shelf = Shelf::new();
    shelf.write("s.jsonl", "{\"p\":\"word first\"}\n", 1);
    shelf.write("s_one.jsonl", "{\"b\":\"s\"}\n{\"p\":\"word second\"}\n", 2);
    shelf.write("s_two.jsonl", "{\"p\":\"word whole\"}\n", 3);
    let expected = [("two", "word whole"), ("s", "word second"), ("s", "word first")];
    assert_eq!(shelf.hits(&["word"]).await, found(&expected));
}

#[tokio::test]
async fn a_title_beside_the_files_is_found_once() {
    let shelf = Shelf::new();
    shelf.write("s.jsonl", "{\"p\":\"hi\"}\n", 1);
    shelf.write("s_one.jsonl", "{\"b\":\"s\"}\n", 2);
    fs::write(shelf.dir().join("titles"), "{\"s\":\"old word\"}\n{\"s\":\"a word\"}\n{\"gone\":\"word\"}\n")
        .unwrap();
    assert_eq!(shelf.hits(&["word"]).await, found(&[("s", "a word")]));
}

#[tokio::test]
async fn a_title_beside_the_files_is_as_long_as_a_list_shows() {
    let shelf = Shelf::new();
    shelf.write("s.jsonl", "{\"p\":\"hi\"}\n", 1);
    let long = "é".repeat(2000);
    fs::write(shelf.dir().join("titles"), format!("{{\"s\":\"{long}\"}}\n")).unwrap();
    let query = ListQuery { state_dir: Some(shelf.dir().to_owned()), ..ListQuery::default() };
    let listing = FileCatalog::new(Talk).list(&query).await.unwrap();
    let title = listing.sessions[0].title.as_ref().unwrap();
    assert_eq!(title.text, long[..SessionEntry::PROMPT]);
}

#[tokio::test]
async fn each_hit_is_in_scope_by_the_folder_in_which_it_was_said() {
    let shelf = Shelf::new();
    let said = |word: &str, cwd: &str| format!("{{\"p\":\"word {word}\",\"w\":\"{cwd}\"}}\n");
    shelf.write("s.jsonl", said("one", "/a") + &said("two", "/b") + &said("three", "/c"), 1);
    for (folder, expected) in [("/a", 3), ("/b", 1), ("/c", 1), ("/d", 0)] {
        let query = SearchQuery { scope: Scope::Below(folder.into()), ..shelf.query(&["word"]) };
        assert_eq!(shelf.all(&query).await.0.len(), expected, "{folder}");
    }
}

#[tokio::test]
async fn what_is_restored_counts_the_files_that_a_session_goes_on_from() {
    let shelf = Shelf::new();
    shelf.write("s.jsonl", "{\"p\":\"first\"}\n{\"a\":\"one\"}\n", 1);
    shelf.write("t.jsonl", "{\"b\":\"s\"}\n{\"p\":\"second\"}\n", 2);
    let path = shelf.dir().join("talks/t.jsonl");
    let source = SessionSource { path, state_dir: Some(shelf.dir().to_owned()) };
    let restore = || async { FileCatalog::new(Talk).restore(&NativeId::new("t"), &source).await.unwrap() };
    let restored = restore().await;
    assert_eq!((restored.turns, restored.notices.len()), (2, 0));
    fs::remove_file(shelf.dir().join("talks/s.jsonl")).unwrap();
    let restored = restore().await;
    let kinds: Vec<_> = restored.notices.iter().map(|notice| &notice.kind).collect();
    assert_eq!((restored.turns, kinds), (1, vec![&NoticeKind::BaseMissing]));
}

#[cfg(unix)]
#[tokio::test]
async fn a_state_dir_that_cannot_be_looked_into_is_no_empty_one() {
    let shelf = Shelf::new();
    let looped = shelf.dir().join("looped");
    std::os::unix::fs::symlink(&looped, &looped).unwrap();
    let catalog = FileCatalog::new(Talk);
    let query = ListQuery { state_dir: Some(looped.clone()), ..ListQuery::default() };
    assert!(!catalog.list(&query).await.unwrap().is_complete());
    assert!(catalog.find(&NativeId::new("s"), Some(&looped)).await.is_err());
}
