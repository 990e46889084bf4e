//! Going back: what the agent's own tool and its shell did is taken back, and the CLI goes on with the turns that are kept, and
//! with nothing else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin::core::Lifecycle;
use rejoin::{
    Apart, Change, ConversationDone, ConversationPlan, ForkRequest, LeftOutWhy, LlmRequest, LlmResult,
    Moment, NativeId, RewindMode, RewindOutcome, RewindRequest, RewindTo, Rewound, Route, SessionKey,
    SessionRef, Warning, Why,
};

use crate::begun::Begun;
use crate::pinned::Pinned;
use crate::runner;
use crate::stage::{PATIENCE, Stage};
use crate::workshop::{BY_SHELL, BY_TOOL, CHANGED, IGNORED, Picture, TRACKED, set_trap, sprung};

/// A word in the prompt of a run that is killed.
const KILLED: &str = "wombat";

fn now(stage: &Stage) -> Picture {
    Picture::of(&stage.place.project())
}

fn back(stage: &Stage, turns: u32, mode: RewindMode) -> RewindRequest {
    RewindRequest::new(stage.key(), stage.place.project()).to(RewindTo::Turns(turns)).mode(mode)
}

fn paths(changes: &[Change]) -> Vec<PathBuf> {
    changes.iter().map(|change| change.path.clone()).collect()
}

/// The paths of the second and the third turn.
fn changed() -> Vec<PathBuf> {
    CHANGED.map(PathBuf::from).to_vec()
}

/// Does something to the files of the project, and holds it to leaving alone what is git's, what git would run, and what is
/// ignored. Nothing of the CLI runs meanwhile, or it is frozen: CLIs start git, too.
async fn without_git<T>(stage: &Stage, act: impl Future<Output = T>) -> T {
    assert_eq!(stage.awake(), [0; 0], "nothing else writes");
    let before = now(stage);
    let came_to = untrapped(stage, act).await;
    let after = now(stage);
    assert_eq!(
        after.of_git().differing(&before.of_git()),
        Vec::<PathBuf>::new(),
        "what is git's is as it was"
    );
    assert_eq!(after.content(IGNORED), before.content(IGNORED), "what is ignored is as it was");
    came_to
}

/// The same, of what git would run alone.
async fn untrapped<T>(stage: &Stage, act: impl Future<Output = T>) -> T {
    set_trap(stage);
    let came_to = act.await;
    assert_eq!(sprung(stage), [""; 0], "neither a hook nor a filter ran");
    came_to
}

async fn rewind(stage: &Stage, wish: &RewindRequest) -> Rewound {
    let rewound = without_git(stage, async { stage.checkpointed().rewind(wish).await.unwrap() }).await;
    assert_eq!(rewound.outcome, RewindOutcome::Done, "{rewound:?}");
    assert!(rewound.recorded.is_saved());
    assert_eq!(rewound.warnings, []);
    rewound
}

async fn undo(stage: &Stage) -> Rewound {
    let undone = without_git(stage, async {
        stage.checkpointed().undo(&stage.key(), &stage.place.project()).await.unwrap()
    });
    let undone = undone.await;
    assert_eq!(undone.outcome, RewindOutcome::Done, "{undone:?}");
    undone
}

/// Holds the files to what they were after so many turns.
fn assert_files_of(stage: &Begun, turns: usize) {
    let differing = now(stage).covered().differing(&stage.picture(turns).covered());
    assert_eq!(differing, Vec::<PathBuf>::new(), "byte for byte and mode for mode as after turn {turns}");
}

