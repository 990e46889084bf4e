//! Pages of a transcript.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use session_core::error::{CatalogError, Chain};
use session_core::history::{Cursor, NoticeKind, PageQuery, TranscriptPage};
use session_core::{NativeId, SessionCatalog as _};
use session_transcript::FileCatalog;

use crate::words::{Talk, source, told};

struct Desk {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Desk {
    fn new(text: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, text).unwrap();
        Self { _folder: folder, path }
    }

    fn append(&self, text: &str) {
        OpenOptions::new().append(true).open(&self.path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    async fn try_page(&self, query: &PageQuery) -> Result<TranscriptPage, CatalogError> {
        FileCatalog::new(Talk).page(&NativeId::new("s"), &source(&self.path), query).await
    }

    async fn page(&self, query: PageQuery) -> TranscriptPage {
        let page = self.try_page(&query).await.unwrap();
        // Every span holds what was read there.
        let bytes = fs::read(&self.path).unwrap();
        for located in &page.entries {
            let span = located.span.unwrap();
            let begin = usize::try_from(span.offset).unwrap();
            let written = &bytes[begin..begin + usize::try_from(span.bytes).unwrap()];
            assert_eq!(session_core::TranscriptFormat::entry(&Talk, written).as_ref(), Some(&located.entry));
            assert_eq!((&located.path, located.line), (&self.path, None));
        }
        page
    }

    async fn last(&self, turns: usize) -> TranscriptPage {
        self.page(PageQuery::Last { turns }).await
    }

    async fn after(&self, cursor: &Cursor) -> TranscriptPage {
        self.page(PageQuery::After { cursor: cursor.clone(), records: 100 }).await
    }

    async fn refusal(&self, cursor: &Cursor) -> String {
        let mut said = Vec::new();
        for query in [
            PageQuery::After { cursor: cursor.clone(), records: 1 },
            PageQuery::Before { cursor: cursor.clone(), turns: 1 },
        ] {
            let error = self.try_page(&query).await.unwrap_err();
            assert_eq!(error.path, self.path);
            said.push(Chain(&error).to_string());
        }
        assert_eq!(said[0], said[1]);
        said.remove(0)
    }
}

fn texts(page: &TranscriptPage) -> Vec<String> {
    page.entries.iter().map(|located| told(&located.entry)).collect()
}

fn notices(page: &TranscriptPage) -> Vec<(u64, NoticeKind)> {
    page.notices.iter().map(|notice| (notice.offset.unwrap(), notice.kind.clone())).collect()
}

fn talk(turns: usize) -> String {
    let mut text = String::from("{\"n\":\"head\"}\n");
    for turn in 0..turns {
        writeln!(text, "{{\"p\":\"{turn}\"}}\n{{\"a\":\"{}\"}}", "long ".repeat(turn * 40)).unwrap();
    }
    text
}

#[tokio::test]
async fn pages_lead_back_to_the_beginning_and_leave_nothing_out() {
    let desk = Desk::new(talk(50));
    let mut page = desk.last(7).await;
    assert_eq!(texts(&page)[0], "p 43");
    assert_eq!(texts(&page).len(), 14);
    let mut all = texts(&page);
    while let Some(cursor) = page.before.take() {
        page = desk.page(PageQuery::Before { cursor, turns: 7 }).await;
        assert_eq!(page.notices, []);
        all.splice(0..0, texts(&page));
    }
    assert_eq!(all.len(), 101);
    assert_eq!(all[0], "n head");
    let whole = desk.last(usize::MAX).await;
    assert_eq!((texts(&whole), whole.before), (all, None));
}

#[tokio::test]
async fn no_turns_are_a_place_to_go_on_from() {
    let desk = Desk::new(talk(2));
    let page = desk.last(0).await;
    assert_eq!(page.entries, []);
    desk.append("{\"p\":\"new\"}\n");
    assert_eq!(texts(&desk.after(&page.after.unwrap()).await), ["p new"]);
    let empty = Desk::new("");
    let page = empty.last(3).await;
    assert_eq!((page.entries.len(), page.before), (0, None));
    empty.append("{\"p\":\"new\"}\n");
    assert_eq!(texts(&empty.after(&page.after.unwrap()).await), ["p new"]);
}

#[tokio::test]
async fn a_torn_last_line_is_no_entry_and_comes_once_it_is_whole() {
    let desk = Desk::new("{\"p\":\"one\"}\n{\"a\":\"tw");
    let page = desk.last(5).await;
    assert_eq!(texts(&page), ["p one"]);
    assert_eq!(notices(&page), [(12, NoticeKind::TornTail)]);
    let cursor = page.after.unwrap();
    let page = desk.after(&cursor).await;
    assert_eq!((page.entries.len(), page.after.clone()), (0, Some(cursor)));
    desk.append("o\"}\n{\"p\":\"thr");
    let page = desk.after(&page.after.unwrap()).await;
    assert_eq!(texts(&page), ["a two"]);
    desk.append("ee\"}");
    // Whole without an end, then the end.
    let page = desk.after(&page.after.unwrap()).await;
    assert_eq!(texts(&page), ["p three"]);
    desk.append("\n{\"a\":\"four\"}\n");
    let page = desk.after(&page.after.unwrap()).await;
    assert_eq!((texts(&page), notices(&page)), (vec!["a four".to_owned()], vec![]));
    let page = desk.after(&page.after.unwrap()).await;
    assert_eq!((page.entries, page.notices), (vec![], vec![]));
}

#[tokio::test]
async fn a_page_after_holds_as_many_records_as_were_asked_for() {
    let desk = Desk::new(talk(10));
    let first = desk.last(usize::MAX).await.entries[0].span.unwrap();
    let begin = desk.last(10).await.before.unwrap();
    let mut page = desk.page(PageQuery::After { cursor: begin, records: 3 }).await;
    assert_eq!(texts(&page)[0], "p 0");
    assert!(page.entries[0].span.unwrap().offset > first.offset);
    let mut all = texts(&page);
    while !page.entries.is_empty() {
        assert!(page.entries.len() <= 3);
        page = desk.page(PageQuery::After { cursor: page.after.unwrap(), records: 3 }).await;
        all.extend(texts(&page));
    }
    assert_eq!(all.len(), 20);
}

/// Half a record with a whole one behind it, NULs, rubbish: each is told with its place, and the rest is read.
#[tokio::test]
async fn damaged_lines_are_told_and_take_nothing_else_with_them() {
    let good = "{\"a\":\"x\"}\n";
    let nul = "\0".repeat(300);
    for (bad, records, notice) in [
        ("{\"n\":\"S1\",\"prNu{\"p\":\"glued\"}\n".to_owned(), 41, NoticeKind::Recovered),
        (format!("{nul}{{\"p\":\"behind\"}}\n"), 41, NoticeKind::Recovered),
        (format!("{nul}\n"), 40, NoticeKind::SkippedLine),
        ("rubbish\n".to_owned(), 40, NoticeKind::SkippedLine),
        // A note could be a part of what was cut.
        ("{\"x\":[{\"n\":\"part\"}\n".to_owned(), 40, NoticeKind::SkippedLine),
    ] {
        let desk = Desk::new(format!("{}{bad}{}", good.repeat(20), good.repeat(20)));
        let at = 20 * good.len() as u64;
        for page in [desk.last(50).await, desk.after(&desk.first().await).await] {
            assert_eq!(
                (page.entries.len(), notices(&page)),
                (records, vec![(at, notice.clone())]),
                "{bad:?}"
            );
        }
    }
    let desk = Desk::new(format!("{}{}", good.repeat(20), "\0".repeat(1200)));
    let page = desk.last(50).await;
    assert_eq!((page.entries.len(), notices(&page)), (20, vec![(200, NoticeKind::TornTail)]));
}

impl Desk {
    /// The place before everything: that of the file while it was empty.
    async fn first(&self) -> Cursor {
        let text = fs::read(&self.path).unwrap();
        fs::write(&self.path, "").unwrap();
        let cursor = self.last(0).await.after.unwrap();
        fs::write(&self.path, text).unwrap();
        cursor
    }
}

#[tokio::test]
async fn lines_end_at_a_line_feed_only() {
    let text = "left\u{2028}right\u{2029}\u{85}\u{b}end";
    let desk =
        Desk::new(format!("{{\"p\":\"{text}\\r\"}}\r\n\r\n{{\"a\":\"x\"}}\r\n").replace('\u{b}', "\\u000b"));
    let page = desk.last(5).await;
    assert_eq!(texts(&page), [format!("p {text}\r"), "a x".to_owned()]);
    assert_eq!(page.notices, []);
    let written =
        &fs::read(&desk.path).unwrap()[..usize::try_from(page.entries[0].span.unwrap().bytes).unwrap()];
    assert_eq!(written.last(), Some(&b'}'));
}

#[tokio::test]
async fn a_line_that_is_too_long_is_left_out_and_told() {
    let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(30 << 20));
    let desk = Desk::new(format!("{{\"p\":\"one\"}}\n{long}{{\"p\":\"two\"}}\n"));
    for page in [desk.last(9).await, desk.after(&desk.first().await).await] {
        assert_eq!(texts(&page), ["p one", "p two"]);
        assert_eq!(notices(&page), [(12, NoticeKind::LineTooLong)]);
    }
}

#[tokio::test]
async fn a_page_that_would_be_too_large_stops_and_says_where_to_go_on() {
    let line = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1 << 20));
    let desk = Desk::new(format!("{{\"p\":\"one\"}}\n{}", line.repeat(40)));
    let mut page = desk.last(1).await;
    let mut all = page.entries.len();
    assert!((2..20).contains(&all), "{all}");
    assert!(notices(&page).iter().any(|(_, kind)| *kind == NoticeKind::LimitReached));
    while let Some(cursor) = page.before.take() {
        page = desk.page(PageQuery::Before { cursor, turns: 1 }).await;
        all += page.entries.len();
    }
    assert_eq!((all, texts(&page)[0].as_str()), (41, "p one"));
    let mut page = desk.after(&desk.first().await).await;
    let mut all = page.entries.len();
    while !page.entries.is_empty() {
        page = desk.after(&page.after.unwrap()).await;
        all += page.entries.len();
    }
    assert_eq!(all, 41);
}

