//! The records of a page that is read from its end.

use session_core::history::{Entry, Located};

use super::again::is_message;

/// Records, the last one first. A message that was written twice in a row is one: the first of both counts.
#[derive(Debug, Default)]
pub(super) struct Backward {
    records: Vec<Located>,
    /// Which of them is the message that was taken last.
    message: Option<usize>,
    turns: usize,
}

impl Backward {
    /// How many turns begin with them.
    pub(super) const fn turns(&self) -> usize {
        self.turns
    }

    /// Whether it is the message that was taken last, written twice.
    pub(super) fn is_twin(&self, entry: &Entry) -> bool {
        entry.id.is_some() && self.message.is_some_and(|later| self.records[later].entry == *entry)
    }

    /// Takes the record before.
    pub(super) fn push(&mut self, located: Located) {
        if self.is_twin(&located.entry)
            && let Some(later) = self.message.take()
        {
            self.turns -= turn(&self.records.remove(later).entry);
        }
        if is_message(&located.entry) {
            self.message = Some(self.records.len());
        }
        self.turns += turn(&located.entry);
        self.records.push(located);
    }

    /// In the order of the file.
    pub(super) fn into_entries(mut self) -> Vec<Located> {
        self.records.reverse();
        self.records
    }
}

fn turn(entry: &Entry) -> usize {
    usize::from(entry.begins_turn())
}
