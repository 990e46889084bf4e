//! Other folders: what the version can reach, and what is another project.

use rejoin::{LlmRequest, LlmResult, Route, Why};

use crate::pinned::Pinned;
use crate::stage::{Stage, reply, request};

fn reaches_anywhere(cli: &Pinned) -> bool {
    cli.at_least([2, 1, 238])
}

fn reaches_the_repository(cli: &Pinned) -> bool {
    cli.at_least([2, 1, 0])
}

/// The run resumed if the version can, else it fell back for this reason; in both cases it ran once.
fn check(result: &LlmResult, resumes: bool, why: Why, calls: usize) {
    let expected = if resumes { Route::Resumed } else { Route::FellBack(why) };
    assert_eq!(result.route, expected);
    assert_eq!(reply(result).user_turns, if resumes { 2 } else { 1 });
    assert_eq!(calls, 1);
}

pub(crate) async fn unrelated_folder(cli: &Pinned) {
    let stage = Stage::new(cli);
    stage.run("alpha").await.unwrap();
    let other = stage.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let there = |prompt: &str| -> LlmRequest { request(&other, prompt) };
    let before = stage.turns();
    let yes = stage
        .row("another project, with a yes", true, there("beta").enter_other_project(true))
        .await
        .unwrap();
    check(&yes, reaches_anywhere(cli), Why::WorkdirDiffers, stage.turns() - before);

    let stage = Stage::new(cli);
    stage.run("alpha").await.unwrap();
    let other = stage.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let before = stage.turns();
    let no = stage.row("another project", true, request(&other, "beta")).await.unwrap();
    check(&no, false, Why::ProjectDiffers, stage.turns() - before);
}

pub(crate) async fn another_work_tree(cli: &Pinned) {
    for look in [true, false] {
        let stage = Stage::new(cli);
        stage.run("alpha").await.unwrap();
        let tree = stage.root().join("tree");
        stage.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
        let before = stage.turns();
        let name = if look { "another work tree" } else { "another work tree, nobody looks" };
        let result = stage.row(name, look, request(&tree, "beta")).await.unwrap();
        check(&result, reaches_the_repository(cli), Why::WorkdirDiffers, stage.turns() - before);
    }
}

pub(crate) async fn a_work_tree_that_is_gone(cli: &Pinned) {
    let stage = Stage::new(cli);
    let tree = stage.root().join("tree");
    stage.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    stage.lifecycle(true).run(request(&tree, "alpha")).await.unwrap();
    stage.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    let before = stage.turns();
    let result = stage.row("a work tree that is gone", true, stage.request("beta")).await.unwrap();
    check(&result, reaches_anywhere(cli), Why::WorktreeGone, stage.turns() - before);
}

pub(crate) async fn moved_folder(cli: &Pinned) {
    let stage = Stage::new(cli);
    stage.run("alpha").await.unwrap();
    let moved = stage.root().join("moved");
    std::fs::rename(&stage.project, &moved).unwrap();
    let before = stage.turns();
    let result = stage.row("moved folder", true, request(&moved, "beta")).await.unwrap();
    check(&result, reaches_anywhere(cli), Why::WorkdirDiffers, stage.turns() - before);
}
