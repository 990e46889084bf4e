//! A turn: carried out, with the prompt as it is, and told as it was.

use session_core::decide::{Activity, Verdict};
use session_core::{NativeId, Observation};

use super::{Play, Subject};

/// The turn is carried out, in a session that the agent names by an id of its own shape, and which holds the prompt.
pub(super) fn a_turn_is_carried_out(subject: &Subject) {
    subject.on_stage(async |stage| {
        stage.play(Play::Works).await;
        let id = stage.new_id(1);
        let turned = stage.run(stage.fresh(&id), "one").await;
        assert_eq!(turned.verdict(), Verdict::Completed, "{:?}", turned.report());
        assert_ne!(turned.report().evidence.observation.activity(), Activity::None, "the model was called");
        let session = turned.session().unwrap_or_else(|| panic!("the session has no name"));
        assert!(stage.fixture.adapter().accepts_id(session), "{session} is no id of this agent");
        assert_eq!(stage.fixture.conversation(session).await, ["one"]);
        assert_eq!(stage.fixture.started().await, 1);
    });
}

/// Byte for byte, whatever it looks like (4). A prompt that cannot be got past the agent is refused, and starts nothing.
pub(super) fn the_prompt_reaches_the_model_verbatim(subject: &Subject) {
    let prompts = [
        "-",
        "--help",
        "--resume",
        "/clear the table",
        "/compact",
        "@README.md",
        "!ls",
        "# heading",
        "one\ntwo\r\n\tthree",
        "  white space at both ends \n",
        "'single' \"double\" `back` $(id) ${HOME} %PATH% ; & | > <",
        "日本語 한글 😀 e\u{301} \u{2028}\u{85}",
        "{\"text\": \"not me\"}",
    ];
    subject.on_stage(async |stage| {
        stage.play(Play::Works).await;
        for (number, prompt) in
            prompts.into_iter().map(str::to_owned).chain(["p".repeat(1 << 20)]).enumerate()
        {
            let id = stage.new_id(number as u128);
            let before = stage.fixture.started().await;
            let turned = stage.run(stage.fresh(&id), &prompt).await;
            let shown: String = prompt.chars().take(60).collect();
            if turned.result.is_err() {
                assert!(
                    prompt.starts_with(['/', '@', '!', '#']),
                    "{shown:?} is refused: {:?}",
                    turned.result
                );
                assert_eq!(stage.fixture.started().await, before, "{shown:?} is refused, and started");
                continue;
            }
            assert_eq!(turned.verdict(), Verdict::Completed, "{shown:?}");
            let session = turned.session().cloned().unwrap_or_else(|| panic!("{shown:?}: no session"));
            let conversation = stage.fixture.conversation(&session).await;
            assert!(conversation == [prompt], "{shown:?} became {conversation:?}");
        }
    });
}

fn told(observation: &Observation) -> serde_json::Value {
    serde_json::to_value(observation).unwrap_or_else(|error| panic!("{error}"))
}

/// What the sink was given and what the report says are the same.
pub(super) fn the_events_are_those_of_the_report(subject: &Subject) {
    subject.on_stage(async |stage| {
        for play in [Play::Works, Play::Says("hello".to_owned()), Play::Dies, Play::EndsInSilence] {
            if !stage.play(play.clone()).await {
                continue;
            }
            let id = stage.new_id(1);
            let turned = stage.run(stage.fresh(&id), "one").await;
            let said = &turned.report().evidence.observation;
            assert_eq!(told(said), told(&turned.heard), "{play:?}: what is told, and what was heard");
        }
    });
}

/// Asking what is installed changes nothing, and finds the same.
pub(super) fn the_agent_is_the_same_every_time(subject: &Subject) {
    subject.on_stage(async |stage| {
        let started = stage.fixture.started().await;
        for _ in 0..2 {
            let again = stage.fixture.adapter().detect().await;
            assert_eq!(again.ok().as_ref(), Some(&stage.installation));
        }
        assert_eq!(stage.fixture.started().await, started, "asking for the version runs no turn");
        stage.nothing_runs("it was only asked for its version").await;
    });
}

/// What is no id of the agent is turned away before it can reach a command line.
pub(super) fn what_is_no_id_is_not_accepted(subject: &Subject) {
    subject.on_stage(async |stage| {
        let adapter = stage.fixture.adapter();
        let good = stage.session(1, "one").await;
        assert!(adapter.accepts_id(&good), "{good} is an id");
        assert!(adapter.accepts_id(&stage.new_id(2)), "an id that was made for this agent is one");
        let rest: String = good.as_str().chars().skip(2).collect();
        for bad in [
            "",
            " ",
            "-",
            "--help",
            "--last",
            "..",
            "../../x",
            &format!("--{rest}"),
            &format!("{good}\n"),
            &format!("{good} --help"),
            &format!("{good}\0"),
        ] {
            assert!(!adapter.accepts_id(&NativeId::new(bad)), "{bad:?} is accepted as an id");
        }
    });
}