/// Runs this, and holds the model to having seen these prompts and it, and of those that were dropped nothing in any place.
async fn goes_on(
    stage: &Stage,
    lifecycle: &Lifecycle,
    (scenario, request, prompt): (&str, LlmRequest, &str),
    kept: &[String],
    dropped: &[&str],
) -> LlmResult {
    stage.model.clear();
    let result = stage.row_of(lifecycle, scenario, request).await.unwrap();
    let seen: Vec<_> = kept.iter().map(String::as_str).chain([prompt]).collect();
    let requests = stage.model.requests();
    let mut turns = requests.iter().filter(|request| request.is_turn()).peekable();
    assert!(turns.peek().is_some(), "{scenario}: the model was asked");
    for turn in turns {
        assert_eq!(turn.user_texts, seen, "{scenario}");
        for word in [BY_TOOL, BY_SHELL] {
            let is_kept = kept.iter().any(|prompt| prompt.contains(word));
            assert_eq!(turn.body.contains(word), is_kept, "{scenario}: {word}");
        }
    }
    // A title of the session before is asked for beside the conversation.
    let heard = requests.iter().filter(|request| request.is_turn() || !stage.rules.titles_other_sessions);
    for (request, word) in heard.flat_map(|request| dropped.iter().map(move |word| (request, word))) {
        assert!(!request.body.contains(word), "{scenario}: {word} is dropped: {}", request.body);
    }
    result
}

/// The same in the mailbox of the stage, which goes on in this session.
async fn goes_on_in(
    stage: &Stage,
    session: &NativeId,
    (scenario, prompt): (&str, &str),
    kept: &[String],
    dropped: &[&str],
) {
    let ask = (scenario, stage.request(prompt), prompt);
    let result = goes_on(stage, &stage.checkpointed(), ask, kept, dropped).await;
    assert_eq!((result.route, result.session_id.as_ref()), (Route::Resumed, Some(session)), "{scenario}");
    let of_checkpoints =
        |warning: &&Warning| matches!(warning, Warning::NotCheckpointed(_) | Warning::RewindRecovered(_));
    assert_eq!(result.warnings.iter().find(of_checkpoints), None, "{scenario}");
}

