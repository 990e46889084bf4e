//! Agents played by shell scripts, run for real.
#![cfg(unix)]

mod ends;
mod folder;
mod leftovers;
mod prepare;
mod probe;
mod start;
mod stream;
mod support;
