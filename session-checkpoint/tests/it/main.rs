//! The checkpointer over trees that are made here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod forget;
mod large;
mod limits;
mod rules;
mod same;
mod support;
mod take;