/// Both are foreseen, and taken back; then the CLI goes on. What it did then is taken back by an undo, too.
pub(super) async fn files_by_tool_and_by_shell(cli: &Pinned) {
    let stage = Begun::work(cli).await;
    let did = stage.picture(1).covered().differing(&stage.picture(3).covered());
    assert_eq!(did, changed(), "the CLI did it");
    assert_ne!(stage.picture(1).content(IGNORED), stage.picture(3).content(IGNORED));
    let original = stage.bound().await;
    let kept = stage.kept(&original);
    let wish = back(&stage, 2, RewindMode::Both);

    let preview =
        without_git(&stage, async { stage.checkpointed().foresee_rewind(&wish).await.unwrap() }).await;
    assert_eq!(paths(&preview.files.restore), changed());
    assert_eq!((preview.files.conflicts.len(), preview.files.left_alone.len()), (0, 0), "{preview:?}");
    let dropped = preview.dropped.iter().map(|prompted| prompted.prompt.as_deref().unwrap());
    let words = dropped.map(|prompt| prompt.split(' ').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(words, [BY_TOOL, BY_SHELL]);
    let plan = ConversationPlan::Branch { of: original.clone(), keep: 1 };
    assert_eq!((&preview.conversation, preview.apart), (&plan, None));
    let ignored = preview.not_covered.iter().find(|left| left.path.to_string() == IGNORED);
    assert_eq!(ignored.map(|left| left.why), Some(LeftOutWhy::Ignored), "{:?}", preview.not_covered);
    assert_files_of(&stage, 3);

    let rewound = rewind(&stage, &wish).await;
    assert_files_of(&stage, 1);
    assert_eq!(rewound.files.restored, changed());
    let ConversationDone::Branched { session, of, kept: turns } = &rewound.conversation else {
        panic!("{rewound:?}")
    };
    assert_eq!((of, *turns, rewound.session_after.as_ref()), (&original, 1, Some(session)));
    let prompts = stage.prompts();
    goes_on_in(&stage, session, ("rewind, then run", "delta"), &prompts[..1], &[BY_TOOL, BY_SHELL]).await;
    assert_files_of(&stage, 1);
    assert_eq!(stage.kept(&original), kept, "the original is untouched");

    let undone = undo(&stage).await;
    assert_files_of(&stage, 3);
    assert_eq!(undone.session_after, Some(original));

    // So that the trap is one: git runs both.
    set_trap(&stage);
    stage.git(&["add", "."]);
    assert_ne!(sprung(&stage), [""; 0]);
}

/// An undo gives files and session back, and so does the undo of it.
pub(super) async fn undone(cli: &Pinned) {
    let stage = Begun::work(cli).await;
    let original = stage.bound().await;
    let rewound = rewind(&stage, &back(&stage, 2, RewindMode::Both)).await;
    let branch = rewound.session_after.unwrap();
    for _ in 0..2 {
        let undone = undo(&stage).await;
        assert_files_of(&stage, 3);
        assert_eq!((undone.session_after.as_ref(), undone.regained.len()), (Some(&original), 2));
        let again = undo(&stage).await;
        assert_files_of(&stage, 1);
        assert_eq!((again.session_after.as_ref(), again.dropped.len()), (Some(&branch), 2));
    }
    let _ = undo(&stage).await;
    goes_on_in(&stage, &original, ("rewind undone, then run", "delta"), stage.prompts(), &[]).await;
    assert_files_of(&stage, 3);
}

/// The conversation goes back, and the files stay.
pub(super) async fn conversation_alone(cli: &Pinned) {
    let stage = Begun::work(cli).await;
    let rewound = rewind(&stage, &back(&stage, 2, RewindMode::Conversation)).await;
    assert_files_of(&stage, 3);
    assert_eq!(rewound.apart, Some(Apart::FilesStay { paths: CHANGED.len() }));
    assert_eq!(rewound.files.restored, Vec::<PathBuf>::new());
    let (branch, kept) = (rewound.session_after.unwrap(), &stage.prompts()[..1]);
    let row = ("rewind of the conversation, then run", "delta");
    goes_on_in(&stage, &branch, row, kept, &[BY_TOOL, BY_SHELL]).await;
    assert_files_of(&stage, 3);
}

/// The files go back, and the conversation goes on.
pub(super) async fn files_alone(cli: &Pinned) {
    let stage = Begun::work(cli).await;
    let original = stage.bound().await;
    let rewound = rewind(&stage, &back(&stage, 2, RewindMode::Files)).await;
    assert_files_of(&stage, 1);
    assert_eq!(rewound.apart, Some(Apart::ConversationStays { prompts: 2, lacks: 0 }));
    assert_eq!(rewound.conversation, ConversationDone::Stays);
    goes_on_in(&stage, &original, ("rewind of the files, then run", "delta"), stage.prompts(), &[]).await;
    assert_files_of(&stage, 1);
}

/// The whole and a part of a conversation go on in other mailboxes, and the original in its own.
pub(super) async fn a_fork_keeps_the_original(cli: &Pinned) {
    let stage = Begun::work(cli).await;
    let lifecycle = stage.checkpointed();
    let original = stage.bound().await;
    let kept = stage.kept(&original);
    let checkpoints = lifecycle.checkpoints(&stage.key()).await.unwrap();
    let mut before = checkpoints.iter().filter(|checkpoint| checkpoint.label.moment == Moment::BeforeRun);
    let at = before.nth(1).unwrap().id;
    let prompts = stage.prompts();
    let dropped: &[&str] = &[BY_TOOL, BY_SHELL];
    for (mailbox, at, turns, dropped, row) in [
        ("issue-42-b", None, 3, &[][..], "fork without a run, then run"),
        ("issue-42-c", Some(at), 1, dropped, "fork at a checkpoint, then run"),
    ] {
        let key = SessionKey::new(mailbox, &*cli.agent).unwrap();
        let mut wish = ForkRequest::new(stage.key(), key, stage.place.project());
        if let Some(at) = at {
            wish = wish.at(at);
        }
        let forked = without_git(&stage, async { lifecycle.fork(&wish).await.unwrap() }).await;
        assert_eq!((&forked.of, forked.kept), (&original, turns as u64), "{row}");
        assert_files_of(&stage, 3);
        let session = SessionRef::new(mailbox, &*cli.agent);
        let request = LlmRequest::new("delta").cwd(stage.place.project()).session(session);
        let ask = (row, request, "delta");
        let result = goes_on(&stage, &lifecycle, ask, &prompts[..turns], dropped).await;
        assert_eq!(
            (result.route, result.session_id.as_ref()),
            (Route::Resumed, Some(&forked.session)),
            "{row}"
        );
        assert_eq!(stage.kept(&original), kept, "{row}: the original is untouched");
    }
    goes_on_in(&stage, &original, ("forked from, then run", "epsilon"), prompts, &[]).await;
}

/// A new conversation takes the place of an old one, which can be had again.
pub(super) async fn cleared_and_rejoined(cli: &Pinned) {
    let stage = Begun::alpha_and_beta(cli).await;
    let lifecycle = stage.lifecycle(true);
    let old = stage.bound().await;
    assert_eq!(lifecycle.clear(&stage.key()).await.unwrap().session, Some(old.clone()));
    let ask = ("cleared, then run", stage.request("gamma"), "gamma");
    let result = goes_on(&stage, &lifecycle, ask, &[], &["alpha", "beta"]).await;
    assert_eq!(result.route, Route::Fresh(Why::NoPriorSession));
    let rejoined = lifecycle.rejoin(&stage.key(), &old).await.unwrap();
    assert_eq!((&rejoined.session, rejoined.set_aside), (&old, result.session_id));
    let ask = ("cleared and rejoined, then run", stage.request("delta"), "delta");
    let result = goes_on(&stage, &lifecycle, ask, stage.prompts(), &["gamma"]).await;
    assert_eq!((result.route, result.session_id), (Route::Resumed, Some(old)));
}

/// Waits until the shell wrote this to the end of the file.
async fn until_written(file: &Path, end: &str) {
    let written = async {
        while !std::fs::read(file).unwrap().ends_with(end.as_bytes()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.unwrap();
}

/// What a run did whose runner was killed is taken back, and it is said that the run had no end.
pub(super) async fn a_runner_killed_in_a_run(cli: &Pinned) {
    let stage = Begun::work(cli).await;
    // Agents refuse to sleep.
    let shell = format!(
        "printf 'half\\n' >> {TRACKED}; rm shell.txt; printf 'half\\n' >> script.sh; tail -f /dev/null"
    );
    let prompt = format!("{KILLED} {}", cli.under_test().tool_call(cli, &shell));
    let mut runner = runner::start_with_checkpoints(&stage, &prompt);
    until_written(&stage.place.project().join("script.sh"), "half\n").await;
    runner.kill().unwrap();
    runner.wait().unwrap();
    let run = stage.record().await.in_flight.unwrap().run;
    assert!(!stage.processes().is_empty(), "the shell outlives the runner");

    let wish = back(&stage, 1, RewindMode::Both);
    let lifecycle = stage.checkpointed();
    stage.freeze().await;
    let preview = without_git(&stage, async { lifecycle.foresee_rewind(&wish).await.unwrap() }).await;
    let before = now(&stage);
    stage.thaw();
    assert_eq!(paths(&preview.files.restore), ["script.sh", "shell.txt", TRACKED].map(PathBuf::from));
    assert_eq!(preview.files.unended, [run]);
    // The git of Codex 0.63 goes on until it is ended with the rest: it keeps the files of each turn beside the turn.
    let rewound = untrapped(&stage, async { lifecycle.rewind(&wish).await.unwrap() }).await;
    assert_eq!((&rewound.outcome, &rewound.files.unended), (&RewindOutcome::Done, &vec![run]));
    let reclaimed = |warning: &Warning| matches!(warning, Warning::Reclaimed(ended) if *ended > 0);
    assert!(rewound.warnings.iter().any(reclaimed), "{:?}", rewound.warnings);
    assert_eq!(stage.processes(), [0; 0], "nothing goes on writing");
    let after = now(&stage);
    assert_eq!(after.of_quiet_git(), before.of_quiet_git(), "what is git's is as it was");
    assert_eq!(after.content(IGNORED), before.content(IGNORED), "what is ignored is as it was");
    assert_files_of(&stage, 3);
    let session = rewound.session_after.unwrap();
    let row = ("runner killed, rewound, then run", "delta");
    goes_on_in(&stage, &session, row, stage.prompts(), &[KILLED]).await;
}
