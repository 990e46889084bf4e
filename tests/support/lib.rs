//! What the tests and examples of Rejoin run in place of the real things.
//!
//! - [`fake_agent`]: a scripted agent CLI, a program of its own, which can also play the session
//!   behaviour of Claude Code without any model.
//! - [`fake_model`]: a model server on the loopback interface, for real agent CLIs that must run offline.
//! - [`fixture`]: recorded runs of real CLIs.
//! - [`recorder`]: stands before a real CLI and keeps what it writes.
//! - [`verified`]: the document of what was seen on the real CLIs.
//!
//! Agent and model answer with a [`ContextReply`], so a test can tell from the answer what context the agent had.

pub mod fake_agent;
pub mod fake_model;
pub mod fixture;
pub mod recorder;
mod reply;
mod scripted;
pub mod verified;

pub use reply::ContextReply;
pub use scripted::ScriptedAgent;
