//! Summaries over real files: by text, by the agent in a copy, and what is made with them.

use std::time::Duration;

use rejoin::core::{Agent, AgentId, Document, Guard, Lifecycle, Saved, SessionKey, SessionStore as _, codec};
use rejoin::history::SessionsQuery;
use rejoin::stores::FsStore;
use rejoin::{
    Limits, LlmRequest, NotByAgent, NotRestored, NotRestoredWhy, RecipePart, RecipeSeed, ResumeMode, Route,
    SessionRef, SummaryBy, SummaryRequest, SummarySource, TurnSpan, Why,
};
use rejoin_test_support::ContextReply;
use serde_json::{Value, json};

use crate::stage::*;

const TAG: &str = "<earlier-conversation";

fn of_key() -> SummaryRequest {
    SummaryRequest::new(key())
}

/// The prompts in the session in force that begin with a record.
async fn told(stage: &Stage) -> usize {
    let bound = stage.bound().await.unwrap();
    let file = stage.transcripts().into_iter().find(|path| path.to_string_lossy().contains(&bound)).unwrap();
    let lines = std::fs::read_to_string(file).unwrap();
    let is_told = |line: &&str| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["type"] == "user"
            && record["message"]["content"].as_str().is_some_and(|text| text.starts_with(TAG))
    };
    lines.lines().filter(is_told).count()
}

/// Everything of the key that a summary by its agent has to leave as it is.
async fn everything(stage: &Stage) -> (Vec<(std::path::PathBuf, String)>, usize) {
    let files = stage.transcripts().into_iter();
    let files = files.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
    let listed = stage.lifecycle().list(&SessionsQuery::default()).await.unwrap();
    assert!(listed.is_complete(), "{listed:?}");
    (files, listed.sessions.len())
}

#[tokio::test]
async fn a_summary_is_put_together_from_the_transcript() {
    let stage = Stage::new();
    let tool = json!({"name": "Edit", "input": {"file_path": "/w/src/login.rs"}});
    stage.script(&json!([
        { "when": { "prompt": "login" }, "steps": [{ "claude": { "say": "Found it.", "tool": tool } }] },
        { "steps": [{ "claude": { "say": "Done so far." } }] }
    ]));
    for prompt in ["Fix the login bug", "Go on", "And test it"] {
        stage.run(prompt).await;
    }
    let calls = stage.calls().len();
    let before = (everything(&stage).await, stage.record().await);
    let whole = stage.lifecycle().summarise(&of_key().bytes(3000)).await.unwrap();
    assert_eq!((whole.turns, whole.span, whole.left_out, whole.cut), (3, (1, 3), 0, false));
    for part in [
        "[the first instruction, as it was then]\nFix the login bug\n",
        "[turn 1: the agent]\nFound it.\n",
        "[turn 3: the user]\nAnd test it\n\n[turn 3: the agent]\nDone so far.\n",
        "how often]\nEdit 1\n",
        "/w/src/login.rs",
        "[tokens of the whole conversation]\n",
    ] {
        assert!(whole.text.contains(part), "{part:?} in {}", whole.text);
    }
    assert!(whole.text.len() <= 3000);
    let from = stage.lifecycle().summarise(&of_key().span(TurnSpan::From(3))).await.unwrap();
    assert!(from.text.contains("part, as it was then]\nAnd test it\n"), "{}", from.text);
    assert!(!from.text.contains("Go on") && !from.text.contains("instruction"), "{}", from.text);
    let to = stage.lifecycle().summarise(&of_key().span(TurnSpan::UpTo(2))).await.unwrap();
    assert!(to.text.contains("Go on") && !to.text.contains("And test it"), "{}", to.text);
    assert_eq!((everything(&stage).await, stage.record().await), before);
    assert_eq!(stage.calls().len(), calls, "nothing is run");
}

#[tokio::test]
async fn a_long_transcript_is_read_page_by_page_to_its_first_instruction() {
    let stage = Stage::new();
    for turn in 1..=40 {
        stage.run(&format!("prompt number {turn}")).await;
    }
    let summary = stage.lifecycle().summarise(&of_key().bytes(2048)).await.unwrap();
    assert_eq!(summary.turns, 40);
    assert!(summary.text.contains("prompt number 1\n") && summary.text.contains("[turn 40: the agent]"));
    assert!(summary.left_out > 0 && summary.text.contains(" of these turns"), "{}", summary.text);
}

