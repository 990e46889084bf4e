//! A response body made of parts, which can break off.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_core::Stream;

/// One part of a streamed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Bytes of the body.
    Bytes(Bytes),
    /// What came before is on its way before the next part is looked at.
    Flush,
    /// The connection breaks.
    Break,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With its last event.
    Whole,
    /// In order, but after its first event.
    Cut,
    /// With its connection, after its first event.
    Broken,
}

/// The body of these parts.
pub(super) fn body(parts: Vec<Part>) -> Body {
    Body::from_stream(Parts(parts.into()))
}

struct Parts(VecDeque<Part>);

impl Stream for Parts {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(Part::Bytes(bytes)) => Poll::Ready(Some(Ok(bytes))),
            Some(Part::Flush) => {
                // The server writes out what it has whenever it must wait for more.
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Part::Break) => {
                Poll::Ready(Some(Err(io::Error::other("the prompt asked for a broken connection"))))
            }
        }
    }
}
