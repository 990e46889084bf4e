use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use adapter_claude::ClaudeTranscripts;
use proptest::collection::vec;
use proptest::prelude::*;
use session_core::history::LineFacts;
use session_core::{EnvMap, Places, RecordFacts, Said, SessionQuery, TranscriptFormat};

use super::super::Spot;
use super::*;
use crate::opened::Opened;

/// Counts how many lines it is asked for.
#[derive(Debug)]
struct Counted(ClaudeTranscripts, AtomicUsize);

impl TranscriptFormat for Counted {
    fn places(&self, query: &SessionQuery<'_>) -> Places {
        self.0.places(query)
    }

    fn is_file_of(&self, name: &str, query: &SessionQuery<'_>) -> bool {
        self.0.is_file_of(name, query)
    }

    fn record(&self, line: &[u8]) -> Option<RecordFacts> {
        self.0.record(line)
    }

    fn said(&self, line: &[u8]) -> Option<Said> {
        self.0.said(line)
    }

    fn numbered(&self, line: &[u8], number: u64) -> Option<Vec<u8>> {
        self.0.numbered(line, number)
    }

    fn unarchived(&self, path: &Path) -> Option<PathBuf> {
        self.0.unarchived(path)
    }

    fn entry(&self, line: &[u8]) -> Option<Entry> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.entry(line)
    }

    fn facts<'a>(&self, line: &'a [u8]) -> Option<LineFacts<'a>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.facts(line)
    }
}

/// A line: its id, its second, and whether it is a prompt, a reply, or a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wrote {
    id: usize,
    second: u32,
    word: u8,
}