/// BR-083: no session shows up in lists, and the one in force stays, also if the agent fails or hangs.
#[tokio::test]
async fn an_agent_summarises_in_a_copy_and_leaves_no_session_behind() {
    let stage = Stage::new();
    for prompt in ["Fix the login bug", "Go on"] {
        stage.run(prompt).await;
    }
    let before = (everything(&stage).await, stage.record().await);
    let quick = Limits::default().idle(Duration::from_millis(300)).grace(Duration::from_millis(100));
    let asked = |by| stage.lifecycle().summarise_of(by, quick.clone());
    for (steps, why) in [
        (json!([{ "claude": {} }]), None),
        (json!([{ "claude": { "say": "  " } }]), Some(NotByAgent::Silent)),
        (
            json!([{ "claude": { "stop_after": "user" } }, { "exit": 1 }]),
            Some(NotByAgent::Failed(Why::AgentCrashed)),
        ),
        (
            json!([{ "claude": { "stop_after": "user" } }, { "sleep_ms": 60000 }]),
            Some(NotByAgent::Failed(Why::TimedOut)),
        ),
    ] {
        stage.script(&json!([{ "steps": steps }]));
        let summary = asked(SummaryBy::Agent).await;
        match (&summary.source, why) {
            (SummarySource::Agent { used_tools: false, without_tools: true, .. }, None) => {
                assert!(stage.calls().last().unwrap().argv.contains(&"--tools=".to_owned()));
                // Two turns of the original and the question.
                assert!(summary.text.contains("\"user_turns\":3"), "{}", summary.text);
            }
            (SummarySource::TextInstead(found), Some(why)) => {
                assert_eq!(*found, why);
                assert!(summary.text.contains("Fix the login bug"));
            }
            other => panic!("{other:?}"),
        }
        assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
        assert_eq!((everything(&stage).await, stage.record().await), before, "{steps}");
    }
    stage.script(&json!([works()]));
    let next = stage.run("And test it").await;
    assert_eq!((next.route, ContextReply::parse(&next.text).unwrap().user_turns), (Route::Resumed, 3));
}

trait Asked {
    async fn summarise_of(self, by: SummaryBy, limits: Limits) -> rejoin::Summary;
}

impl Asked for Lifecycle {
    async fn summarise_of(self, by: SummaryBy, limits: Limits) -> rejoin::Summary {
        self.summarise(&of_key().by(by).limits(limits)).await.unwrap()
    }
}

#[tokio::test]
async fn a_tool_that_ran_in_the_copy_is_told() {
    let stage = Stage::new();
    stage.run("Fix the login bug").await;
    let tool = json!({"name": "Bash", "input": {"command": "true"}});
    stage.script(&json!([{ "steps": [{ "claude": { "say": "A summary.", "tool": tool } }] }]));
    let summary = stage.lifecycle().summarise(&of_key().by(SummaryBy::Agent)).await.unwrap();
    assert!(matches!(summary.source, SummarySource::Agent { used_tools: true, .. }), "{:?}", summary.source);
}

