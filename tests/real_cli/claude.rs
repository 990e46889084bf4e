//! What Claude Code must do under Rejoin, on every pinned version.

mod faults;
mod files;
mod folders;
mod kills;
mod prompts;
mod turns;

use libtest_mimic::{Failed, Trial};

use crate::pinned::Pinned;

macro_rules! trials {
    ($cli:expr, $($module:ident::$name:ident,)*) => {
        vec![$({
            let cli: Pinned = $cli.clone();
            let name = format!("{}-{}::{}::{}", cli.agent, cli.version, stringify!($module), stringify!($name));
            Trial::test(name, move || {
                let runtime = tokio::runtime::Runtime::new().map_err(Failed::from)?;
                runtime.block_on($module::$name(&cli));
                Ok(())
            })
        },)*]
    };
}

pub(crate) fn trials(cli: &Pinned) -> Vec<Trial> {
    trials! { cli,
        turns::fresh_resume_fork,
        turns::the_state_dir_holds_the_session_and_the_home_does_not,
        turns::cost_and_usage_are_of_the_run,
        turns::a_required_resume_is_refused_when_the_session_is_gone,
        files::deleted,
        files::emptied,
        files::cut_in_its_last_line,
        files::garbage_in_the_middle,
        files::nothing_but_garbage,
        files::unknown_id,
        files::malformed_id,
        files::id_in_use,
        folders::unrelated_folder,
        folders::another_work_tree,
        folders::a_work_tree_that_is_gone,
        folders::moved_folder,
        faults::overloaded,
        faults::refused_login,
        faults::dropped_stream,
        faults::rate_limited,
        kills::the_cli_in_a_resumed_turn,
        kills::the_cli_in_the_first_turn,
        kills::the_runner_in_mid_turn,
        kills::cancelled_in_mid_turn,
        kills::two_runners_at_once,
        prompts::slash_commands_are_text,
        prompts::dashes_and_a_megabyte,
    }
}
