//! What goes apart where files alone go back: only what the conversation may hold is told.

use session_core::decide::{Activity, Verdict};
use session_core::*;

use crate::scripted::*;
use crate::shelf::*;

async fn apart(yard: &Yard, to: RewindTo) -> Option<Apart> {
    let wish = back(1).to(to).mode(RewindMode::Files);
    let foreseen = yard.lifecycle.foresee_rewind(&wish).await.unwrap().apart;
    let rewound = yard.lifecycle.rewind(&wish).await.unwrap();
    assert_eq!(foreseen, rewound.apart);
    rewound.apart
}

const fn stays(prompts: usize, lacks: usize) -> Option<Apart> {
    Some(Apart::ConversationStays { prompts, lacks })
}

/// It never reached the conversation, be it the first one or a later one.
#[tokio::test]
async fn a_prompt_whose_run_failed_before_the_model_was_called_is_not_told() {
    let fails = || Act::Fail(Verdict::RateLimited, Activity::None);
    let yard = yard();
    yard.agent.will([fails()]);
    yard.lifecycle.run(request("one +a=1")).await.unwrap_err();
    assert_eq!(apart(&yard, RewindTo::Turns(1)).await, None);
    yard.run("two +a=2").await;
    yard.agent.will([fails()]);
    yard.lifecycle.run(request("three +a=3")).await.unwrap_err();
    assert_eq!(apart(&yard, RewindTo::Turns(1)).await, None);
    yard.agent.will([fails()]);
    yard.lifecycle.run(request("four +a=4")).await.unwrap_err();
    yard.run("five +a=5").await;
    assert_eq!(apart(&yard, RewindTo::Turns(3)).await, stays(2, 0));
}

/// An agent that wrote the prompt down before it failed, without a word, has it in its conversation.
#[tokio::test]
async fn a_prompt_that_may_be_kept_is_told() {
    let crash = || Act::Fail(Verdict::Crashed, Activity::None);
    for acts in [
        vec![Act::FailInSilence(Verdict::RateLimited)],
        vec![Act::KeepInSilence, crash()],
        vec![Act::Fail(Verdict::RateLimited, Activity::None)],
    ] {
        let is_kept = !matches!(acts[0], Act::Fail(..));
        let yard = yard();
        yard.run("one").await;
        yard.agent.will(acts);
        yard.lifecycle.run(request("two +a=2")).await.unwrap_err();
        let told = apart(&yard, RewindTo::Turns(1)).await;
        assert_eq!(told, if is_kept { stays(1, 0) } else { None });
    }
}

#[tokio::test]
async fn a_conversation_that_was_put_aside_tells_of_nothing() {
    let yard = yard();
    yard.run("one +a=1").await;
    yard.lifecycle.clear(&key()).await.unwrap();
    assert_eq!(apart(&yard, RewindTo::Turns(1)).await, None);
}

/// Files that come back without their conversation are not what it still tells of.
#[tokio::test]
async fn files_that_come_back_alone_are_not_known_to_the_conversation() {
    for (mode, lacks) in [(RewindMode::Both, 1), (RewindMode::Files, 0)] {
        let yard = yard();
        yard.run("one +a=1").await;
        yard.run("two +a=2").await;
        let undo = yard.lifecycle.rewind(&back(1).mode(mode)).await.unwrap().undo;
        let told = apart(&yard, RewindTo::Checkpoint(undo)).await;
        assert_eq!(told, if lacks > 0 { stays(0, lacks) } else { None }, "{mode:?}");
        assert_eq!(yard.files(), ["a=2"]);
    }
}
