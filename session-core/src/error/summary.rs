//! Errors of summaries, and of what is made with them.

use super::{HandOverError, StoreError};
use crate::{Holder, SessionKey, TurnSpan};

/// A summary that could not be made, or not be put in its place. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// The budget is too small or too large.
    #[error("a summary of {bytes} bytes cannot be made; the budget is between {least} and {most}")]
    Budget {
        /// The budget.
        bytes: usize,
        /// The smallest.
        least: usize,
        /// The largest.
        most: usize,
    },
    /// The steering words take too much of the budget.
    #[error("the steering words have {bytes} bytes, of this budget they may take {limit}")]
    Steering {
        /// Their length in bytes.
        bytes: usize,
        /// The longest.
        limit: usize,
    },
    /// There are no such turns.
    #[error("{key} has {}; turns: {turns}", none_of(.span))]
    Span {
        /// The key.
        key: SessionKey,
        /// What was asked for.
        span: TurnSpan,
        /// Turns in the conversation.
        turns: u64,
    },
    /// The conversation could not be read.
    #[error("{key} could not be summarised")]
    Read {
        /// The key.
        key: SessionKey,
        /// Why.
        source: HandOverError,
    },
    /// Another runner has the key.
    #[error("another runner works on {key}")]
    Busy {
        /// The key.
        key: SessionKey,
        /// Who runs it, where the store can tell.
        by: Option<Holder>,
    },
    /// A run of the key did not end in order, and what it left has to be looked at first: the next run does.
    #[error("a run of {key} did not end in order; run it once more first")]
    Unsettled {
        /// The key.
        key: SessionKey,
    },
    /// Another text waits for the key's next run, and would be lost.
    #[error("{key} still has to pass on what was {why}; run it once more first")]
    Pending {
        /// The key.
        key: SessionKey,
        /// What put it there, as a code.
        why: String,
    },
    /// A newer version wrote the record of the key, or it cannot be read.
    #[error("the record of {key} is not one that this version can write to")]
    Record {
        /// The key.
        key: SessionKey,
    },
    /// A conversation cannot be handed over to itself.
    #[error("{key} cannot be handed over to itself; compact it")]
    ToItself {
        /// The key.
        key: SessionKey,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

fn none_of(span: &TurnSpan) -> String {
    match span {
        TurnSpan::Whole => "said nothing yet".to_owned(),
        TurnSpan::UpTo(turn) | TurnSpan::From(turn) => format!("no turn {turn}"),
    }
}
