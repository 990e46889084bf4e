//! The glue: which room answers which question.

use std::ffi::OsString;
use std::path::Path;

use session_core::decide::Verdict;
use session_core::error::CommandError;
use session_core::{
    AgentCapabilities, AgentId, CliDialect, CommandSpec, Decoder, EnvMap, Evidence, NativeId, Program,
    StateLayout, Turn, Version,
};

use crate::decode::CodexDecoder;
use crate::options::CodexOptions;
use crate::{capabilities, command, state, transcript, verdict};

/// Codex, as a dialect.
#[derive(Debug, Clone)]
pub struct CodexDialect {
    id: AgentId,
    options: CodexOptions,
}

impl CodexDialect {
    /// The dialect with these options, under the agent id `codex`.
    #[must_use]
    pub fn new(options: CodexOptions) -> Self {
        Self { id: AgentId::new("codex").expect("the literal is a valid agent id"), options }
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &CodexOptions {
        &self.options
    }
}

impl Default for CodexDialect {
    fn default() -> Self {
        Self::new(CodexOptions::default())
    }
}

impl CliDialect for CodexDialect {
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
        capabilities::of(version)
    }

    fn accepts_id(&self, id: &NativeId) -> bool {
        transcript::is_thread_id(id.as_str())
    }

    fn command(&self, turn: &Turn<'_>, _: &EnvMap) -> Result<CommandSpec, CommandError> {
        command::of(&self.options, turn)
    }

    fn preparations(&self, _: &Turn<'_>, _: &EnvMap) -> Result<Vec<CommandSpec>, CommandError> {
        Ok(Vec::new())
    }

    fn attended(&self, id: &NativeId) -> Option<Vec<OsString>> {
        self.accepts_id(id).then(|| vec!["resume".into(), id.as_str().into()])
    }

    /// Codex has the command from 0.140 on; it is what it names itself where it refuses such a session.
    fn unarchive(&self, id: &NativeId) -> Option<Vec<OsString>> {
        self.accepts_id(id).then(|| vec!["unarchive".into(), id.as_str().into()])
    }

    fn decoder(&self, _: &Turn<'_>) -> Box<dyn Decoder> {
        Box::new(CodexDecoder::default())
    }

    fn classify(&self, evidence: &Evidence) -> Verdict {
        verdict::of(evidence)
    }

    fn state(&self, state_dir: Option<&Path>, env: &EnvMap, _: Option<&Version>) -> StateLayout {
        state::layout(state_dir, env, &self.options)
    }
}