#[tokio::test]
async fn damage_of_any_length_is_told_in_pages_that_lead_on_in_both_directions() {
    let desk = Desk::new(talk(1));
    let mut after = desk.last(9).await.after;
    desk.append(&("x\n".repeat(10_000) + "{\"p\":\"last\"}\n"));
    let is_short = |page: &TranscriptPage| page.notices.len() < 5000;
    let mut all = Vec::new();
    let mut page = desk.last(9).await;
    while let Some(cursor) = page.before.take() {
        assert!(is_short(&page));
        all.splice(0..0, texts(&page));
        page = desk.page(PageQuery::Before { cursor, turns: 9 }).await;
    }
    all.splice(0..0, texts(&page));
    assert_eq!(all, ["n head", "p 0", "a ", "p last"]);
    let (mut added, mut skipped) = (Vec::new(), 0);
    while let Some(cursor) = after.take() {
        let page = desk.after(&cursor).await;
        assert!(is_short(&page));
        added.extend(texts(&page));
        skipped += notices(&page).iter().filter(|(_, kind)| *kind == NoticeKind::SkippedLine).count();
        after = page.after.filter(|next| *next != cursor);
    }
    assert_eq!((added, skipped), (vec!["p last".to_owned()], 10_000));
}

#[tokio::test]
async fn a_cursor_that_does_not_fit_is_refused_and_says_why() {
    let desk = Desk::new(talk(20));
    let cursor = desk.last(3).await.before.unwrap();
    for made_up in ["", "7", "f1.1.2.3", "f1.1.2.3.4.5", "f1.1.2.3.4.p", "f1.x.2.3.4", "f1.1.2.3.4"] {
        let said = desk.refusal(&Cursor(made_up.to_owned())).await;
        assert!(said.contains("none of this catalog"), "{made_up:?}: {said}");
    }
    let file = cursor.0.split('.').take(3).collect::<Vec<_>>().join(".");
    let said = desk.refusal(&Cursor(format!("{file}.ffffffffffffffff.0000000000000000"))).await;
    assert!(said.contains("was cut"), "{said}");

    let other = Desk::new(talk(20));
    assert!(other.refusal(&cursor).await.contains("another file"));

    let text = fs::read_to_string(&desk.path).unwrap();
    fs::write(&desk.path, text.replace("{\"p\":\"16\"}", "{\"p\":\"61\"}")).unwrap();
    assert!(desk.refusal(&cursor).await.contains("rewritten"));
    fs::write(&desk.path, "{\"p\":\"short\"}\n").unwrap();
    assert!(desk.refusal(&cursor).await.contains("was cut"));
    fs::remove_file(&desk.path).unwrap();
    assert!(desk.refusal(&cursor).await.contains("not there"));
}

#[tokio::test]
async fn what_nobody_knows_survives() {
    let desk = Desk::new("{\"p\":\"one\"}\n{\"from_the_future\":{\"x\":[1,null]}}\n");
    let page = desk.last(1).await;
    let record = serde_json::json!({"from_the_future": {"x": [1, null]}});
    let kind = session_core::history::EntryKind::Unknown { name: "from_the_future".to_owned(), record };
    assert_eq!(page.entries[1].entry.kind, kind);
}