impl Wrote {
    fn line(self) -> String {
        let Self { id, second, word } = self;
        // Some lines are longer than others.
        let text = format!("w{word}{}", " and on".repeat(usize::from(word) * 7));
        let what = match word {
            0 => r#""type":"system","subtype":"compact_boundary""#.to_owned(),
            1..4 => format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#),
            _ => format!(
                r#""type":"assistant","message":{{"role":"assistant","id":"m{second}","content":[{{"type":"text","text":"{text}"}}]}}"#
            ),
        };
        format!(
            "{{\"uuid\":\"{id:08x}-0000-4000-8000-000000000000\",\"parentUuid\":null,\"sessionId\":\"s\",\
             \"timestamp\":\"2026-05-08T{:02}:{:02}:{:02}.000Z\",{what}}}\n",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

/// What an agent does next.
#[derive(Debug, Clone)]
enum Act {
    /// Writes something so many seconds later.
    Write(u32, u8),
    /// Writes some of the last lines again, under ids of their own or not; then a boundary, or none.
    Again { back: usize, count: usize, own_ids: bool, boundary: bool },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let write = (0..3_u32, 1..6_u8).prop_map(|(later, word)| Act::Write(later, word));
    let again = (1..30_usize, 1..30_usize, any::<bool>(), any::<bool>())
        .prop_map(|(back, count, own_ids, boundary)| Act::Again { back, count, own_ids, boundary });
    vec(prop_oneof![4 => write, 1 => again], 1..30)
}

fn written(acts: &[Act]) -> Vec<Wrote> {
    let (mut all, mut now) = (Vec::<Wrote>::new(), 0);
    for act in acts {
        match *act {
            Act::Write(later, word) => {
                now += later;
                all.push(Wrote { id: all.len(), second: now, word });
            }
            Act::Again { back, count, own_ids, boundary } => {
                let from = all.len().saturating_sub(back);
                for at in from..(from + count).min(all.len()) {
                    let id = if own_ids { all.len() } else { all[at].id };
                    all.push(Wrote { id, ..all[at] });
                }
                if boundary {
                    now += 1;
                    all.push(Wrote { id: all.len(), second: now, word: 0 });
                }
            }
        }
    }
    all
}

/// Which lines a page shows, by all that came before each; `plain`: up to a line behind which nothing was compacted. From there
/// on, only a message that was written twice in a row is one.
fn shown(all: &[Wrote], plain: usize) -> Vec<usize> {
    let is_again = |at: usize| {
        let it = all[at];
        let between =
            |from: usize| all[from..at].iter().any(|other| other.word != 0 && other.second != it.second);
        it.word != 0
            && (0..at).any(|before| {
                let like = (all[before].second, all[before].word) == (it.second, it.word);
                like && (all[before].id == it.id || between(before))
            })
    };
    let is_twin = |at: usize| {
        let before = all[..at].iter().rfind(|other| other.word != 0);
        let same = |before: &Wrote| {
            (before.id, before.second, before.word) == (all[at].id, all[at].second, all[at].word)
        };
        all[at].word != 0 && before.is_some_and(same)
    };
    (0..all.len()).filter(|at| if *at >= plain { !is_twin(*at) } else { !is_again(*at) }).collect()
}

struct Desk {
    _folder: tempfile::TempDir,
    path: PathBuf,
    opened: Opened,
    format: Counted,
    begins: Vec<u64>,
}

impl Desk {
    fn of(all: &[Wrote]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let (mut text, mut begins) = (String::new(), Vec::new());
        for it in all {
            begins.push(text.len() as u64);
            text.push_str(&it.line());
        }
        fs::write(&path, text).unwrap();
        let opened = Opened::at(&path, None).unwrap();
        let format = Counted(ClaudeTranscripts::new(EnvMap::new()), AtomicUsize::new(0));
        Self { _folder: folder, path, opened, format, begins }
    }

    fn transcript(&self) -> Transcript<'_> {
        Transcript { format: &self.format, path: &self.path, opened: &self.opened }
    }

    fn lines(&self, entries: &[session_core::history::Located]) -> Vec<usize> {
        let at = |offset| self.begins.binary_search(&offset).unwrap();
        entries.iter().map(|it| at(it.span.unwrap().offset)).collect()
    }

    /// The lines of all pages.
    fn back(&self, turns: usize, limits: Limits) -> Vec<usize> {
        let (mut all, mut end) = (Vec::new(), None);
        loop {
            let page = self.transcript().back(end, turns, limits).unwrap();
            all = [self.lines(&page.entries), all].concat();
            let Some(before) = page.before else { return all };
            let offset = Spot::parse(&before).unwrap().offset;
            assert!(end.is_none_or(|end: Spot| offset < end.offset), "it goes on");
            end = Spot::parse(&before);
        }
    }

    fn forth(&self, records: usize, limits: Limits) -> Vec<usize> {
        let (mut all, mut begin) = (Vec::new(), 0);
        loop {
            let page = self.transcript().forth(begin, self.opened.size, records, limits).unwrap();
            all.extend(self.lines(&page.entries));
            let after = Spot::parse(&page.after.unwrap()).unwrap().offset;
            if after == begin {
                return all;
            }
            begin = after;
        }
    }
}

/// Small enough that a small file has all that a large one has.
const SMALL: Grid = Grid { cell: 512, places: 4, near: 2048, most: u64::MAX };

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_every_size_show_what_a_whole_pass_shows(acts in acts(), turns in 1..8_usize, bytes in 1..6000_u64) {
        let all = written(&acts);
        let desk = Desk::of(&all);
        let compacted = all.iter().rposition(|it| it.word == 0).unwrap_or(0);
        let (expected, behind) = (shown(&all, compacted), shown(&all, all.len()));
        for limits in [Limits::PAGE, Limits { bytes, ..Limits::PAGE }] {
            prop_assert_eq!(&desk.back(usize::MAX, limits), &expected);
            prop_assert_eq!(&desk.back(1, limits), &expected);
            prop_assert_eq!(&desk.back(turns, limits), &expected);
            // What comes behind is not known yet.
            prop_assert_eq!(&desk.forth(turns, limits), &behind);
        }
        // However coarse the look is, it is the same one.
        let small = Limits { grid: SMALL, ..Limits::PAGE };
        let whole = desk.back(usize::MAX, small);
        prop_assert!(expected.iter().all(|it| whole.contains(it)));
        for turns in [1, turns] {
            prop_assert_eq!(&desk.back(turns, small), &whole);
            let forth = desk.forth(turns, small);
            prop_assert!(behind.iter().all(|it| forth.contains(it)));
            prop_assert_eq!(&forth, &desk.forth(usize::MAX, small));
        }
    }
}

/// So many turns, each written again so often, in a file of many cells.
fn repeats(turns: u32, times: usize) -> Vec<Wrote> {
    let first: Vec<_> =
        (0..turns).map(|turn| Wrote { id: 0, second: turn, word: 1 + (turn % 3) as u8 }).collect();
    let all = std::iter::repeat_n(first, 1 + times).flatten();
    let all = all.chain([Wrote { id: 0, second: turns, word: 0 }]);
    all.enumerate().map(|(id, wrote)| Wrote { id, ..wrote }).collect()
}

#[test]
fn a_page_of_nothing_but_repeats_costs_what_is_read_and_no_more() {
    let all = repeats(600, 9);
    let desk = Desk::of(&all);
    let page = desk.transcript().back(None, 1, Limits::PAGE).unwrap();
    assert_eq!(desk.lines(&page.entries), [599, all.len() - 1], "what was written again is no turn");
    let asked = desk.format.1.load(Ordering::Relaxed);
    assert!(asked < 4 * all.len(), "{asked} for {}", all.len());
}

#[test]
fn in_a_file_of_many_cells_what_is_written_again_is_found_from_any_distance() {
    for (turns, times) in [(400, 1), (40, 1), (40, 12), (7, 60)] {
        let all = repeats(turns, times);
        let desk = Desk::of(&all);
        let expected = Vec::from_iter((0..turns as usize).chain([all.len() - 1]));
        let grid = Grid { cell: 1024, places: 64, near: 8192, most: u64::MAX };
        for size in [1, 9, usize::MAX] {
            assert_eq!(desk.back(size, Limits { grid, ..Limits::PAGE }), expected, "{turns} {times} {size}");
        }
    }
}

#[test]
fn what_is_read_for_a_page_has_an_end() {
    let all = repeats(400, 3);
    let desk = Desk::of(&all);
    let grid = Grid { cell: 1024, places: 64, near: 8192, most: 4096 };
    let page = desk.transcript().back(None, usize::MAX, Limits { grid, ..Limits::PAGE }).unwrap();
    assert_eq!(page.entries.len(), all.len(), "behind that, all is shown");
    let asked = desk.format.1.load(Ordering::Relaxed);
    assert!(asked < 2 * all.len() + 40, "{asked} for {}", all.len());
}
