//! The fuzzy search, on a thread of its own: a key is answered at once, whatever the search takes.

use std::cmp::Reverse;
use std::sync::{Arc, mpsc};
use std::thread;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

use super::row::Row;

/// The rows among which is searched, newest first.
pub(crate) type Rows = Arc<[Arc<Row>]>;

/// A search. The one asked for last is the only one whose answer counts.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    /// Its number.
    pub(crate) number: u64,
    pub(crate) text: String,
    pub(crate) rows: Rows,
}

/// The rows that match, best first; of equally good ones, the newest first.
pub(crate) fn search(query: &Query, matcher: &mut Matcher) -> Rows {
    let pattern = Pattern::new(&query.text, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
    let score =
        |row: &Arc<Row>| pattern.score(row.haystack.slice(..), matcher).map(|score| (score, Arc::clone(row)));
    let mut found: Vec<_> = query.rows.iter().filter_map(score).collect();
    // A stable order.
    found.sort_by_key(|(score, _)| Reverse(*score));
    found.into_iter().map(|(_, row)| row).collect()
}

pub(crate) fn matcher() -> Matcher {
    Matcher::new(Config::DEFAULT)
}

/// The thread that searches. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Searcher(mpsc::Sender<Query>);

impl Searcher {
    /// Begins. What is found is handed to `found`, with the number of its search.
    pub(crate) fn start(found: impl Fn(u64, Rows) + Send + 'static) -> Self {
        let (sender, queries) = mpsc::channel::<Query>();
        thread::spawn(move || {
            let mut matcher = matcher();
            while let Ok(mut query) = queries.recv() {
                // Who types faster than this searches wants only the last.
                while let Ok(newer) = queries.try_recv() {
                    query = newer;
                }
                found(query.number, search(&query, &mut matcher));
            }
        });
        Self(sender)
    }

    pub(crate) fn search(&self, query: Query) {
        // The thread ends only after this.
        let _ = self.0.send(query);
    }
}
