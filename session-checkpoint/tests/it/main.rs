//! The checkpointer over trees that are made here.

mod rules;
mod same;
mod support;
mod take;
