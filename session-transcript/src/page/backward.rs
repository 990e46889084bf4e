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

    /// Takes the record before.
    pub(super) fn push(&mut self, located: Located) {
        if is_message(&located.entry) {
            self.leave_out_twin_of(&located.entry);
            self.message = Some(self.records.len());
        }
        self.turns += turn(&located.entry);
        self.records.push(located);
    }

    /// Passes over the record before, which is not shown.
    pub(super) fn pass(&mut self, entry: &Entry) {
        if is_message(entry) {
            self.leave_out_twin_of(entry);
            self.message = None;
        }
    }

    /// Whether the message that was taken last is this one, which stands before it, written twice.
    pub(super) fn is_twin_of(&self, before: Option<&Entry>) -> bool {
        let last = self.message.map(|at| &self.records[at].entry);
        last.is_some_and(|last| last.id.is_some() && Some(last) == before)
    }

    /// Leaves it out, if so.
    pub(super) fn leave_out_twin_of(&mut self, before: &Entry) {
        if self.is_twin_of(Some(before))
            && let Some(later) = self.message.take()
        {
            self.turns -= turn(&self.records.remove(later).entry);
        }
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
