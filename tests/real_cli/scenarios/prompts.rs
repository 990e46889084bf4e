//! Prompts that could be taken for something else.

use rejoin::{Route, RunError};

use crate::begun::Begun;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

pub(super) async fn commands_are_text(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let first = stage.last();
    for prompt in cli.under_test().rules(cli).commands.iter().copied() {
        stage.again();
        let before = stage.turns();
        let second = match stage.row(&format!("the prompt `{prompt}`"), true, stage.request(prompt)).await {
            Ok(second) => second,
            // Where a version has no way to say it as text, it is refused, and nothing is started.
            Err(RunError::Agent(_)) => {
                assert_eq!(stage.turns(), before);
                continue;
            }
            Err(other) => panic!("{prompt}: {other:?}"),
        };
        assert_eq!((second.route, &second.session_id), (Route::Resumed, &first.session_id), "{prompt}");
        // An adapter may put the slash into a block of its own, and the fake model joins blocks with a line end.
        let seen = reply(&second);
        assert_eq!(
            (seen.user_turns, seen.last.replacen('\n', "", 1).as_str()),
            (2, prompt),
            "the model saw it"
        );
    }
}

pub(super) async fn dashes_and_a_long_one(cli: &Pinned) {
    let stage = Stage::new(cli);
    stage.run("--help me").await.unwrap();
    let long = format!("{} the end", "word ".repeat(stage.rules.long_prompt / 5));
    let second = stage.run(&long).await.unwrap();
    let seen = reply(&second);
    assert_eq!((seen.user_turns, seen.first.as_str()), (2, "--help me"));
    assert!(long.ends_with(&seen.last), "{:?}", seen.last);
    let texts: Vec<_> =
        stage.model.requests().iter().filter(|r| r.is_turn()).flat_map(|r| r.user_texts.clone()).collect();
    assert!(
        texts.iter().any(|text| text.contains(long.trim())),
        "verbatim, to the last of {} bytes",
        long.len()
    );
}
