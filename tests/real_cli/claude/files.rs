//! Session files that are gone or damaged, and ids that are wrong.

use std::io::Write as _;

use rejoin::core::decide::{Activity, Verdict};
use rejoin::core::{Mode, NoSink, RunId, Turn};
use rejoin::{Agent, Cancel, Limits, NativeId, Route, Why};

use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

/// The session is lost in this way; with and without a look, one fresh run follows, and the next one resumes it.
async fn lost(cli: &Pinned, scenario: &str, look_says: Why, damage: impl Fn(&std::path::Path)) {
    for look in [true, false] {
        let stage = Stage::new(cli);
        let first = stage.run("alpha").await.unwrap();
        let fresh_turns = stage.turns();
        let old = first.session_id.unwrap();
        damage(&stage.transcript(&old));
        let name = if look { scenario.to_owned() } else { format!("{scenario}, nobody looks") };
        let before = stage.turns();
        let second = stage.row(&name, look, stage.request("beta")).await.unwrap();
        let why = if look { look_says } else { Why::SessionMissing };
        assert_eq!(second.route, Route::FellBack(why), "{name}");
        assert_eq!(reply(&second).user_turns, 1, "{name}");
        assert_eq!(second.attempts.len(), if look { 1 } else { 2 }, "{name}");
        assert_eq!(stage.turns() - before, fresh_turns, "{name}: a failed resume costs nothing");
        assert_ne!(second.session_id, Some(old));
        let third = stage.run("gamma").await.unwrap();
        assert_eq!((third.route, reply(&third).user_turns), (Route::Resumed, 2));
        assert_eq!(third.session_id, second.session_id);
    }
}

/// The session is damaged in this way and survives: the conversation goes on.
async fn survives(cli: &Pinned, scenario: &str, damage: impl Fn(&std::path::Path)) {
    for look in [true, false] {
        let stage = Stage::new(cli);
        stage.run("alpha").await.unwrap();
        let second = stage.run("beta").await.unwrap();
        damage(&stage.transcript(second.session_id.as_ref().unwrap()));
        let name = if look { scenario.to_owned() } else { format!("{scenario}, nobody looks") };
        let third = stage.row(&name, look, stage.request("gamma")).await.unwrap();
        assert_eq!((third.route, &third.session_id), (Route::Resumed, &second.session_id), "{name}");
        let seen = reply(&third);
        assert_eq!((seen.first.as_str(), seen.last.as_str()), ("alpha", "gamma"), "{name}");
        if !look && !cli.at_least([2, 1, 0]) {
            // 2.0.14 glues its next record to an open last line, and then loses all before it. With a look, the
            // line is ended first.
            continue;
        }
        let fourth = stage.run("delta").await.unwrap();
        assert_eq!(fourth.route, Route::Resumed);
        assert_eq!(
            reply(&fourth).user_turns,
            seen.user_turns + 1,
            "{name}: the turn after the damage was kept"
        );
    }
}

pub(crate) async fn deleted(cli: &Pinned) {
    lost(cli, "deleted", Why::SessionMissing, |path| std::fs::remove_file(path).unwrap()).await;
}

pub(crate) async fn emptied(cli: &Pinned) {
    lost(cli, "emptied", Why::SessionEmpty, |path| std::fs::write(path, "").unwrap()).await;
}

pub(crate) async fn nothing_but_garbage(cli: &Pinned) {
    let garbage = |path: &std::path::Path| std::fs::write(path, "no record\n\0\0\0\n{\"half\":\n").unwrap();
    lost(cli, "nothing but garbage", Why::SessionDamaged, garbage).await;
}

pub(crate) async fn cut_in_its_last_line(cli: &Pinned) {
    survives(cli, "cut in its last line", |path| {
        let text = std::fs::read(path).unwrap();
        let whole = text.trim_ascii_end();
        let start = whole.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        std::fs::write(path, &text[..start + (whole.len() - start) / 2]).unwrap();
    })
    .await;
}

pub(crate) async fn garbage_in_the_middle(cli: &Pinned) {
    survives(cli, "garbage in the middle", |path| {
        let text = std::fs::read(path).unwrap();
        let first = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let mut file = std::fs::File::create(path).unwrap();
        file.write_all(&text[..first]).unwrap();
        file.write_all(b"{\"type\":\"user\",\"mess\0\0\0 garbage\n").unwrap();
        file.write_all(&text[first..]).unwrap();
    })
    .await;
}

pub(crate) async fn unknown_id(cli: &Pinned) {
    for look in [true, false] {
        let stage = Stage::new(cli);
        stage.run("alpha").await.unwrap();
        stage.tamper_id("00000000-2222-4222-8222-222222222222").await;
        let name = if look { "unknown id" } else { "unknown id, nobody looks" };
        let second = stage.row(name, look, stage.request("beta")).await.unwrap();
        assert_eq!(second.route, Route::FellBack(Why::SessionMissing));
        assert_ne!(second.session_id.unwrap().as_str(), "00000000-2222-4222-8222-222222222222");
    }
}

pub(crate) async fn malformed_id(cli: &Pinned) {
    for look in [true, false] {
        for (id, name) in
            [("nope", "malformed id"), ("--help", "an id that looks like a flag"), ("", "empty id")]
        {
            let stage = Stage::new(cli);
            stage.run("alpha").await.unwrap();
            stage.tamper_id(id).await;
            let name = if look { name.to_owned() } else { format!("{name}, nobody looks") };
            let second = stage.row(&name, look, stage.request("beta")).await.unwrap();
            assert_eq!(second.route, Route::FellBack(Why::IdMalformed));
            assert_eq!(second.attempts.len(), 1, "it never reaches the agent");
        }
    }
}

/// The orchestration never chooses an id twice, so this asks the adapter itself.
pub(crate) async fn id_in_use(cli: &Pinned) {
    let stage = Stage::new(cli);
    let first = stage.run("alpha").await.unwrap();
    let id: NativeId = first.session_id.unwrap();
    let transcript = stage.transcript(&id);
    let kept = std::fs::read(&transcript).unwrap();
    let state_dir = {
        use rejoin::SessionStore as _;
        stage.store().state_dir(&crate::stage::key()).await.unwrap().unwrap()
    };
    let agent = Agent::from(stage.claude());
    let installation = agent.adapter().detect().await.unwrap();
    let before = stage.turns();
    let turn = Turn {
        run: RunId::new(uuid::Uuid::new_v4()),
        prompt: "beta",
        cwd: &stage.project,
        mode: Mode::Fresh { id: Some(&id) },
        name: None,
        model: None,
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
    assert_eq!(std::fs::read(&transcript).unwrap(), kept);
}
