//! The checkpointer over trees that are made here.

mod support;
mod take;
