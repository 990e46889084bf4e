//! Claude Code.

mod own;

use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use rejoin::adapters::{ClaudeOptions, claude};
use rejoin::core::Program;
use rejoin::core::decide::Reach;
use rejoin::process::{Bubblewrap, Environment};
use rejoin::{Agent, NativeId, Route, Usage, Why};

use crate::agents::{AgentUnderTest, Damage, End, Fate, Fault, Place, Rules, damage_lines};
use crate::pinned::Pinned;
use crate::trial;

#[derive(Debug)]
pub(crate) struct Claude;

/// The session's file.
fn transcript(place: &Place, id: &NativeId) -> PathBuf {
    let name = format!("{id}.jsonl");
    let mut files = place.state_files().into_iter();
    files
        .find(|path| path.file_name().is_some_and(|found| found == name.as_str()))
        .unwrap_or_else(|| panic!("no transcript of {id}"))
}

fn configured(program: Program, environment: Environment) -> rejoin::adapters::Claude {
    let options = ClaudeOptions::new().program(program).permission_mode("bypassPermissions").unwrap();
    claude().options(options).environment(environment)
}

impl AgentUnderTest for Claude {
    fn id(&self) -> &'static str {
        "claude"
    }

    fn environment(&self, place: &Place, bare: Environment) -> Environment {
        bare.set("ANTHROPIC_BASE_URL", &place.model)
            .set("ANTHROPIC_API_KEY", "none")
            .set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .set("DISABLE_AUTOUPDATER", "1")
            .set("DISABLE_TELEMETRY", "1")
            .set("CLAUDE_CODE_MAX_RETRIES", "1")
    }

    fn agent(&self, program: Program, environment: Environment) -> Agent {
        configured(program, environment).into()
    }

    fn sandboxed(&self, program: Program, environment: Environment, launcher: Bubblewrap) -> Agent {
        configured(program, environment).launcher(launcher).into()
    }

    fn rules(&self, cli: &Pinned) -> Rules {
        let newer = cli.at_least([2, 1, 0]);
        let reach = match () {
            () if cli.at_least([2, 1, 238]) => Reach::Anywhere,
            () if newer => Reach::Repository,
            () => Reach::SameFolder,
        };
        // 2.0.14 glues its next record to an open last line, and then loses all before it. With a look, the line is
        // ended first.
        let cut = if newer { Fate::Resumes } else { Fate::ResumesOnce };
        let missing = Fate::Lost(Why::SessionMissing);
        Rules {
            reach,
            forks: true,
            branches_at_home: true,
            unknown_id: "00000000-2222-4222-8222-222222222222",
            malformed_id: "nope",
            commands: &["/clear", "/nosuchcommand and more", "/compact"],
            long_prompt: 1 << 20,
            usage: Usage {
                input_tokens: 100,
                output_tokens: 20,
                cache_read_tokens: 3,
                cache_write_tokens: 7,
            },
            has_cost: true,
            // 2.1.197 and 2.1.332 write the prompt some 30 ms after they asked the model; a kill before that leaves
            // nothing. 2.0.14 writes nothing before the first answer.
            answers_anywhere: true,
            keeps_prompts_at_once: newer,
            // Seen on 2.0.14 alone.
            titles_other_sessions: !newer,
            after_a_killed_first_turn: match newer {
                true => Route::Resumed,
                false => Route::FellBack(Why::SessionNotStarted),
            },
            damages: vec![
                (Damage::Deleted, missing, missing),
                (Damage::Emptied, Fate::Lost(Why::SessionEmpty), missing),
                (Damage::Garbage, Fate::Lost(Why::SessionDamaged), missing),
                (Damage::CutLastLine, Fate::Resumes, cut),
                (Damage::GarbageInTheMiddle, Fate::Resumes, Fate::Resumes),
                (Damage::UnknownId, missing, missing),
            ],
            faults: vec![
                (Fault::Status(401), End::Fails(Why::Unauthenticated)),
                (Fault::Status(429), End::Fails(Why::RateLimited)),
                (Fault::Status(529), End::Fails(Why::TransientFailure)),
                (Fault::Dropped, End::Completes),
            ],
        }
    }

    fn damage(&self, place: &Place, id: &NativeId, damage: Damage) {
        damage_lines(&transcript(place, id), damage);
    }

    fn kept(&self, place: &Place, id: &NativeId) -> Vec<u8> {
        std::fs::read(transcript(place, id)).unwrap()
    }

    fn one_prompt(&self, session: Option<&NativeId>, prompt: &str) -> Vec<String> {
        let words = session.map(|id| ["--resume", id.as_str()]).into_iter().flatten();
        ["-p"].into_iter().chain(words).chain([prompt]).map(str::to_owned).collect()
    }

    fn tool_call(&self, _cli: &Pinned, command: &str) -> String {
        format!("[[tool Bash {}]]", serde_json::json!({ "command": command, "description": "…" }))
    }

    fn edit_call(&self, _cli: &Pinned, file: &Path, line: &str) -> String {
        format!("[[tool Write {}]]", serde_json::json!({ "file_path": file, "content": format!("{line}\n") }))
    }

    fn logged_out(&self, environment: Environment) -> Option<Environment> {
        Some(environment.remove("ANTHROPIC_API_KEY"))
    }

    fn own_trials(&self, cli: &Pinned) -> Vec<Trial> {
        vec![
            trial!(cli, own::the_state_dir_holds_the_session_and_the_home_does_not),
            trial!(cli, own::id_in_use),
            trial!(cli, own::what_a_recipe_says_reaches_the_model),
            trial!(cli, own::a_summary_by_the_agent_leaves_no_session),
        ]
    }
}
