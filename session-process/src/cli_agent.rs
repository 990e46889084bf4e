//! A command-line agent, run as its dialect says.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use session_core::decide::Verdict;
use session_core::error::{AgentError, AgentErrorKind, BoxError};
use session_core::{
    AgentAdapter, AgentEvent, AgentId, Asked, CliDialect, CommandSpec, Decoder, Ended, EndedBy, EventSink,
    Evidence, Exit, Installation, Mode, MountPlan, NativeId, Observation, RunId, StateLayout, Turn,
    TurnReport, async_trait,
};
use tokio::sync::Mutex;
use tracing::Instrument;

use crate::error::SandboxError;
use crate::grounds::Grounds;
use crate::launch::Launch;
use crate::lines::Piece;
use crate::plan::Ask;
use crate::pump::{Job, Outcome, pump};
use crate::{Environment, Invocation, Launcher, links, locate, original, probe, tree};

const MAX_LINE: usize = 64 * 1024 * 1024;

/// Runs a [`CliDialect`] as an [`AgentAdapter`].
///
/// Needs a tokio runtime with its I/O and time drivers.
#[derive(Debug)]
pub struct CliAgent<D> {
    dialect: D,
    environment: Environment,
    max_line: usize,
    launcher: Option<Arc<dyn Launcher>>,
    installed: Mutex<Option<(probe::Stamp, Installation)>>,
}

impl<D: CliDialect> CliAgent<D> {
    /// An agent that speaks this dialect, with the environment that this process has now.
    pub fn new(dialect: D) -> Self {
        Self {
            dialect,
            environment: Environment::inherited(),
            max_line: MAX_LINE,
            launcher: None,
            installed: Mutex::new(None),
        }
    }

    /// The environment that the agent starts from.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// The longest line of output that is looked at, in bytes; default 64 MiB. Of a longer one, only the
    /// beginning is passed on, as [`AgentEvent::Noise`]. Memory for a line is taken as it comes.
    #[must_use]
    pub const fn max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// Has the agent's commands started by a launcher, each in a sandbox of the plan that
    /// [`mount_plan`](AgentAdapter::mount_plan) makes. A run without a state dir is then an error.
    #[must_use]
    pub fn launcher(mut self, launcher: impl Launcher) -> Self {
        self.launcher = Some(Arc::new(launcher));
        self
    }

    /// The dialect.
    #[must_use]
    pub const fn dialect(&self) -> &D {
        &self.dialect
    }

