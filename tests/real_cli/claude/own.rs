//! What only Claude Code has: ids that the caller chooses, and a home of its own in the user's.

use rejoin::core::decide::{Activity, Verdict};
use rejoin::core::{Mode, NoSink, RunId, Turn};
use rejoin::{Cancel, Limits, SessionStore as _};

use super::transcript;
use crate::begun::Begun;
use crate::pinned::Pinned;
use crate::stage::Stage;

pub(super) async fn the_state_dir_holds_the_session_and_the_home_does_not(cli: &Pinned) {
    let stage = Stage::new(cli);
    let user = stage.place.home().join(".claude");
    std::fs::create_dir_all(&user).unwrap();
    let settings = r#"{"env":{"REJOIN_PROBE":"from the user's settings"}}"#;
    std::fs::write(user.join("settings.json"), settings).unwrap();
    let first = stage.run("alpha").await.unwrap();
    let transcript = transcript(&stage.place, &first.session_id.unwrap());
    assert!(transcript.starts_with(stage.place.store().join(".agent-sessions/state")), "{transcript:?}");
    assert!(!user.join("projects").exists(), "the home has no part in it");
    assert_eq!(std::fs::read_to_string(user.join("settings.json")).unwrap(), settings);
}

/// The orchestration never chooses an id twice, so this asks the adapter itself.
pub(super) async fn id_in_use(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let id = stage.last().session_id.clone().unwrap();
    let kept = stage.kept(&id);
    let state_dir = stage.store().state_dir(&stage.key()).await.unwrap().unwrap();
    let agent = stage.agent();
    let installation = agent.adapter().detect().await.unwrap();
    let before = stage.turns();
    let turn = Turn {
        run: RunId::new(uuid::Uuid::new_v4()),
        prompt: "beta",
        cwd: &stage.place.project(),
        mode: Mode::Fresh { id: Some(&id) },
        name: None,
        model: None,
        recipe: rejoin::core::TurnRecipe::default(),
        state_dir: Some(&state_dir),
        installation: &installation,
        limits: &Limits::default(),
        cancel: &Cancel::new(),
    };
    let report = agent.adapter().run(turn, &mut NoSink).await.unwrap();
    assert_ne!(report.verdict, Verdict::Completed);
    assert_ne!(report.verdict, Verdict::Missing, "it is not missing: it is there");
    assert_eq!(report.evidence.observation.activity(), Activity::None);
    assert_eq!(stage.turns(), before);
    assert_eq!(stage.kept(&id), kept);
}
