//! Dialects that build wrong commands.

use std::sync::atomic::Ordering;

use session_core::*;

use super::Mutant;
use crate::sample::{Sample, at_least};

fn with_args(mut spec: CommandSpec, args: &[&str]) -> CommandSpec {
    spec.args.extend(args.iter().map(Into::into));
    spec
}

fn change_args(spec: CommandSpec, change: impl Fn(&str) -> Vec<String>) -> CommandSpec {
    let args = spec.args.iter().flat_map(|arg| change(arg.to_str().unwrap()));
    CommandSpec { args: args.map(Into::into).collect(), ..spec }
}

pub(super) const COMMANDS: &[Mutant] = &[
    ("remembers the session of an earlier turn", "a_fresh_command_mentions_no_session", |d| {
        d.command = |memory, turn, _, spec| {
            let mut last = memory.last.lock().unwrap();
            match turn.mode {
                Mode::Resume { id } => *last = Some(id.clone()),
                Mode::Fresh { .. } => {
                    let Some(last) = last.as_ref() else { return spec };
                    return spec.map(|spec| with_args(spec, &["--continue", last.as_str()]));
                }
                Mode::Fork { .. } => {}
            }
            spec
        };
    }),
    ("takes the session of the environment into a fresh run", "a_fresh_command_mentions_no_session", |d| {
        d.command = |_, turn, env, spec| match (turn.mode, env.get("SESSION_ID")) {
            (Mode::Fresh { .. }, Some(_)) => spec.map(|spec| with_args(spec, &["--continue"])),
            _ => spec,
        };
    }),
    ("splits the id in two arguments", "a_resume_carries_its_id_once", |d| {
        d.command = |_, _, _, spec| {
            let split = |arg: &str| match arg.strip_prefix("s-") {
                Some(digits) => vec!["s-".to_owned(), digits.to_owned()],
                None => vec![arg.to_owned()],
            };
            spec.map(|spec| change_args(spec, split))
        };
    }),
    ("glues the id to a flag", "a_resume_carries_its_id_once", |d| {
        d.command = |_, turn, _, spec| match turn.mode {
            Mode::Resume { id } => {
                let glue = |arg: &str| match arg {
                    "--continue" => vec![format!("-c{id}")],
                    arg if arg == id.as_str() => vec![],
                    arg => vec![arg.to_owned()],
                };
                spec.map(|spec| change_args(spec, glue))
            }
            _ => spec,
        };
    }),
    ("names the session twice", "a_resume_carries_its_id_once", |d| {
        d.command = |_, turn, _, spec| match turn.mode {
            Mode::Resume { id } => spec.map(|spec| with_args(spec, &["--expect", id.as_str()])),
            _ => spec,
        };
    }),
    ("resumes the latest session in place of the one asked for", "a_resume_is_carried_or_refused", |d| {
        d.command = |_, turn, _, spec| match turn.mode {
            Mode::Resume { id } => {
                let latest = |arg: &str| vec![if arg == id.as_str() { "latest" } else { arg }.to_owned()];
                spec.map(|spec| change_args(spec, latest))
            }
            _ => spec,
        };
    }),
    ("passes any id on", "a_malformed_id_is_refused", |d| {
        d.accepts = |_, _| true;
        d.command = |_, turn, _, spec| match turn.mode {
            Mode::Resume { id } => Ok(CommandSpec {
                args: vec!["run".into(), "--json".into(), "--continue".into(), id.as_str().into()],
                stdin: turn.prompt.into(),
                ..CommandSpec::default()
            }),
            _ => spec,
        };
    }),
    ("numbers its commands", "a_command_depends_on_its_turn_alone", |d| {
        d.command = |memory, _, _, spec| {
            let count = memory.count.fetch_add(1, Ordering::SeqCst);
            spec.map(|spec| with_args(spec, &[&format!("--count={count}")]))
        };
    }),
    ("makes the name an argument of its own", "a_name_is_no_flag", |d| {
        d.command =
            |_, turn, _, spec| match turn.name.filter(|_| at_least(turn.installation.version.as_ref(), 3)) {
                Some(name) => spec.map(|spec| with_args(spec, &["--title", name.as_str()])),
                None => spec,
            };
    }),
    ("passes a name where none is claimed", "a_name_is_no_flag", |d| {
        d.command = |_, turn, _, spec| match turn.name {
            Some(name) => spec.map(|spec| with_args(spec, &[&format!("--label={name}")])),
            None => spec,
        };
    }),
    ("claims names and drops them", "a_name_is_no_flag", |d| {
        d.command = |_, _, _, spec| {
            let drop = |arg: &str| if arg.starts_with("--title") { vec![] } else { vec![arg.to_owned()] };
            spec.map(|spec| change_args(spec, drop))
        };
    }),
    ("asks for the version by running a turn", "the_version_probe_prompts_nothing", |d| {
        d.probe = |_| CommandSpec {
            args: vec!["run".into()],
            stdin: b"/version".to_vec(),
            ..CommandSpec::default()
        };
    }),
];