#[tokio::test]
async fn what_was_compacted_goes_before_the_next_prompt_once_also_after_a_crash() {
    let stage = Stage::new();
    stage.run("Fix the login bug").await;
    let old = stage.bound().await.unwrap();
    let compacted = stage.lifecycle().compact(&of_key()).await.unwrap();
    assert_eq!(compacted.before.as_str(), old);
    let record = stage.record().await;
    assert_eq!((record.binding, record.past[0].why.as_str()), (None, "compacted"));

    // The runner dies after the agent kept the prompt: the next run finds it, and does not say it again.
    let ready = stage.path("ready");
    stage.script(&json!([
        { "when": { "prompt": "two" }, "steps": [
            { "claude": { "stop_after": "user" } },
            { "create": { "path": ready, "text": "" } },
            { "sleep_ms": 60000 }
        ] },
        works()
    ]));
    {
        let lifecycle = stage.lifecycle();
        let run = lifecycle.run(stage.request("two"));
        let death = async {
            while !ready.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! { biased; _ = run => panic!("it hangs"), () = death => {} }
    }
    assert!(stage.record().await.preamble.is_some(), "not confirmed yet");
    let third = stage.run("three").await;
    assert_eq!((third.route, third.preamble), (Route::Resumed, None));
    assert_eq!(told(&stage).await, 1);
    assert!(ContextReply::parse(&third.text).unwrap().first.starts_with(TAG));
    assert_eq!(stage.record().await.preamble, None);
    stage.run("four").await;
    assert_eq!(told(&stage).await, 1);
}

#[tokio::test]
async fn an_agent_that_dies_before_it_kept_anything_is_told_again() {
    let stage = Stage::new();
    stage.run("Fix the login bug").await;
    drop(stage.lifecycle().compact(&of_key()).await.unwrap());
    stage.script(&json!([{ "steps": [{ "claude": { "stop_after": "init" } }, { "exit": 1 }] }]));
    stage.fails(stage.request("two")).await;
    stage.script(&json!([works()]));
    let third = stage.run("three").await;
    assert_eq!(third.preamble.as_deref(), Some("compacted"));
    assert_eq!((told(&stage).await, stage.record().await.preamble), (1, None));
    assert!(stage.calls().last().unwrap().stdin.contains("Fix the login bug"));
}

#[tokio::test]
async fn a_conversation_goes_to_another_mailbox_that_has_one_already() {
    let stage = Stage::new();
    let of = |mailbox: &str, prompt: &str| {
        LlmRequest::new(prompt).cwd(stage.path("project")).session(SessionRef::new(mailbox, "claude"))
    };
    let lifecycle = stage.lifecycle();
    lifecycle.run(of("issue-41", "Fix the login bug")).await.unwrap();
    stage.run("own work").await;
    let from = SessionKey::new("issue-41", "claude").unwrap();
    let request = SummaryRequest::new(from.clone()).steering("It is about the login.");
    let handed = lifecycle.hand_over_to(&request, &key()).await.unwrap();
    assert!(handed.audit_seq.is_some() && handed.summary.text.contains("It is about the login."));
    let next = stage.run("Review it").await;
    assert_eq!((next.route, next.preamble.as_deref()), (Route::Resumed, Some("handed_over")));
    assert_eq!((told(&stage).await, stage.record().await.preamble), (1, None));
    for of in [from, key()] {
        let log = lifecycle.audit(&of, None).await.unwrap();
        assert!(log.iter().any(|entry| entry.event.kind == "handed_over"), "{of}");
    }
}

#[tokio::test]
async fn a_recipe_is_run_again_by_what_its_seed_says() {
    let stage = Stage::new();
    let mut seed = RecipeSeed::new("recipes/fix.yaml", "3");
    seed.parameters.insert("model".to_owned(), "claude-haiku-4".into());
    seed.parameters.insert("issue".to_owned(), 42.into());
    seed.tools = Some(vec!["Read".to_owned()]);
    let first = stage.lifecycle().run(stage.request("one").seed(seed.clone())).await.unwrap();
    let replayed = stage.run("two").await;
    assert_eq!(replayed.route, Route::Resumed);
    let rerun = stage.request("three").resume_mode(ResumeMode::RerunRecipe);
    let again = stage.lifecycle().run(rerun).await.unwrap();
    assert_eq!(again.route, Route::Fresh(Why::RecipeRerun));
    assert_ne!(again.session_id, first.session_id);
    for call in stage.calls() {
        assert!(call.argv.windows(2).any(|pair| pair == ["--model", "claude-haiku-4"]), "{:?}", call.argv);
        assert!(call.argv.contains(&"--tools=Read".to_owned()), "{:?}", call.argv);
    }
    let recipe = again.recipe.unwrap();
    assert_eq!(recipe.restored, [RecipePart::Tools, RecipePart::Parameter("model".to_owned())]);
    let issue = RecipePart::Parameter("issue".to_owned());
    assert_eq!(recipe.not_restored, [NotRestored { part: issue, why: NotRestoredWhy::NotOurs }]);

    // One of a later form stays as it is, and is no recipe here.
    let store = FsStore::open(stage.path("store")).unwrap();
    let stored = store.load(&key()).await.unwrap().unwrap();
    let mut document: Value = serde_json::from_slice(stored.document.as_bytes()).unwrap();
    let later = json!({"recipes": [seed.reference], "of": "a later form"});
    document["record"]["seed"] = later.clone();
    let document = Document::new(serde_json::to_vec(&document).unwrap());
    assert!(matches!(store.save(&key(), &document, &Guard::Any, None).await, Ok(Saved::Done(_))));
    assert_eq!(stage.run("four").await.route, Route::Resumed);
    let kept: Value = serde_json::from_slice(codec::encode(&stage.record().await).as_bytes()).unwrap();
    assert_eq!(kept["record"]["seed"], later);
}

#[tokio::test]
async fn where_no_copy_can_be_hidden_the_agent_is_not_asked() {
    let stage = Stage::new();
    let lifecycle = stage.lifecycle();
    lifecycle.run(stage.request("Fix the login bug")).await.unwrap();
    let memory = rejoin::stores::MemoryStore::default();
    let host = std::sync::Arc::new(rejoin::process::SystemHost::new());
    let agent = rejoin::adapters::claude()
        .options(rejoin::adapters::ClaudeOptions::new().program(stage.program()))
        .environment(stage.environment());
    let without = Lifecycle::new(std::sync::Arc::new(memory), host).agent(Agent::from(agent));
    without.run(stage.request("Fix the login bug")).await.unwrap();
    let calls = stage.calls().len();
    let summary = without.summarise(&of_key().by(SummaryBy::Agent)).await.unwrap();
    assert_eq!(summary.source, SummarySource::TextInstead(NotByAgent::NoStateDir));
    assert_eq!(stage.calls().len(), calls);
    assert!(summary.text.contains(AgentId::new("claude").unwrap().as_str()));
}
