//! Dialects that break the contract.

mod claims;
mod commands;
mod stream;

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use session_contract::dialect::{DIALECT_CASES, Subject};
use session_contract::failures;
use session_core::decide::Verdict;
use session_core::error::CommandError;
use session_core::*;

use crate::sample::Sample;
use crate::table::{Outcome, compare};

type Result<T> = std::result::Result<T, CommandError>;
type OnCommand = fn(&Memory, &Turn<'_>, &EnvMap, Result<CommandSpec>) -> Result<CommandSpec>;
type OnEvents = fn(&Memory, &Turn<'_>, Box<dyn Decoder>) -> Box<dyn Decoder>;

/// What a dialect must not have.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    last: Mutex<Option<NativeId>>,
    count: AtomicU64,
}

/// The sample, broken in one place.
#[derive(Clone)]
struct Broken {
    inner: Sample,
    memory: Arc<Memory>,
    command: OnCommand,
    probe: fn(CommandSpec) -> CommandSpec,
    capabilities: fn(Option<&Version>, AgentCapabilities) -> AgentCapabilities,
    accepts: fn(&NativeId, bool) -> bool,
    new_id: fn(NativeId) -> NativeId,
    decoder: OnEvents,
    classify: fn(&Evidence, Verdict) -> Verdict,
    state: fn(Option<&Path>, StateLayout) -> StateLayout,
    sandboxed: fn(StateLayout) -> StateLayout,
}

impl std::fmt::Debug for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Broken")
    }
}

fn sound() -> Broken {
    Broken {
        inner: Sample::new(),
        memory: Arc::default(),
        command: |_, _, _, command| command,
        probe: |probe| probe,
        capabilities: |_, capabilities| capabilities,
        accepts: |_, accepted| accepted,
        new_id: |id| id,
        decoder: |_, _, decoder| decoder,
        classify: |_, verdict| verdict,
        state: |_, layout| layout,
        sandboxed: |layout| layout,
    }
}

impl CliDialect for Broken {
    fn id(&self) -> &AgentId {
        self.inner.id()
    }
    fn program(&self) -> Program {
        self.inner.program()
    }
    fn version_probe(&self) -> CommandSpec {
        (self.probe)(self.inner.version_probe())
    }
    fn capabilities(&self, version: Option<&Version>) -> AgentCapabilities {
        (self.capabilities)(version, self.inner.capabilities(version))
    }
    fn accepts_id(&self, id: &NativeId) -> bool {
        (self.accepts)(id, self.inner.accepts_id(id))
    }
    fn command(&self, turn: &Turn<'_>, env: &EnvMap) -> Result<CommandSpec> {
        (self.command)(&self.memory, turn, env, self.inner.command(turn, env))
    }
    fn new_id(&self, random: &str) -> NativeId {
        (self.new_id)(self.inner.new_id(random))
    }
    fn preparations(&self, _: &Turn<'_>, _: &EnvMap) -> Result<Vec<CommandSpec>> {
        Ok(Vec::new())
    }
    fn decoder(&self, turn: &Turn<'_>) -> Box<dyn Decoder> {
        (self.decoder)(&self.memory, turn, self.inner.decoder(turn))
    }
    fn classify(&self, evidence: &Evidence) -> Verdict {
        (self.classify)(evidence, self.inner.classify(evidence))
    }
    fn sandboxed_state(&self, state_dir: &Path, env: &EnvMap, version: Option<&Version>) -> StateLayout {
        (self.sandboxed)(self.state(Some(state_dir), env, version))
    }
    fn state(&self, state_dir: Option<&Path>, env: &EnvMap, version: Option<&Version>) -> StateLayout {
        (self.state)(state_dir, self.inner.state(state_dir, env, version))
    }
}

fn subject(dialect: Broken) -> Subject {
    Subject::new(dialect, env!("CARGO_MANIFEST_DIR"))
        .fixtures("tests/fixtures")
        .versions(&["0.9.0"])
        .divided_by(16)
}

/// A mutant: what is wrong with it, the case that is meant to catch it, and the change.
type Mutant = (&'static str, &'static str, fn(&mut Broken));

#[test]
fn the_sample_holds_the_contract() {
    assert_eq!(failures(DIALECT_CASES, &subject(sound())), [""; 0]);
}

#[test]
fn every_broken_dialect_is_caught() {
    let mutants = [
        commands::COMMANDS,
        commands::PROMPTS,
        claims::STATE,
        stream::STREAM,
        stream::VERDICTS,
        claims::CLAIMS,
    ]
    .concat();
    let outcomes: Vec<_> = mutants
        .iter()
        .map(|(mutant, meant, change)| {
            let mut broken = sound();
            change(&mut broken);
            let caught = failures(DIALECT_CASES, &subject(broken));
            Outcome { mutant: (*mutant).to_owned(), meant, caught }
        })
        .collect();
    let cases: Vec<_> = DIALECT_CASES.iter().map(|case| case.name()).collect();
    compare("Dialects", &outcomes, &cases);
}