    async fn attempt(&self, turn: Turn<'_>, sink: &mut dyn EventSink) -> Result<TurnReport, AgentError> {
        let evidence = |observation, outcome: Outcome| Evidence {
            asked: asked(turn.mode),
            version: turn.installation.version.as_ref().map(|version| version.text.clone()),
            exit: outcome.exit,
            ended_by: outcome.ended_by,
            stderr_tail: outcome.stderr_tail,
            observation,
            leftovers_ended: outcome.leftovers,
        };
        if turn.cancel.is_cancelled() {
            let outcome = Outcome {
                exit: Exit::Unknown,
                ended_by: Some(EndedBy::Cancel),
                stderr_tail: String::new(),
                leftovers: 0,
            };
            let evidence = evidence(Observation::default(), outcome);
            return Ok(TurnReport { verdict: Verdict::Cancelled, evidence });
        }
        let id = self.dialect.id();
        let base = self.environment.map();
        let sandbox = match &self.launcher {
            None => None,
            Some(launcher) => {
                let grounds = self.grounds(turn.cwd, turn.state_dir).await?;
                Some((launcher, self.plan_of(&turn).await?, grounds))
            }
        };
        // Links that lead to the work tree are not there inside.
        let cwd = sandbox.as_ref().map_or(turn.cwd, |(_, plan, _)| plan.cwd());
        let turn = Turn { cwd, ..turn };
        let refused = |error| {
            let mode = match turn.mode {
                Mode::Fresh { .. } => "a new session",
                Mode::Resume { .. } => "a resume",
                Mode::Fork { .. } => "a fork",
            };
            AgentError::new(AgentErrorKind::Command, id.clone(), mode).with_source(error)
        };
        let spec = self.dialect.command(&turn, base).map_err(refused)?;
        let preparations = self.dialect.preparations(&turn, base).map_err(refused)?;
        let layout = self.layout(turn.state_dir, turn.installation, sandbox.is_some());
        let (of, needs, dir) = (id.clone(), layout.clone(), turn.state_dir.map(Path::to_owned));
        let prepared = tokio::task::spawn_blocking(move || links::prepare(&of, dir.as_deref(), &needs)).await;
        prepared.map_err(|error| {
            AgentError::new(AgentErrorKind::State, id.clone(), "its state dir").with_source(error)
        })??;
        let mut env = base.clone();
        layout.env.iter().for_each(|change| env.apply(change));
        let launch = |spec: &CommandSpec| {
            let mut env = env.clone();
            spec.env.iter().for_each(|change| env.apply(change));
            let mut args = self.dialect.program().leading_args;
            args.extend(spec.args.iter().cloned());
            let program = turn.installation.program.clone();
            let mut start = Invocation { program, args, env, cwd: turn.cwd.to_owned() };
            if let Some((launcher, plan, grounds)) = &sandbox {
                start = wrap(id, &***launcher, start, plan, grounds)?;
            }
            let Invocation { program, args, env, cwd } = start;
            let (has_input, is_launcher) = (!spec.stdin.is_empty(), sandbox.is_some());
            Ok(Launch { agent: id, run: turn.run, program, args, env, cwd, has_input, is_launcher })
        };
        let job = |input| Job {
            run: turn.run,
            input,
            max_line: self.max_line,
            limits: turn.limits,
            cancel: turn.cancel,
        };
        for preparation in preparations {
            let child = launch(&preparation)?.start().await?;
            let outcome = pump(child, job(preparation.stdin), &mut |_| false).await;
            if outcome.exit != Exit::Code(0) || outcome.ended_by.is_some() {
                tracing::debug!(exit = ?outcome.exit, said = outcome.stderr_tail, "a preparation failed");
                return Ok(self.report(evidence(Observation::default(), outcome)));
            }
        }
        let child = launch(&spec)?.start().await?;
        tracing::Span::current().record("pid", child.pid);

        let mut fold = Fold {
            decoder: self.dialect.decoder(&turn),
            observation: Observation::default(),
            sink,
            max_line: self.max_line,
        };
        let outcome = pump(child, job(spec.stdin), &mut |piece| fold.take(&piece)).await;
        fold.end(&Ended { exit: outcome.exit, stderr_tail: &outcome.stderr_tail });
        let report = self.report(evidence(fold.observation, outcome));
        let TurnReport { verdict, evidence } = &report;
        tracing::debug!(?verdict, exit = ?evidence.exit, ended_by = ?evidence.ended_by, "the agent ended");
        Ok(report)
    }

    fn layout(&self, state_dir: Option<&Path>, found: &Installation, sandboxed: bool) -> StateLayout {
        let (env, version) = (self.environment.map(), found.version.as_ref());
        match state_dir.filter(|_| sandboxed) {
            Some(state_dir) => self.dialect.sandboxed_state(state_dir, env, version),
            None => self.dialect.state(state_dir, env, version),
        }
    }

    /// The plan for this turn: that of its key, with the original where one is forked.
    async fn plan_of(&self, turn: &Turn<'_>) -> Result<MountPlan, AgentError> {
        let plan = self.plan(turn.cwd, turn.state_dir, turn.installation).await?;
        let Mode::Fork { transcript: Some(file), .. } = turn.mode else { return Ok(plan) };
        if self.layout(turn.state_dir, turn.installation, true).writes_original {
            return Err(
                self.no_sandbox(turn.cwd, SandboxError::Original { original: file.to_owned() }.into())
            );
        }
        Ok(original::mounts(file).into_iter().fold(plan, MountPlan::show))
    }

