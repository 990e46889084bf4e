//! A branch holds what a session held at some spot: the CLI continues it as any other, and the original as if there were none.

use std::path::Path;

use rejoin::core::{
    Branch, BranchOrder, BranchRefusal, Branched, Guard, Inspection, Presence, Saved, SessionQuery, Spot,
    Timestamp, Version, codec,
};
use rejoin::{LlmRequest, NativeId, Route, SessionKey, SessionRef, SessionStore as _};

use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

/// The mailbox that gets a branch of the trial's own.
const OTHER: &str = "issue-42-b";

/// A conversation of `alpha`, `beta` and `gamma`, and how it looked after the first.
struct Told {
    stage: Stage,
    id: NativeId,
    version: Version,
    after_alpha: Inspection,
}

impl Told {
    async fn in_a_state_dir(cli: &Pinned) -> Self {
        let stage = Stage::new(cli);
        stage.run("alpha").await.unwrap();
        let (id, version) = (stage.bound().await, Version::parse(&cli.version).unwrap());
        let mut told = Self { stage, id, version, after_alpha: Inspection::MISSING };
        told.after_alpha = told.look(&told.id, told.state_dir().await.as_deref()).await;
        for prompt in ["beta", "gamma"] {
            told.stage.run(prompt).await.unwrap();
        }
        told
    }

    async fn state_dir(&self) -> Option<std::path::PathBuf> {
        self.stage.store().state_dir(&self.stage.key()).await.unwrap()
    }

    fn query<'a>(&'a self, id: &'a NativeId, cwd: &'a Path, state_dir: Option<&'a Path>) -> SessionQuery<'a> {
        SessionQuery { id, cwd, state_dir, version: Some(&self.version) }
    }

    async fn look(&self, id: &NativeId, state_dir: Option<&Path>) -> Inspection {
        let (agent, cwd) = (self.stage.agent(), self.stage.place.project());
        agent.catalog().unwrap().inspect(self.query(id, &cwd, state_dir)).await.unwrap()
    }

    /// The first turn, and how long the file was then, where it tells; the first two, by their number alone.
    fn spots(&self) -> [Spot; 2] {
        let is_of_lines = self.stage.cli.agent != "opencode";
        let spot = |turns, bytes| Spot { native_id: self.id.clone(), turns, bytes };
        [spot(1, Some(self.after_alpha.bytes).filter(|_| is_of_lines)), spot(2, None)]
    }

    async fn branch(&self, keep: &Spot, from: Option<&Path>, into: Option<&Path>) -> Branched {
        let (agent, cwd) = (self.stage.agent(), self.stage.place.project());
        agent.catalog().unwrap().branch(order(self.query(&self.id, &cwd, from), keep, into)).await.unwrap()
    }

    async fn prune(&self, keep: &Spot, from: Option<&Path>, into: Option<&Path>, branch: &Branch) {
        let (agent, cwd) = (self.stage.agent(), self.stage.place.project());
        let order = order(self.query(&self.id, &cwd, from), keep, into);
        agent.catalog().unwrap().prune(order, branch).await.unwrap();
    }

    /// Binds this session to the key, as if it had always been the key's.
    async fn bind(&self, key: &SessionKey, id: &NativeId) {
        let mut record = self.stage.record().await;
        record.key = key.clone();
        record.binding.as_mut().unwrap().native_id = id.clone();
        let saved = self.stage.store().save(key, &codec::encode(&record), &Guard::Any, None).await.unwrap();
        assert!(matches!(saved, Saved::Done(_)));
    }
}

fn order<'a>(query: SessionQuery<'a>, keep: &'a Spot, into: Option<&'a Path>) -> BranchOrder<'a> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let now = Timestamp::from_millis(i64::try_from(now).unwrap());
    BranchOrder { query, keep, into, seed: uuid::Uuid::new_v4(), now }
}