pub(super) const PROMPTS: &[Mutant] = &[
    ("passes the prompt as an argument", "the_prompt_is_no_argument", |d| {
        d.command = |_, turn, _, spec| {
            spec.map(|spec| CommandSpec { stdin: Vec::new(), ..with_args(spec, &["--", turn.prompt]) })
        };
    }),
    ("passes the prompt in the environment", "the_prompt_is_no_argument", |d| {
        d.command = |_, turn, _, spec| {
            spec.map(|mut spec| {
                spec.env.push(EnvChange::set("SAMPLE_PROMPT", turn.prompt));
                spec
            })
        };
    }),
    ("trims the prompt", "the_prompt_reaches_the_agent_verbatim", |d| {
        d.command =
            |_, _, _, spec| spec.map(|spec| CommandSpec { stdin: spec.stdin.trim_ascii().to_vec(), ..spec });
    }),
    ("puts words of its own before the prompt", "the_prompt_reaches_the_agent_verbatim", |d| {
        d.command = |_, _, _, spec| {
            spec.map(|spec| CommandSpec {
                stdin: [b"You are helpful.\n", spec.stdin.as_slice()].concat(),
                ..spec
            })
        };
    }),
    ("gets a slash past the agent by a space", "the_prompt_reaches_the_agent_verbatim", |d| {
        d.command = |_, turn, _, spec| {
            spec.map(|spec| match turn.prompt.starts_with('/') {
                true => CommandSpec { stdin: format!(" {}", turn.prompt).into_bytes(), ..spec },
                false => spec,
            })
        };
    }),
    ("cuts long prompts", "the_prompt_reaches_the_agent_verbatim", |d| {
        d.command = |_, _, _, spec| {
            spec.map(|mut spec| {
                spec.stdin.truncate(40_000);
                spec
            })
        };
    }),
    ("replaces characters that it does not know", "any_prompt_reaches_the_agent_verbatim", |d| {
        d.command = |_, _, _, spec| {
            spec.map(|spec| {
                let text = String::from_utf8(spec.stdin).unwrap();
                let known =
                    |c: char| if c.is_control() && !c.is_whitespace() && c != '\u{b}' { '?' } else { c };
                CommandSpec { stdin: text.chars().map(known).collect::<String>().into_bytes(), ..spec }
            })
        };
    }),
    ("does not keep its own limit", "a_prompt_over_the_limit_is_refused", |d| {
        d.capabilities = |_, mut capabilities| {
            capabilities.prompt_limit = capabilities.prompt_limit.map(|_| 150_000);
            capabilities
        };
        d.command = |_, turn, env, _| {
            let mut installation = turn.installation.clone();
            installation.capabilities.prompt_limit = None;
            Sample::new().command(&Turn { installation: &installation, ..*turn }, env)
        };
    }),
    ("passes a credential as an argument", "nothing_secret_is_shown", |d| {
        d.command = |_, _, env, spec| {
            let key = env.get("SAMPLE_API_KEY").and_then(|key| key.to_str()).unwrap_or_default();
            spec.map(|spec| with_args(spec, &[&format!("--key={key}")]))
        };
    }),
];