    async fn plan(
        &self,
        cwd: &Path,
        state_dir: Option<&Path>,
        found: &Installation,
    ) -> Result<MountPlan, AgentError> {
        let ask = Ask {
            program: found.program.clone(),
            leading_args: self.dialect.program().leading_args,
            env: self.environment.map().clone(),
            layout: self.layout(state_dir, found, true),
            cwd: cwd.to_owned(),
            state_dir: state_dir.map(Path::to_owned),
        };
        let failed = |source| self.no_sandbox(cwd, source);
        let planned = tokio::task::spawn_blocking(move || ask.plan()).await;
        planned.map_err(|error| failed(error.into()))?.map_err(|error| failed(error.into()))
    }

    /// Where the agent writes in a sandbox.
    async fn grounds(&self, cwd: &Path, state_dir: Option<&Path>) -> Result<Grounds, AgentError> {
        let (folder, state_dir) = (cwd.to_owned(), state_dir.map(Path::to_owned));
        let found = tokio::task::spawn_blocking(move || Grounds::of(&folder, state_dir.as_deref())).await;
        found.map_err(|error| self.no_sandbox(cwd, error.into()))
    }

    /// The answer is kept as long as the program's file, and files among its leading arguments, stay as they are.
    async fn find(&self, grounds: &Grounds) -> Result<Installation, AgentError> {
        let program = self.dialect.program();
        let env = grounds.outside(self.environment.map());
        // Held while asking: one probe answers for all that wait for it.
        let mut installed = self.installed.lock().await;
        let path = locate::locate(self.dialect.id(), &program.program, &env)?;
        grounds.refuse(std::iter::once(&*path).chain(files(&program.leading_args))).map_err(|error| {
            let (id, what) = (self.dialect.id().clone(), path.display().to_string());
            AgentError::new(AgentErrorKind::Sandbox, id, what).with_source(error)
        })?;
        let stamp = probe::Stamp::of(&path, &program.leading_args);
        if let Some((known, installation)) = &*installed
            && *known == stamp
        {
            return Ok(installation.clone());
        }
        let version = probe::version(&self.dialect, &env, &path, program.leading_args).await?;
        tracing::debug!(agent = %self.dialect.id(), program = %path.display(), %version, "found");
        let capabilities = self.dialect.capabilities(Some(&version));
        let installation = Installation { program: path, version: Some(version), capabilities };
        *installed = Some((stamp, installation.clone()));
        Ok(installation)
    }

    fn no_sandbox(&self, cwd: &Path, source: BoxError) -> AgentError {
        let what = format!("a run in {}", cwd.display());
        AgentError::new(AgentErrorKind::Sandbox, self.dialect.id().clone(), what).with_source(source)
    }

    fn report(&self, evidence: Evidence) -> TurnReport {
        TurnReport { verdict: self.verdict(&evidence), evidence }
    }

    /// Who ended the process without having heard the agent's own end knows the verdict; all else is the
    /// dialect's to say.
    fn verdict(&self, evidence: &Evidence) -> Verdict {
        match evidence.ended_by {
            Some(EndedBy::StartLimit | EndedBy::IdleLimit | EndedBy::TotalLimit)
                if evidence.observation.end.is_none() =>
            {
                Verdict::TimedOut
            }
            Some(EndedBy::Cancel) if evidence.observation.end.is_none() => Verdict::Cancelled,
            _ => self.dialect.classify(evidence),
        }
    }
}

/// The launcher's process in place of the agent's, found as the agent's own program is.
fn wrap(
    id: &AgentId,
    launcher: &dyn Launcher,
    command: Invocation,
    plan: &MountPlan,
    grounds: &Grounds,
) -> Result<Invocation, AgentError> {
    let what = command.program.display().to_string();
    let refused = |source| AgentError::new(AgentErrorKind::Sandbox, id.clone(), &*what).with_source(source);
    let mut start = launcher.wrap(command, plan).map_err(refused)?;
    start.program = locate::locate(id, &start.program, &grounds.outside(&start.env))?;
    grounds.refuse([&*start.program]).map_err(|error| refused(error.into()))?;
    Ok(start)
}

