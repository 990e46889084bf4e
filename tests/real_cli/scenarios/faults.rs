//! Trouble of the model's service in a resumed run: no fallback, the binding kept, the next run resumes.

use rejoin::{Route, RunError, Why};

use crate::agents::{End, Fault};
use crate::begun::Begun;
use crate::matrix::Turns;
use crate::pinned::Pinned;

pub(super) async fn in_a_resumed_turn(cli: &Pinned, fault: Fault, end: End) {
    let name = fault.name();
    let stage = Begun::alpha(cli).await;
    let bound = stage.bound().await;
    let prompt = match fault {
        Fault::Status(status) => {
            stage.model.refuse(Some(status));
            "beta"
        }
        Fault::Dropped => "[[drop]]",
        Fault::Cut => "[[cut]]",
    };
    let before = stage.turns();
    let request = stage.request(prompt).limits(end.limits());
    let outcome = stage.lifecycle(true).run(request).await;
    let turns = match end {
        // How often it tries until our limit is a matter of time.
        End::NeverEnds(_) | End::Loops(_) => Turns::Many,
        End::Completes | End::Fails(_) => Turns::Counted(stage.turns() - before),
    };
    stage.note(&name, &outcome, turns);
    let expected = match end {
        End::Completes => None,
        End::Fails(why) | End::Loops(why) => Some(why),
        End::NeverEnds(_) => Some(Why::TimedOut),
    };
    match (&outcome, expected) {
        (Ok(result), None) => {
            assert_eq!((result.route, result.session_id.as_ref()), (Route::Resumed, Some(&bound)), "{name}");
        }
        (Err(RunError::Failed { why, run }), Some(expected)) => {
            assert_eq!(*why, expected, "{name}: {:?}", run.evidence);
            assert_eq!(run.attempts.len(), 1, "{name}: no fallback");
            assert_eq!(run.session_id.as_ref(), Some(&bound), "{name}: the binding is kept");
        }
        _ => panic!("{name}: {outcome:?}, expected {end:?}"),
    }
    stage.model.refuse(None);
    let next = stage.run("gamma").await.unwrap();
    assert_eq!((next.route, next.session_id), (Route::Resumed, Some(bound)), "{name}");
}
