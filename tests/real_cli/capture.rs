//! Records fixtures: each trial runs the adapter once through the recorder, rewrites what the CLI
//! printed, and keeps it with the adapter's own verdict. The format is told at `rejoin_test_support::fixture`.
//!
//! The verdict in `meta.json` is what the adapter says today. A difference after a capture is a thing to look at, not to
//! commit unread.

mod runs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use rejoin::core::{Installation, Mode, NoSink, Program, RunId, Turn, TurnReport};
use rejoin::process::Environment;
use rejoin::{Agent, Cancel, Limits, NativeId, SessionStore as _};
use rejoin_test_support::fixture::{FILES, Meta, Rewriter, shortened};
use rejoin_test_support::recorder::{self, Call};

use crate::agents::{Damage, Fault, Place};
use crate::pinned::Pinned;
use crate::scenarios::trial;
use crate::stage::Stage;
use crate::trial;

/// Set by `cargo xtask capture`.
const CAPTURE: &str = "REJOIN_CAPTURE";

/// Whether this is a run that records.
pub(crate) fn wanted() -> bool {
    std::env::var_os(CAPTURE).is_some()
}

/// One trial for each fixture of a version.
pub(crate) fn trials(cli: &Pinned) -> Vec<Trial> {
    let rules = cli.under_test().rules(cli);
    let mut trials = vec![
        trial!(cli, runs::fresh),
        trial!(cli, runs::resume),
        trial!(cli, runs::resume_unknown),
        trial!(cli, runs::tool_run),
        trial!(cli, runs::killed_in_model_call),
        trial!(cli, runs::killed_in_tool),
        trial!(cli, runs::terminated_in_tool),
        trial!(cli, runs::interrupted_in_model_call),
        trial!(cli, runs::cancelled_in_tool),
        trial!(cli, runs::connection_refused),
    ];
    if rules.forks {
        trials.extend([trial!(cli, runs::fork), trial!(cli, runs::fork_unknown)]);
    }
    if cli.under_test().logged_out(Environment::bare()).is_some() {
        trials.push(trial!(cli, runs::no_login));
    }
    for (damage, ..) in rules.damages.into_iter().filter(|(damage, ..)| *damage != Damage::UnknownId) {
        let name = damage.fixture();
        trials.push(trial(cli, &name.clone(), move |cli| {
            Box::pin(async move { runs::resume_damaged(&cli, &name, damage).await })
        }));
    }
    let statuses = [400, 401, 403, 404, 413, 429, 500, 529].map(Fault::Status);
    for fault in statuses.into_iter().chain([Fault::Dropped, Fault::Cut]) {
        let known = rules.faults.iter().find(|(known, _)| *known == fault);
        let limits = known.map_or_else(at_most, |(_, end)| end.limits());
        let name = match fault {
            Fault::Status(status) => format!("error-{status}"),
            Fault::Dropped => "stream-dropped".to_owned(),
            Fault::Cut => "stream-cut".to_owned(),
        };
        trials.push(trial(cli, &name.clone(), move |cli| {
            Box::pin(async move { runs::with_fault(&cli, &name, fault, &limits).await })
        }));
    }
    trials
}

/// The limits of a run of which nobody knows that it ends.
fn at_most() -> Limits {
    let mut limits = Limits::default();
    limits.total = Duration::from_secs(45);
    limits
}

/// A stage whose CLI is recorded.
struct Recording {
    stage: Stage,
    agent: Agent,
    installation: Installation,
    state_dir: PathBuf,
    calls: PathBuf,
}

impl Recording {
    async fn new(cli: &Pinned) -> Self {
        Self::of(Stage::new(cli), Place::clone, Some).await
    }

