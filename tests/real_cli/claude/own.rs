//! What only Claude Code has: ids that the caller chooses, and a home of its own in the user's.

use rejoin::core::decide::{Activity, Verdict};
use rejoin::core::{Mode, NoSink, RunId, Turn};
use rejoin::history::SessionsQuery;
use rejoin::{
    Cancel, Limits, RecipePart, RecipeSeed, SessionStore as _, SummaryBy, SummaryRequest, SummarySource,
};
use rejoin_test_support::ContextReply;
use rejoin_test_support::fake_model::ModelRequest;

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

/// What a recipe says goes with every run, also where it changed since.
pub(super) async fn what_a_recipe_says_reaches_the_model(cli: &Pinned) {
    let stage = Stage::new(cli);
    let lists = cli.at_least([2, 1, 197]);
    for (prompt, says) in [("alpha", "the rule of seven"), ("beta", "-the rule\nof eight")] {
        let mut seed = RecipeSeed::new("recipes/fix", "1");
        seed.system_prompt = Some(says.to_owned());
        seed.tools = Some(vec!["Read".to_owned()]);
        let result = stage.lifecycle(true).run(stage.request(prompt).seed(seed)).await.unwrap();
        let restored = result.recipe.unwrap().restored;
        assert_eq!(restored.contains(&RecipePart::Tools), lists);
        let last = stage.model.requests().into_iter().rfind(ModelRequest::is_turn).unwrap();
        let words = serde_json::to_string(says).unwrap();
        assert!(last.system.contains(words.trim_matches('"')), "{says:?} in {}", last.system);
        // 2.1.332 offers one of its own beside those of the list.
        let more = usize::from(cli.at_least([2, 1, 332]));
        assert_eq!(last.tools == 1 + more, lists, "{}", last.tools);
    }
    assert_eq!(stage.turns(), 2);
}

/// BR-083: lists show no more than before, and the session goes on as if nobody had asked.
pub(super) async fn a_summary_by_the_agent_leaves_no_session(cli: &Pinned) {
    let stage = Stage::new(cli);
    stage.run("alpha").await.unwrap();
    stage.run("beta").await.unwrap();
    let before = (stage.record().await, stage.lifecycle(true).list(&SessionsQuery::default()).await.unwrap());
    let request = SummaryRequest::new(stage.key()).by(SummaryBy::Agent);
    let summary = stage.lifecycle(true).summarise(&request).await.unwrap();
    let SummarySource::Agent { without_tools, used_tools, .. } = summary.source else {
        panic!("{summary:?}")
    };
    assert_eq!((without_tools, used_tools), (cli.at_least([2, 1, 197]), false));
    assert!(summary.text.contains("\"user_turns\":3"), "two turns and the question: {}", summary.text);
    let asked = |request: &ModelRequest| {
        request.user_texts.last().is_some_and(|text| text.starts_with("Summarise this conversation"))
    };
    let question = stage.model.requests().into_iter().rfind(asked).unwrap();
    assert_eq!(question.tools == 0, without_tools, "{}", question.tools);
    let after = (stage.record().await, stage.lifecycle(true).list(&SessionsQuery::default()).await.unwrap());
    assert_eq!(after, before);
    let third = stage.run("gamma").await.unwrap();
    assert_eq!(ContextReply::parse(&third.text).unwrap().user_turns, 3);
}