/// The files that an interpreter is told to run.
pub(crate) fn files(leading_args: &[OsString]) -> impl Iterator<Item = &Path> {
    leading_args.iter().map(Path::new).filter(|path| path.is_absolute() && path.is_file())
}

fn asked(mode: Mode<'_>) -> Asked {
    match mode {
        Mode::Fresh { id } => Asked::Fresh(id.cloned()),
        Mode::Resume { id } => Asked::Resume(id.clone()),
        Mode::Fork { source, .. } => Asked::Fork(source.clone()),
    }
}

/// Lines to events, to what is known of the attempt and to the caller.
struct Fold<'a> {
    decoder: Box<dyn Decoder>,
    observation: Observation,
    sink: &'a mut dyn EventSink,
    max_line: usize,
}

impl Fold<'_> {
    /// Lets the decoder say what only the end of the output tells.
    fn end(&mut self, ended: &Ended<'_>) {
        let (observation, sink) = (&mut self.observation, &mut *self.sink);
        self.decoder.end(ended, &mut |event| {
            observation.observe(event);
            sink.event(event);
        });
    }

    /// Says whether the agent said that it is done.
    fn take(&mut self, piece: &Piece<'_>) -> bool {
        let mut finished = false;
        let (observation, sink) = (&mut self.observation, &mut *self.sink);
        let mut emit = |event: &AgentEvent<'_>| {
            observation.observe(event);
            finished |= matches!(event, AgentEvent::Finished(_));
            sink.event(event);
        };
        match piece {
            Piece::Line(line) => self.decoder.line(line, &mut emit),
            Piece::Cut(head) => {
                tracing::warn!(limit = self.max_line, "a line of output is longer than the limit");
                let head = String::from_utf8_lossy(head);
                let line = format!("[a line of more than {} bytes, left out] {head}", self.max_line);
                emit(&AgentEvent::Noise { line: &line });
            }
        }
        finished
    }
}

#[async_trait]
impl<D: CliDialect> AgentAdapter for CliAgent<D> {
    fn id(&self) -> &AgentId {
        self.dialect.id()
    }

    fn accepts_id(&self, id: &NativeId) -> bool {
        self.dialect.accepts_id(id)
    }

    fn new_id(&self, random: &str) -> NativeId {
        self.dialect.new_id(random)
    }

    async fn detect(&self) -> Result<Installation, AgentError> {
        self.find(&Grounds::NONE).await
    }

    /// With a launcher, nothing is looked up, and nothing started, that lies in this folder or is reached through it.
    async fn detect_in(&self, cwd: &Path) -> Result<Installation, AgentError> {
        match self.launcher {
            Some(_) => self.find(&self.grounds(cwd, None).await?).await,
            None => self.detect().await,
        }
    }

    /// See the guide on sandboxes for what is in it and why.
    async fn mount_plan(&self, cwd: &Path, state_dir: Option<&Path>) -> Result<MountPlan, AgentError> {
        let found = self.find(&self.grounds(cwd, state_dir).await?).await?;
        self.plan(cwd, state_dir, &found).await
    }

    async fn run(&self, turn: Turn<'_>, sink: &mut dyn EventSink) -> Result<TurnReport, AgentError> {
        let program = turn.installation.program.display();
        let span = tracing::debug_span!("attempt", agent = %self.dialect.id(), run = %turn.run, %program,
            pid = tracing::field::Empty);
        self.attempt(turn, sink).instrument(span).await
    }

    /// Where processes cannot be looked at (other systems than Linux), nothing is found.
    ///
    /// # Cancel safety
    /// Dropping the future ends the waiting; what was found has been asked to end, not killed.
    async fn reap(&self, run: RunId) -> u32 {
        tree::reap(run).await
    }
}
