//! What every agent must do under Rejoin, on every pinned version.

mod branch;
mod command;
mod faults;
mod files;
mod folders;
mod history;
pub(crate) mod kills;
mod prompts;
mod relocate;
mod rewind;
mod sandbox;
mod turns;

use libtest_mimic::{Failed, Trial};

use crate::pinned::Pinned;

/// A trial of an asynchronous function that takes the CLI.
#[macro_export]
macro_rules! trial {
    ($cli:expr, $module:ident::$name:ident) => {
        $crate::scenarios::trial($cli, concat!(stringify!($module), "::", stringify!($name)), |cli| {
            Box::pin(async move { $module::$name(&cli).await })
        })
    };
}

type Running = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// A trial with a runtime of its own.
pub(crate) fn trial(cli: &Pinned, name: &str, run: impl FnOnce(Pinned) -> Running + Send + 'static) -> Trial {
    let cli = cli.clone();
    Trial::test(format!("{}-{}::{name}", cli.agent, cli.version), move || {
        let runtime = tokio::runtime::Runtime::new().map_err(Failed::from)?;
        runtime.block_on(run(cli));
        Ok(())
    })
}

/// The trials that all agents have in common, those of damages and faults as the rules of the version have them.
pub(crate) fn trials(cli: &Pinned) -> Vec<Trial> {
    let mut trials = vec![
        trial!(cli, turns::fresh_resume_fork),
        trial!(cli, turns::usage_is_of_the_run),
        trial!(cli, turns::a_required_resume_is_refused_when_the_session_is_gone),
        trial!(cli, branch::between_turns),
        trial!(cli, branch::into_another_state_dir),
        trial!(cli, branch::in_the_agents_own_place),
        trial!(cli, command::a_session_of_a_person),
        trial!(cli, command::a_mailbox_goes_on),
        trial!(cli, files::malformed_id),
        trial!(cli, folders::unrelated_folder),
        trial!(cli, folders::a_folder_without_a_repository),
        trial!(cli, folders::another_work_tree),
        trial!(cli, folders::a_work_tree_that_is_gone),
        trial!(cli, folders::moved_folder),
        trial!(cli, history::listed_and_read),
        trial!(cli, history::followed),
        trial!(cli, history::listed_after_a_move),
        trial!(cli, kills::the_cli_in_a_resumed_turn),
        trial!(cli, kills::the_cli_in_the_first_turn),
        trial!(cli, kills::the_runner_in_mid_turn),
        trial!(cli, kills::cancelled_in_mid_turn),
        trial!(cli, kills::two_runners_at_once),
        trial!(cli, prompts::commands_are_text),
        trial!(cli, prompts::dashes_and_a_long_one),
        trial!(cli, relocate::relocated_after_a_rename),
        trial!(cli, relocate::relocated_after_git_worktree_move),
        trial!(cli, rewind::files_by_tool_and_by_shell),
        trial!(cli, rewind::undone),
        trial!(cli, rewind::conversation_alone),
        trial!(cli, rewind::files_alone),
        trial!(cli, rewind::a_fork_keeps_the_original),
        trial!(cli, rewind::cleared_and_rejoined),
        trial!(cli, rewind::a_runner_killed_in_a_run),
        trial!(cli, sandbox::cancelled_in_mid_turn),
        trial!(cli, sandbox::a_conversation_goes_on_and_sees_nothing_of_others),
    ];
    let rules = cli.under_test().rules(cli);
    for (damage, looked_at, unseen) in rules.damages {
        let name = format!("files::{}", damage.name().replace(' ', "_"));
        trials.push(trial(cli, &name, move |cli| {
            Box::pin(async move { files::damaged(&cli, damage, looked_at, unseen).await })
        }));
    }
    for (fault, end) in rules.faults {
        let name = format!("faults::{}", fault.name().replace(' ', "_"));
        trials.push(trial(cli, &name, move |cli| {
            Box::pin(async move { faults::in_a_resumed_turn(&cli, fault, end).await })
        }));
    }
    trials
}
