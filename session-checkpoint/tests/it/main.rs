//! The checkpointer over trees that are made here.

mod damage;
mod forget;
mod limits;
mod rules;
mod same;
mod support;
mod take;
