//! The glue: which room answers which question.

use std::ffi::OsString;
use std::path::Path;

use session_core::decide::Verdict;
use session_core::error::CommandError;
use session_core::{
    AgentCapabilities, AgentId, CliDialect, CommandSpec, Decoder, EnvMap, Evidence, NativeId, Program,
    StateLayout, Turn, Version,
};

use crate::decode::ClaudeDecoder;
use crate::options::ClaudeOptions;
use crate::{capabilities, command, state, transcript, verdict};

/// Claude Code, as a dialect.
#[derive(Debug, Clone)]
pub struct ClaudeDialect {
    id: AgentId,
    options: ClaudeOptions,
}

impl ClaudeDialect {
    /// The dialect with these options, under the agent id `claude`.
    #[must_use]
    pub fn new(options: ClaudeOptions) -> Self {
        Self { id: AgentId::new("claude").expect("the literal is a valid agent id"), options }
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &ClaudeOptions {
        &self.options
    }
}

impl Default for ClaudeDialect {
    fn default() -> Self {
        Self::new(ClaudeOptions::default())
    }
}

impl CliDialect for ClaudeDialect {
    fn id(&self) -> &AgentId {
        &self.id
    }

    fn program(&self) -> Program {
        self.options.program.clone()
    }

    fn version_probe(&self) -> CommandSpec {
        command::version_probe()
    }

    fn version(&self, printed: &str) -> Option<Version> {
        capabilities::version(printed)
    }

    fn capabilities(&self, version: Option<&Version>) -> AgentCapabilities {
        let mut capabilities = capabilities::of(version);
        capabilities.retention = command::retention(&self.options, version);
        capabilities
    }

    fn accepts_id(&self, id: &NativeId) -> bool {
        transcript::is_session_id(id.as_str())
    }

    fn command(&self, turn: &Turn<'_>, _: &EnvMap) -> Result<CommandSpec, CommandError> {
        command::of(&self.options, turn)
    }

    fn preparations(&self, _: &Turn<'_>, _: &EnvMap) -> Result<Vec<CommandSpec>, CommandError> {
        Ok(Vec::new())
    }

    fn attended(&self, id: &NativeId) -> Option<Vec<OsString>> {
        self.accepts_id(id).then(|| vec!["--resume".into(), id.as_str().into()])
    }

    fn decoder(&self, turn: &Turn<'_>) -> Box<dyn Decoder> {
        Box::new(ClaudeDecoder::new(turn.mode))
    }

    fn classify(&self, evidence: &Evidence) -> Verdict {
        verdict::of(evidence)
    }

    fn state(&self, state_dir: Option<&Path>, env: &EnvMap, version: Option<&Version>) -> StateLayout {
        state::layout(state_dir, env, version)
    }
}
