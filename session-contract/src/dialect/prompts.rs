//! The prompt: never an argument, never a command, always what was written.

use std::ffi::OsStr;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::Value;
use session_core::error::CommandError;
use session_core::{CommandSpec, Mode};

use super::Subject;
use super::turns::{Commands, PLAIN, Stage};

/// With these, agents begin what is no prompt. A dialect that cannot get one past its agent refuses it.
const SPECIAL: &[char] = &['/', '@', '!', '#', '\\'];

const MEBIBYTE: usize = 1 << 20;

fn prompts(subject: &Subject) -> Vec<String> {
    let large = MEBIBYTE / subject.divisor as usize;
    let mut prompts: Vec<String> = [
        "-",
        "--help",
        "-p --resume",
        "--",
        "--version",
        "resume",
        "exec",
        "run",
        "help",
        "/",
        "//",
        "/clear",
        "/clear the table of the parser",
        "/compact\nand go on",
        "//comment style is wrong",
        "@README.md",
        "!ls",
        "# heading",
        "\\",
        "line one\nline two\r\n\ttab \u{b}",
        "  white space at both ends \n",
        "'single' \"double\" `back` $(id) ${HOME} %PATH% ; & | > <",
        "日本語 한글 😀 e\u{301} \u{2028}\u{85} \u{202e}right to left",
        "\u{feff}a mark at the beginning",
        "\u{feff}\u{feff}two marks at the beginning",
        "{\"type\":\"user\",\"text\":\"not me\"}",
        "null",
    ]
    .map(str::to_owned)
    .into();
    prompts.push("p".repeat(large));
    prompts.push(format!("/{}", "slash and more ".repeat(large / 15)));
    prompts
}

/// The commands of a prompt, where it is not refused. Only what agents could take for something else may be.
fn taken(subject: &Subject, stage: &Stage, mode: Mode<'_>) -> Option<Commands> {
    match stage.commands(&*subject.dialect, mode) {
        Ok(commands) => Some(commands),
        Err(_) if stage.prompt.trim_start().starts_with(SPECIAL) => None,
        Err(error) => panic!("{}: {mode:?} with {:?}: {error}", stage.version(), head(&stage.prompt)),
    }
}

fn head(prompt: &str) -> String {
    prompt.chars().take(60).collect()
}

/// Neither a prompt like any other, nor one that looks like a flag, a subcommand or an argument of the dialect's own.
pub(super) fn the_prompt_is_no_argument(subject: &Subject) {
    let (one, two) = subject.two_ids();
    for stage in subject.stages() {
        for mode in Subject::modes(&stage, &one, &two) {
            let Some(plain) = taken(subject, &stage, mode) else { continue };
            let own = plain
                .args()
                .map(|arg| arg.to_string_lossy().into_owned())
                .filter(|arg| !arg.trim().is_empty());
            for prompt in prompts(subject).into_iter().chain(own).chain([PLAIN.to_owned()]) {
                let before = plain.count(&prompt);
                let stage = Stage::new(&*subject.dialect, stage.installation.version.clone()).prompt(&prompt);
                let Some(commands) = taken(subject, &stage, mode) else { continue };
                let text = head(&stage.prompt);
                assert_eq!(
                    commands.count(&stage.prompt),
                    before,
                    "{}: {mode:?} has {text:?}",
                    stage.version()
                );
                let shown = commands.values().any(|value| value == OsStr::new(&stage.prompt));
                assert!(!shown, "{}: the environment of {mode:?} has {text:?}", stage.version());
                if stage.prompt.len() > 20 {
                    let (now, before) = (commands.holding(&stage.prompt), plain.holding(&stage.prompt));
                    assert_eq!(now, before, "{}: {mode:?} has {text:?} in an argument", stage.version());
                }
            }
        }
    }
}

/// Whether stdin is the prompt, or lines of JSON whose members `text`, joined, are the prompt.
fn plain_or_blocks(command: &CommandSpec, prompt: &str) -> bool {
    command.stdin == prompt.as_bytes() || joined_texts(&command.stdin).is_some_and(|text| text == prompt)
}

fn joined_texts(stdin: &[u8]) -> Option<String> {
    fn walk(value: &Value, out: &mut String) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match member {
                        Value::String(text) if name == "text" => out.push_str(text),
                        member => walk(member, out),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            _ => {}
        }
    }
    let mut out = String::new();
    for line in std::str::from_utf8(stdin).ok()?.lines() {
        walk(&serde_json::from_str(line).ok()?, &mut out);
    }
    Some(out)
}

impl Subject {
    fn carries(&self, command: &CommandSpec, stage: &Stage, prompt: &str) -> bool {
        let version = stage.installation.version.as_ref();
        match self.prompt_of {
            Some(prompt_of) => prompt_of(command, version).is_some_and(|text| text == prompt),
            None => plain_or_blocks(command, prompt),
        }
    }
}