fn done(branched: Branched) -> Branch {
    match branched {
        Branched::Done(branch) => branch,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn between_turns(cli: &Pinned) {
    let told = Told::in_a_state_dir(cli).await;
    let (stage, dir) = (&told.stage, told.state_dir().await.unwrap());
    let original = stage.kept(&told.id);
    for (keep, name) in
        told.spots().iter().zip(["branch after the first turn", "branch after the second turn"])
    {
        let branch = done(told.branch(keep, Some(&dir), Some(&dir)).await);
        assert_eq!(branch.turns, keep.turns);
        assert!(branch.id != told.id && branch.path.starts_with(&dir), "{branch:?}");
        assert_eq!(told.look(&branch.id, Some(&dir)).await.user_turns, keep.turns);
        told.bind(&stage.key(), &branch.id).await;
        let result = stage.row(name, true, stage.request("delta")).await.unwrap();
        assert_eq!((result.route, result.session_id.as_ref()), (Route::Resumed, Some(&branch.id)), "{name}");
        let seen = reply(&result);
        let expected = (usize::try_from(keep.turns).unwrap() + 1, "alpha", "delta");
        assert_eq!((seen.user_turns, seen.first.as_str(), seen.last.as_str()), expected, "{name}");
        // And on: what the CLI appended is where it looks for it.
        let again = stage.run("epsilon").await.unwrap();
        assert_eq!((again.route, reply(&again).user_turns), (Route::Resumed, expected.0 + 1), "{name}");
        assert_eq!(stage.kept(&told.id), original, "the original is untouched");
    }
    told.bind(&stage.key(), &told.id).await;
    let result = stage.run("delta").await.unwrap();
    assert_eq!(
        (result.route, reply(&result).user_turns),
        (Route::Resumed, 4),
        "all turns are in the original"
    );
    assert_eq!(result.session_id.as_ref(), Some(&told.id));
}

pub(super) async fn into_another_state_dir(cli: &Pinned) {
    let told = Told::in_a_state_dir(cli).await;
    let (stage, dir) = (&told.stage, told.state_dir().await.unwrap());
    let key = SessionKey::new(OTHER, &*cli.agent).unwrap();
    let other = stage.store().state_dir(&key).await.unwrap().unwrap();
    let original = stage.kept(&told.id);
    let [keep, two] = told.spots();
    let branch = done(told.branch(&keep, Some(&dir), Some(&other)).await);
    assert!(branch.path.starts_with(&other), "{branch:?}");
    told.bind(&key, &branch.id).await;
    let ask = |prompt: &str| {
        LlmRequest::new(prompt).cwd(stage.place.project()).session(SessionRef::new(OTHER, &*cli.agent))
    };
    let result = stage.row("branch in another state dir", true, ask("delta")).await.unwrap();
    assert_eq!((result.route, result.session_id.as_ref()), (Route::Resumed, Some(&branch.id)));
    assert_eq!((reply(&result).user_turns, reply(&result).first.as_str()), (2, "alpha"));
    // One more, where there are sessions already; and taken back.
    let second = done(told.branch(&two, Some(&dir), Some(&other)).await);
    assert_eq!(told.look(&second.id, Some(&other)).await.user_turns, 2);
    told.prune(&two, Some(&dir), Some(&other), &second).await;
    assert_eq!(told.look(&second.id, Some(&other)).await.presence, Presence::Missing);
    let result = stage.lifecycle(true).run(ask("epsilon")).await.unwrap();
    assert_eq!((result.route, reply(&result).user_turns), (Route::Resumed, 3), "the first is as it was");
    assert_eq!(stage.kept(&told.id), original, "the original is untouched");
}

/// In the agent's own place it is done, or refused; never done so that the CLI does not find it.
pub(super) async fn in_the_agents_own_place(cli: &Pinned) {
    let stage = Stage::new(cli);
    let lifecycle = stage.lifecycle(true).state_dirs(false);
    for prompt in ["alpha", "beta"] {
        lifecycle.run(stage.request(prompt)).await.unwrap();
    }
    let (id, version) = (stage.bound().await, Version::parse(&cli.version).unwrap());
    let told = Told { stage, id, version, after_alpha: Inspection::MISSING };
    let keep = Spot { native_id: told.id.clone(), turns: 1, bytes: None };
    let branch = match told.branch(&keep, None, None).await {
        Branched::Done(branch) => branch,
        Branched::Refused(BranchRefusal::Unsupported(_)) if !told.stage.rules.branches_at_home => return,
        other => panic!("{other:?}"),
    };
    assert!(told.stage.rules.branches_at_home);
    told.bind(&told.stage.key(), &branch.id).await;
    let result = lifecycle.run(told.stage.request("gamma")).await.unwrap();
    assert_eq!((result.route, result.session_id.as_ref()), (Route::Resumed, Some(&branch.id)));
    assert_eq!((reply(&result).user_turns, reply(&result).first.as_str()), (2, "alpha"));
    told.bind(&told.stage.key(), &told.id).await;
    let result = lifecycle.run(told.stage.request("gamma")).await.unwrap();
    assert_eq!((result.route, reply(&result).user_turns), (Route::Resumed, 3));
}
