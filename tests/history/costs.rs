//! What a session cost, by its own files.

use serde_json::{Value, json};

use crate::desk::{Desk, reply, said, user};

fn cost(usd: impl Into<Value>) -> Value {
    json!({"type": "cost-state", "sessionId": "s", "totalCostUSD": usd.into(), "modelUsage": {}})
}

#[test]
fn a_counter_that_falls_is_a_new_one_and_what_it_showed_stays() {
    for (shown, expected) in [
        (vec![0.25, 0.28, 0.03], Some(0.31)),
        (vec![0.25, 0.28], Some(0.28)),
        (vec![0.1, 0.2, 0.1, 0.3, 0.0], Some(0.5)),
        (vec![0.0], Some(0.0)),
        (vec![], None),
    ] {
        let mut lines = vec![user("u1", None, "hi"), said("a2", "u1", "ho")];
        lines.extend(shown.iter().map(|usd| cost(*usd)));
        assert_eq!(Desk::of(&lines).restored().cost_usd, expected, "{shown:?}");
    }
}

#[test]
fn a_figure_that_is_none_is_left_out() {
    let lines = [cost(0.5), cost(-3), cost("much"), cost(json!(null)), cost(json!({"usd": 1}))];
    assert_eq!(Desk::of(&lines).restored().cost_usd, Some(0.5));
}

/// A run that was killed has no result: its tokens are in the file all the same.
#[test]
fn tokens_of_runs_that_were_killed_count() {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let desk = Desk::of(&[
        user("u1", None, "one"),
        reply("a2", "u1", text("killed"), 1000),
        user("u3", Some("a2"), "two"),
        reply("a4", "u3", text("done"), 200),
        user("u5", Some("a4"), "three"),
        reply("a6", "u5", text("failed"), 300),
    ]);
    desk.helper(
        "agent-x",
        &[user("u8", None, "help"), reply("a9", "u8", text("helped"), 40)].map(|mut line| {
            line["isSidechain"] = json!(true);
            line
        }),
    );
    let restored = desk.restored();
    assert_eq!((restored.usage.output_tokens, restored.usage_of_sidechains.output_tokens), (1500, 40));
    assert_eq!((restored.model.as_deref(), restored.branch.as_deref()), (Some("claude-x"), Some("main")));
    assert_eq!(restored.cwd.as_deref(), Some(std::path::Path::new("/w")));
}