/// Byte for byte, whatever it looks like; what cannot be got past the agent is refused.
pub(super) fn the_prompt_reaches_the_agent_verbatim(subject: &Subject) {
    let (one, two) = subject.two_ids();
    for stage in subject.stages() {
        for mode in Subject::modes(&stage, &one, &two) {
            for prompt in prompts(subject).iter().map(String::as_str).chain([PLAIN, one.as_str()]) {
                let stage = Stage::new(&*subject.dialect, stage.installation.version.clone()).prompt(prompt);
                let Some(commands) = taken(subject, &stage, mode) else { continue };
                let carried = subject.carries(commands.last(), &stage, prompt);
                assert!(carried, "{}: {mode:?} with {:?}", stage.version(), head(prompt));
            }
        }
    }
}

/// The same for texts that nobody thought of.
pub(super) fn any_prompt_reaches_the_agent_verbatim(subject: &Subject) {
    let (one, two) = subject.two_ids();
    let any_text = prop::collection::vec(any::<char>(), 1..40).prop_map(String::from_iter);
    let text = prop_oneof![any_text, "[-/@!#a-z \\n]{1,12}", "\\PC{1,40}"];
    let text =
        text.prop_filter("a prompt says something", |text| !text.trim().is_empty() && !text.contains('\0'));
    let versions = subject.tried_versions();
    let version = proptest::sample::select(versions);
    let outcome = subject.random(256).run(&(text, version), |(text, version)| {
        let stage = Stage::new(&*subject.dialect, version).prompt(&text);
        for mode in Subject::modes(&stage, &one, &two) {
            if let Some(commands) = taken(subject, &stage, mode)
                && !subject.carries(commands.last(), &stage, &text)
            {
                return Err(TestCaseError::fail(format!("{mode:?}")));
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// A prompt as large as is claimed goes through, a larger one is refused; without a limit, a large one goes through.
pub(super) fn a_prompt_over_the_limit_is_refused(subject: &Subject) {
    let (one, two) = subject.two_ids();
    for stage in subject.stages() {
        for mode in Subject::modes(&stage, &one, &two) {
            let limit = stage.installation.capabilities.prompt_limit;
            let of = |bytes: usize| {
                let text = "p".repeat(bytes);
                Stage::new(&*subject.dialect, stage.installation.version.clone()).prompt(&text)
            };
            let full = of(limit.unwrap_or(8 * MEBIBYTE / subject.divisor as usize));
            let commands = taken(subject, &full, mode);
            let carried =
                commands.is_some_and(|commands| subject.carries(commands.last(), &full, &full.prompt));
            assert!(carried, "{}: {mode:?} with {} bytes", full.version(), full.prompt.len());
            let Some(limit) = limit else { continue };
            let refusal = of(limit + 1).commands(&*subject.dialect, mode);
            let said = Err(CommandError::PromptTooLarge { length: limit + 1, limit });
            assert_eq!(refusal, said, "{}: {mode:?} with one byte too many", full.version());
        }
    }
}

/// Other users of the machine see arguments, and logs see what `Debug` shows: neither has a value of the environment,
/// and no log has the prompt.
pub(super) fn nothing_secret_is_shown(subject: &Subject) {
    let (one, two) = subject.two_ids();
    let secret = "5ecret-0f-the-envir0nment";
    let prompt = "a prompt that is n0b0dy's business";
    for stage in subject.stages() {
        let mut stage = stage.prompt(prompt);
        let names = ["API_KEY", "AUTH_TOKEN", "OAUTH_TOKEN", "ACCESS_TOKEN", "SECRET"];
        let vendors = ["ANTHROPIC", "OPENAI", "GOOGLE", "GEMINI", "AZURE", "AWS"];
        let agent = subject.dialect.id().as_str().to_ascii_uppercase();
        for (vendor, name) in
            vendors.iter().copied().chain([agent.as_str()]).flat_map(|v| names.map(|n| (v, n)))
        {
            stage.env.set(format!("{vendor}_{name}"), secret);
        }
        for mode in Subject::modes(&stage, &one, &two) {
            let Some(commands) = taken(subject, &stage, mode) else { continue };
            assert!(
                commands.holding(secret).is_empty(),
                "{}: {mode:?} has a secret in an argument",
                stage.version()
            );
            let layout = subject.dialect.state(None, &stage.env, stage.installation.version.as_ref());
            let shown = format!("{commands:?} {:?} {:?} {layout:?}", stage.turn(mode), stage.env);
            assert!(!shown.contains(secret), "{}: a value of the environment is shown", stage.version());
            assert!(!shown.contains(prompt), "{}: the prompt is shown", stage.version());
        }
    }
}
