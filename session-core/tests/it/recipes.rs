//! Recipe seeds: kept in the record, and the two ways to go on from one.

use session_core::decide::Why;
use session_core::error::{RequestError, RunError};
use session_core::*;

use crate::bench::{bench, bench_with};
use crate::scripted::*;

fn seed() -> RecipeSeed {
    let mut seed = RecipeSeed::new("recipes/fix.yaml", "3");
    seed.parameters.insert("issue".to_owned(), 42.into());
    seed.system_prompt = Some("Be brief.".to_owned());
    seed.tools = Some(vec!["Read".to_owned()]);
    seed.last_checkpoint = CheckpointId::parse("00000000-0000-0000-0000-000000000001");
    seed
}

#[tokio::test]
async fn a_seed_is_kept_and_every_later_run_goes_by_it() {
    let mut agent = Scripted::new();
    agent.capabilities.system_prompt = true;
    let bench = bench_with(agent, true);
    let plain = bench.run("before").await;
    assert_eq!(plain.recipe, None);
    let first = bench.lifecycle.run(request("one").seed(seed())).await.unwrap();
    let second = bench.run("two").await;
    assert!(second.resumed);
    for recipe in [first.recipe.unwrap(), second.recipe.unwrap()] {
        assert_eq!(
            (recipe.mode, &recipe.restored[..]),
            (ResumeMode::ReplayTranscript, &[RecipePart::SystemPrompt][..])
        );
        assert!(
            recipe
                .not_restored
                .contains(&NotRestored { part: RecipePart::Tools, why: NotRestoredWhy::AgentCannot })
        );
    }
    assert_eq!(bench.record().await.recipe(), Some(&seed()));
    let recipes: Vec<_> = bench.agent.world().recipes.clone();
    let brief = (Some("Be brief.".to_owned()), None);
    assert_eq!(recipes, [(None, None), brief.clone(), brief]);
}

#[tokio::test]
async fn a_recipe_that_is_run_again_begins_anew_and_keeps_what_was_before() {
    let bench = bench();
    let first = bench.lifecycle.run(request("one").seed(seed())).await.unwrap().session_id;
    let again = bench.lifecycle.run(request("two").resume_mode(ResumeMode::RerunRecipe)).await.unwrap();
    assert_eq!((again.route, again.resumed), (Route::Fresh(Why::RecipeRerun), false));
    assert_eq!(again.resume_fallback, Some(Why::RecipeRerun));
    let recipe = again.recipe.unwrap();
    assert_eq!((recipe.seed, recipe.mode), (seed(), ResumeMode::RerunRecipe));
    assert!(
        recipe
            .not_restored
            .contains(&NotRestored { part: RecipePart::Files, why: NotRestoredWhy::NotRewound })
    );
    let record = bench.record().await;
    assert_eq!(record.binding.map(|binding| binding.native_id), again.session_id);
    let former = &record.past[0];
    assert_eq!(
        (Some(&former.native_id), former.why.as_str(), former.rejoinable),
        (first.as_ref(), "recipe_rerun", true)
    );
    // It is one run: the next one goes on with what it began.
    assert_eq!(bench.run("three").await.session_id, again.session_id);
}

#[tokio::test]
async fn a_failed_row_ends_where_a_recipe_is_run_again() {
    let bench = bench();
    bench.lifecycle.run(request("one").seed(seed())).await.unwrap();
    let old = bench.bound().await.unwrap();
    bench.lose(&old);
    bench.run("falls back").await;
    let fell_back = bench.record().await.failed_resumes;
    bench.lifecycle.run(request("two").resume_mode(ResumeMode::RerunRecipe)).await.unwrap();
    assert_eq!((fell_back, bench.record().await.failed_resumes), (fell_back, 0));
}

#[tokio::test]
async fn what_goes_against_a_recipe_is_refused_before_anything_is_started() {
    let bench = bench();
    let rerun = |prompt| request(prompt).resume_mode(ResumeMode::RerunRecipe);
    let why = async |request: LlmRequest| match bench.lifecycle.run(request).await {
        Err(RunError::Request(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(why(rerun("x")).await, RequestError::NoSeed { key: of } if of == key()));
    let required = rerun("x").seed(seed()).resume(ResumePolicy::Require);
    assert!(matches!(why(required).await, RequestError::Rerun { .. }));
    let forked = rerun("x").seed(seed()).fork_of(SessionRef::new("other", "scripted"));
    assert!(matches!(why(forked).await, RequestError::Rerun { .. }));
    let mut large = seed();
    large.system_prompt = Some("x".repeat(RecipeSeed::SYSTEM_PROMPT_BYTES + 1));
    assert!(matches!(why(request("x").seed(large)).await, RequestError::Seed(_)));
    assert!(bench.agent.calls().is_empty());
    assert!(bench.lifecycle.record(&key()).await.unwrap().is_none());
}
