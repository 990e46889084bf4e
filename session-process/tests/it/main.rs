//! Agents played by shell scripts, run for real.
#![cfg(unix)]

mod ends;
mod folder;
mod leftovers;
mod plan;
mod prepare;
mod probe;
mod sandbox;
mod start;
mod stream;
mod support;
mod work_tree;
