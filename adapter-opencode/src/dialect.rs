//! The glue: which room answers which question.

use std::ffi::OsString;
use std::path::Path;

use session_core::decide::Verdict;
use session_core::error::CommandError;
use session_core::history::SessionSource;
use session_core::{
    AgentCapabilities, AgentId, CliDialect, CommandSpec, Decoder, EnvChange, EnvMap, Evidence, NativeId,
    Program, StateLayout, Turn, Version,
};

use crate::decode::OpencodeDecoder;
use crate::options::OpencodeOptions;
use crate::{capabilities, command, state, transcript, verdict};

/// opencode, as a dialect.
#[derive(Debug, Clone)]
pub struct OpencodeDialect {
    id: AgentId,
    options: OpencodeOptions,
}

impl OpencodeDialect {
    /// The dialect with these options, under the agent id `opencode`.
    #[must_use]
    pub fn new(options: OpencodeOptions) -> Self {
        Self { id: AgentId::new("opencode").expect("the literal is a valid agent id"), options }
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &OpencodeOptions {
        &self.options
    }
}

impl Default for OpencodeDialect {
    fn default() -> Self {
        Self::new(OpencodeOptions::default())
    }
}

impl CliDialect for OpencodeDialect {
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
        transcript::is_session_id(id.as_str())
    }

    fn new_id(&self, random: &str) -> NativeId {
        transcript::new_id(random)
    }

    fn command(&self, turn: &Turn<'_>, _: &EnvMap) -> Result<CommandSpec, CommandError> {
        command::of(&self.options, turn)
    }

    fn preparations(&self, turn: &Turn<'_>, _: &EnvMap) -> Result<Vec<CommandSpec>, CommandError> {
        command::preparations(turn)
    }

    fn attended(&self, id: &NativeId) -> Option<Vec<OsString>> {
        self.accepts_id(id).then(|| vec!["--session".into(), id.as_str().into()])
    }

    fn attended_env(&self, source: &SessionSource, _: &EnvMap) -> Vec<EnvChange> {
        state::attended(source)
    }

    fn decoder(&self, turn: &Turn<'_>) -> Box<dyn Decoder> {
        Box::new(OpencodeDecoder::new(turn))
    }

    fn classify(&self, evidence: &Evidence) -> Verdict {
        verdict::of(evidence)
    }

    fn state(&self, state_dir: Option<&Path>, env: &EnvMap, version: Option<&Version>) -> StateLayout {
        state::layout(state_dir, env, version)
    }

    fn sandboxed_state(&self, state_dir: &Path, env: &EnvMap, version: Option<&Version>) -> StateLayout {
        state::sandboxed(state_dir, env, version)
    }
}
