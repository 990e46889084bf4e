//! Dialects that claim what they do not do, and keep sessions where they must not.

use std::path::PathBuf;

use session_core::error::CommandError;
use session_core::*;

use super::Mutant;
use crate::sample::{Sample, at_least};

pub(super) const STATE: &[Mutant] = &[
    ("keeps sessions at home", "sessions_lie_in_the_state_dir", |d| {
        d.state = |_, layout| StateLayout {
            sessions: Some(PathBuf::from("/home/user/.sample/sessions")),
            ..layout
        };
    }),
    ("does not tell the agent of its state dir", "sessions_lie_in_the_state_dir", |d| {
        d.state = |_, layout| StateLayout { env: Vec::new(), ..layout };
    }),
    ("empties the sessions before a run", "sessions_lie_in_the_state_dir", |d| {
        d.state = |_, layout| StateLayout { scratch: layout.sessions.iter().cloned().collect(), ..layout };
    }),
    ("takes links of the user's own home away", "sessions_lie_in_the_state_dir", |d| {
        d.state =
            |_, layout| StateLayout { hidden: vec![PathBuf::from("/home/user/.sample/login")], ..layout };
    }),
    ("makes links in the user's home", "sessions_lie_in_the_state_dir", |d| {
        d.state = |_, mut layout| {
            for link in &mut layout.links {
                link.at = PathBuf::from("/home/user/.sample/config");
            }
            layout
        };
    }),
    ("uses a state dir that it does not claim", "sessions_lie_in_the_state_dir", |d| {
        d.capabilities = |_, mut capabilities| {
            capabilities.session_state_path = None;
            capabilities
        };
    }),
    ("shows a sandbox the whole home", "two_state_dirs_share_nothing", |d| {
        d.sandboxed = |mut layout| {
            layout.mounts.push(Mount::read_only("/home/user", Purpose::Config).optional());
            layout
        };
    }),
    ("keeps the sessions of a sandbox at home", "sessions_lie_in_the_state_dir", |d| {
        d.sandboxed = |mut layout| {
            layout.sessions = Some(PathBuf::from("/home/user/.sample/sessions"));
            layout
        };
    }),
    ("keeps the sessions of a sandbox elsewhere in the state dir", "sessions_lie_in_the_state_dir", |d| {
        d.sandboxed = |mut layout| {
            layout.sessions = layout.sessions.map(|sessions| sessions.join("of-sandboxes"));
            layout
        };
    }),
    ("does not tell the agent in a sandbox of its state dir", "sessions_lie_in_the_state_dir", |d| {
        d.sandboxed = |layout| StateLayout { env: Vec::new(), ..layout };
    }),
    (
        "lets a sandbox write the user's configuration, where there is one",
        "sessions_lie_in_the_state_dir",
        |d| {
            d.sandboxed = |mut layout| {
                layout.mounts.push(Mount::writable("/home/user/.sample/config", Purpose::Config).optional());
                layout
            };
        },
    ),
    ("has something for a sandbox without a state dir", "without_a_state_dir_nothing_is_changed", |d| {
        d.state = |state, mut layout| {
            if state.is_none() {
                layout.mounts.push(Mount::writable("/home/user/.sample", Purpose::StateDir));
            }
            layout
        };
    }),
    ("links all state dirs to one folder", "two_state_dirs_share_nothing", |d| {
        d.state = |state, mut layout| {
            if let Some(state) = state {
                layout.links.push(Link { at: state.join("all"), target: state.parent().unwrap().to_owned() });
            }
            layout
        };
    }),
    ("chooses a state dir where none is given", "without_a_state_dir_nothing_is_changed", |d| {
        d.state = |state, mut layout| {
            if state.is_none() {
                layout.env.push(EnvChange::set("SAMPLE_HOME", "/tmp/sample"));
            }
            layout
        };
    }),
];

pub(super) const CLAIMS: &[Mutant] = &[
    ("claims chosen ids and drops them", "a_chosen_id_is_carried_or_refused", |d| {
        d.command = |_, turn, env, spec| match turn.mode {
            Mode::Fresh { .. } => {
                Sample::new().command(&Turn { mode: Mode::Fresh { id: None }, ..*turn }, env)
            }
            _ => spec,
        };
    }),
    ("drops a chosen id where none is claimed", "a_chosen_id_is_carried_or_refused", |d| {
        d.command = |_, turn, env, spec| match (turn.mode, spec) {
            (Mode::Fresh { .. }, Err(CommandError::Unsupported { .. })) => {
                Sample::new().command(&Turn { mode: Mode::Fresh { id: None }, ..*turn }, env)
            }
            (_, spec) => spec,
        };
    }),
    ("makes every new session the same id", "a_new_id_has_the_agents_shape", |d| {
        d.new_id = |_| NativeId::new("s-0000000000");
    }),
    ("makes ids in a shape of its own", "a_new_id_has_the_agents_shape", |d| {
        d.new_id = |id| NativeId::new(format!("new-{id}"));
    }),
    ("claims forks and resumes", "a_fork_is_carried_or_refused", |d| {
        d.command = |_, turn, env, spec| match turn.mode {
            Mode::Fork { source, .. } => {
                Sample::new().command(&Turn { mode: Mode::Resume { id: source }, ..*turn }, env)
            }
            _ => spec,
        };
    }),
    ("forks where no fork is claimed", "a_fork_is_carried_or_refused", |d| {
        d.capabilities = |_, mut capabilities| {
            capabilities.fork = ForkSupport::No;
            capabilities
        };
    }),
    ("passes over the file of a fork's original", "a_fork_is_carried_or_refused", |d| {
        d.command = |_, turn, env, spec| match turn.mode {
            Mode::Fork { source, id, .. } => {
                let mode = Mode::Fork { source, transcript: None, id };
                Sample::new().command(&Turn { mode, ..*turn }, env)
            }
            _ => spec,
        };
    }),
    ("resumes with a version that cannot", "a_resume_is_carried_or_refused", |d| {
        d.capabilities = |version, mut capabilities| {
            capabilities.headless_resume &= at_least(version, 3);
            capabilities
        };
    }),
    ("has the oldest rules for what it does not know", "an_unknown_version_has_the_newest_rules", |d| {
        d.capabilities = |version, capabilities| match version {
            None => Sample::new().capabilities(Version::parse("1.0.0").as_ref()),
            Some(_) => capabilities,
        };
    }),
    ("calls every version verified", "an_unknown_version_has_the_newest_rules", |d| {
        d.capabilities = |_, mut capabilities| {
            capabilities.verified = true;
            capabilities
        };
    }),
    ("loses the resume with a new version", "no_version_loses_the_resume_unsaid", |d| {
        d.capabilities = |version, mut capabilities| {
            capabilities.resumable_sessions &= !at_least(version, 3);
            capabilities
        };
    }),
    ("claims that a resume copies, and it does not", "the_id_of_a_resume_is_as_claimed", |d| {
        d.capabilities = |_, mut capabilities| {
            capabilities.id_on_resume = IdOnResume::Replaced;
            capabilities
        };
    }),
    ("calls a version verified that nobody saw", "what_is_claimed_as_verified_is_shown", |d| {
        d.capabilities = |version, mut capabilities| {
            capabilities.verified |= version.is_some_and(|version| version.text == "0.9.0");
            capabilities
        };
    }),
];