    /// With another place or another environment than the stage has.
    async fn of(
        stage: Stage,
        place: impl FnOnce(&Place) -> Place,
        environment: impl FnOnce(Environment) -> Option<Environment>,
    ) -> Self {
        let calls = stage.place.root.join("calls");
        std::fs::create_dir(&calls).unwrap();
        let under_test = stage.cli.under_test();
        let place = place(&stage.place);
        under_test.prepare(&place);
        let environment = environment(under_test.environment(&place, place.bare(&stage.cli))).unwrap();
        let recorded = recorder::leading_args(&stage.cli.program, &calls)
            .into_iter()
            .fold(Program::new(std::env::current_exe().unwrap()), Program::leading_arg);
        let agent = under_test.agent(recorded, environment);
        let installation = agent.adapter().detect().await.unwrap();
        let state_dir = stage.store().state_dir(&stage.key()).await.unwrap().unwrap();
        Self { stage, agent, installation, state_dir, calls }
    }

    async fn run(&self, mode: Mode<'_>, prompt: &str, limits: &Limits, cancel: &Cancel) -> TurnReport {
        self.run_in(&self.state_dir, mode, prompt, limits, cancel).await
    }

    async fn run_in(
        &self,
        state_dir: &Path,
        mode: Mode<'_>,
        prompt: &str,
        limits: &Limits,
        cancel: &Cancel,
    ) -> TurnReport {
        let turn = Turn {
            run: RunId::new(uuid::Uuid::new_v4()),
            prompt,
            cwd: &self.stage.place.project(),
            mode,
            name: None,
            model: None,
            recipe: rejoin::core::TurnRecipe::default(),
            state_dir: Some(state_dir),
            installation: &self.installation,
            limits,
            cancel,
        };
        self.agent.adapter().run(turn, &mut NoSink).await.unwrap()
    }

    /// An id for a new session, where the caller chooses it.
    fn new_id(&self, chosen: bool) -> Option<NativeId> {
        chosen.then(|| self.agent.adapter().new_id(&uuid::Uuid::new_v4().to_string()))
    }

    /// A new session.
    async fn fresh(&self, prompt: &str) -> TurnReport {
        self.fresh_with(prompt, &Limits::default(), &Cancel::new()).await
    }

    async fn fresh_with(&self, prompt: &str, limits: &Limits, cancel: &Cancel) -> TurnReport {
        let id = self.new_id(self.installation.capabilities.caller_chosen_id);
        self.run(Mode::Fresh { id: id.as_ref() }, prompt, limits, cancel).await
    }

    /// A new session that went well.
    async fn begun(&self) -> NativeId {
        let report = self.fresh("alpha").await;
        report.evidence.observation.session.unwrap_or_else(|| panic!("{:?}", report.verdict))
    }

    /// Writes the last run as a fixture of this name.
    fn keep(&self, name: &str, report: &TurnReport) {
        let call = Call::last(&self.calls).unwrap();
        let (cli, place) = (&self.stage.cli, &self.stage.place);
        let mut rewriter = Rewriter::default();
        rewriter.path(&place.home(), "/home/user");
        rewriter.path(&place.root, "/home/user");
        // The folder of its installation, from the program in `node_modules/.bin`.
        rewriter.path(cli.program.ancestors().nth(3).unwrap(), "/home/user/cli");
        rewriter.keep_as_it_is(self.stage.rules.unknown_id);
        let evidence = &report.evidence;
        // What was asked is named first, so that the numbers of ids do not depend on what the CLI prints.
        let asked = rewriter.json(&serde_json::to_value(&evidence.asked).unwrap());
        let meta = Meta {
            version: self.installation.version.as_ref().unwrap().text.clone(),
            asked,
            exit: serde_json::to_value(evidence.exit).unwrap(),
            ended_by: serde_json::to_value(evidence.ended_by).unwrap(),
            args: call.args.iter().map(|arg| shortened(&rewriter.text(arg))).collect(),
            verdict: report.verdict.name().to_owned(),
            activity: evidence.observation.activity().name().to_owned(),
            session: evidence.observation.session.as_ref().map(|id| rewriter.text(id.as_str())),
        };
        let texts = [
            rewriter.lines(&String::from_utf8_lossy(&call.stdout)),
            rewriter.lines(&String::from_utf8_lossy(&call.stderr)),
            meta.to_text(),
        ];
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../adapter-{}/fixtures/{}/{name}", cli.agent, cli.version));
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in FILES.iter().zip(texts) {
            std::fs::write(folder.join(file), text).unwrap();
        }
    }
}
