//! What the CLI wrote, as lists and pages show it, and as it is continued from there.

use rejoin::core::Lifecycle;
use rejoin::core::decide::Reach;
use rejoin::history::{
    Block, EntryKind, ListedSession, PageQuery, Resumability, Scope, SessionsQuery, TranscriptPage,
};
use rejoin::{LlmResult, Route};

use crate::begun::Begun;
use crate::pinned::Pinned;
use crate::stage::{Stage, reply};

/// The one session that there is.
async fn only(lifecycle: &Lifecycle, scope: Scope) -> ListedSession {
    let mut query = SessionsQuery::default();
    query.list.scope = scope;
    let listing = lifecycle.list(&query).await.unwrap();
    assert!(listing.is_complete(), "{listing:?}");
    assert_eq!(listing.sessions.len(), 1, "{listing:?}");
    listing.sessions.into_iter().next().unwrap()
}

/// The words of a page, each with whether the user said them.
fn words(page: &TranscriptPage) -> Vec<(bool, String)> {
    let text = |blocks: &[Block]| {
        let texts = blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        // opencode 1.1 puts a newline before a prompt that comes from stdin.
        texts.collect::<Vec<_>>().join("").trim().to_owned()
    };
    let said = page.entries.iter().filter_map(|located| match &located.entry.kind {
        EntryKind::Prompt(blocks) => Some((true, text(blocks))),
        EntryKind::Reply(blocks) => Some((false, text(blocks))),
        _ => None,
    });
    said.filter(|(_, text)| !text.is_empty()).collect()
}

/// In the agent's own place and in a state dir: what it wrote is listed with what was said, read from its end, and is the one
/// that the next run continues.
pub(super) async fn listed_and_read(cli: &Pinned) {
    let stage = Begun::alpha_and_beta(cli).await;
    two_turns(&stage, &stage.lifecycle(true), stage.last()).await;

    let stage = Stage::new(cli);
    let lifecycle = stage.lifecycle(true).state_dirs(false);
    lifecycle.run(stage.request("alpha")).await.unwrap();
    let second = lifecycle.run(stage.request("beta")).await.unwrap();
    two_turns(&stage, &lifecycle, &second).await;
}

/// Lists and reads the session of `alpha` and `beta`.
async fn two_turns(stage: &Stage, lifecycle: &Lifecycle, second: &LlmResult) {
    let session = only(lifecycle, Scope::Exact(stage.place.project())).await;
    let entry = &session.entry;
    assert_eq!((session.key.as_ref(), session.bound), (Some(&stage.key()), true));
    assert_eq!(Some(&entry.id), second.session_id.as_ref());
    assert_eq!((entry.first_prompt.as_deref(), entry.turns), (Some("alpha"), Some(2)), "{entry:?}");
    assert_eq!((entry.resumable, entry.exact), (Resumability::Yes, true));
    assert_eq!(entry.cwd.as_deref(), Some(&*stage.place.project()));
    assert_eq!((entry.skipped_lines, entry.torn_tail), (0, false));
    let began = entry.began.unwrap();
    assert!(entry.updated.unwrap() >= began, "{entry:?}");

    let last = lifecycle.page(&session, &PageQuery::Last { turns: 1 }).await.unwrap();
    let expected = [(true, "beta".to_owned()), (false, second.text.clone())];
    assert_eq!(words(&last), expected, "{last:?}");
    let cursor = last.before.unwrap();
    let before = lifecycle.page(&session, &PageQuery::Before { cursor, turns: 1 }).await.unwrap();
    assert_eq!(words(&before)[0], (true, "alpha".to_owned()), "{before:?}");

    let restored = lifecycle.restore(&session).await.unwrap();
    assert_eq!((restored.turns, restored.open_calls.len()), (2, 0), "{restored:?}");
    assert_eq!(restored.usage, second.totals.usage, "what the runs counted is what the file tells");
}

/// What is added while somebody follows comes once, and whole.
pub(super) async fn followed(cli: &Pinned) {
    let stage = Begun::alpha(cli).await;
    let lifecycle = stage.lifecycle(true);
    let session = only(&lifecycle, Scope::All).await;
    let page = lifecycle.page(&session, &PageQuery::Last { turns: 1 }).await.unwrap();
    let second = lifecycle.run(stage.request("beta")).await.unwrap();
    let ask = PageQuery::After { cursor: page.after.unwrap(), records: 10_000 };
    let added = lifecycle.page(&session, &ask).await.unwrap();
    assert_eq!(words(&added), [(true, "beta".to_owned()), (false, second.text)], "{added:?}");
}

/// A folder that got another name, and a work tree that git moved: the session is listed where it was, and continued where
/// the version can.
pub(super) async fn listed_after_a_move(cli: &Pinned) {
    let stage = Stage::new(cli);
    let lifecycle = stage.lifecycle(true).state_dirs(false);
    let tree = stage.place.root.join("tree");
    stage.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let first = lifecycle.run(stage.request_in(&tree, "alpha")).await.unwrap();
    let moved = stage.place.root.join("moved");
    stage.git(&["worktree", "move", tree.to_str().unwrap(), moved.to_str().unwrap()]);
    // Folders that are gone are compared as they were written.
    let session = only(&lifecycle, Scope::Exact(tree)).await;
    assert_eq!(Some(session.entry.id), first.session_id);
    let second = lifecycle.run(stage.request_in(&moved, "beta")).await.unwrap();
    if cli.under_test().rules(cli).reach == Reach::Anywhere {
        assert_eq!((second.route, reply(&second).user_turns), (Route::Resumed, 2));
        assert_eq!(only(&lifecycle, Scope::All).await.entry.turns, Some(2));
    }
}
