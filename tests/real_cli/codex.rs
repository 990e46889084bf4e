//! Codex.

mod own;
mod places;
mod versions;

use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use rejoin::adapters::{Codex, CodexOptions, codex};
use rejoin::core::Program;
use rejoin::core::decide::Reach;
use rejoin::process::{Bubblewrap, Environment};
use rejoin::{Agent, NativeId, Route, Usage, Why};

use crate::agents::{AgentUnderTest, Damage, End, Fate, Fault, Place, Rules, damage_lines};
use crate::pinned::Pinned;
use crate::trial;

#[derive(Debug)]
pub(crate) struct CodexCli;

/// The session's file.
fn transcript(place: &Place, id: &NativeId) -> PathBuf {
    let end = format!("-{id}.jsonl");
    let mut files = place.state_files().into_iter();
    files
        .find(|path| path.to_str().is_some_and(|path| path.ends_with(&end)))
        .unwrap_or_else(|| panic!("no transcript of {id}"))
}

/// The state dir that a session's file lies in.
fn state_dir(transcript: &Path) -> PathBuf {
    let of_sessions = |folder: &&Path| folder.join("sessions").is_dir();
    transcript.ancestors().find(of_sessions).unwrap().to_owned()
}

/// The agent with options of the trial's own.
fn agent_with(program: Program, environment: Environment, options: CodexOptions) -> Codex {
    codex().options(options.program(program).essential_traffic_only(true)).environment(environment)
}

const NO_UTF8: Damage = Damage::Other("no UTF-8 in the middle");
const FIRST_LINE_ONLY: Damage = Damage::Other("nothing but its first line");
const HALF_FIRST_LINE: Damage = Damage::Other("half of its first line");
const OTHER_DAY: Damage = Damage::Other("moved to the folder of another day");
const ARCHIVED: Damage = Damage::Other("archived");
const INDEX: Damage = Damage::Other("an index that is damaged");
const OLDER_RECORDS: Damage = Damage::Other("records of an older version");
const NEWER_FORMAT: Damage = Damage::Other("the format of a newer version");

impl AgentUnderTest for CodexCli {
    fn id(&self) -> &'static str {
        "codex"
    }

    fn prepare(&self, place: &Place) {
        let home = place.home().join(".codex");
        std::fs::create_dir_all(&home).unwrap();
        let config = format!(
            "model = \"gpt-5\"\nmodel_provider = \"fake\"\n\n[model_providers.fake]\nname = \"fake\"\n\
             base_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\nrequest_max_retries = 0\n\
             stream_max_retries = 1\n",
            place.model
        );
        std::fs::write(home.join("config.toml"), config).unwrap();
    }

    fn environment(&self, _: &Place, bare: Environment) -> Environment {
        bare.set("FAKE_KEY", "none")
    }

    fn agent(&self, program: Program, environment: Environment) -> Agent {
        agent_with(program, environment, CodexOptions::new().bypass_sandbox(true)).into()
    }

    fn sandboxed(&self, program: Program, environment: Environment, launcher: Bubblewrap) -> Agent {
        let options = CodexOptions::new().bypass_sandbox(true);
        agent_with(program, environment, options).launcher(launcher).into()
    }

    fn rules(&self, cli: &Pinned) -> Rules {
        Rules {
            reach: Reach::Anywhere,
            // Out of another state dir, no version forks: it knows of the sessions in its own home.
            forks: false,
            branches_at_home: true,
            unknown_id: "11111111-2222-4333-8444-555555555555",
            malformed_id: "nope",
            commands: &["/compact", "/new", "resume --last"],
            long_prompt: 1_000_000,
            usage: Usage {
                input_tokens: 100,
                output_tokens: 20,
                cache_read_tokens: 3,
                cache_write_tokens: 0,
            },
            has_cost: false,
            answers_anywhere: true,
            keeps_prompts_at_once: true,
            titles_other_sessions: false,
            after_a_killed_first_turn: Route::Resumed,
            damages: damages(cli),
            faults: vec![
                (Fault::Status(400), End::Fails(Why::UnrecognisedFailure)),
                (Fault::Status(401), End::Fails(Why::Unauthenticated)),
                (Fault::Status(403), End::Fails(Why::Unauthenticated)),
                (Fault::Status(429), End::Fails(Why::RateLimited)),
                (Fault::Status(500), End::Fails(Why::TransientFailure)),
                (Fault::Status(503), End::Fails(Why::TransientFailure)),
                (Fault::Dropped, End::Fails(Why::TransientFailure)),
                (Fault::Cut, End::Fails(Why::TransientFailure)),
            ],
        }
    }

    fn damage(&self, place: &Place, id: &NativeId, damage: Damage) {
        let path = transcript(place, id);
        let text = std::fs::read(&path).unwrap();
        let first = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let written = match damage {
            NO_UTF8 => {
                [&text[..first], b"{\"type\":\"x\",\"payload\":\"\xff\xfe\"}\n", &text[first..]].concat()
            }
            FIRST_LINE_ONLY => text[..first].to_vec(),
            HALF_FIRST_LINE => [&text[..first / 2], b"\n", &text[first..]].concat(),
            OLDER_RECORDS => [text.clone(), without_numbers(&text)].concat(),
            NEWER_FORMAT => {
                let text = String::from_utf8(text).unwrap();
                text.replacen("\"payload\":{", "\"payload\":{\"history_mode\":\"paginated\",", 1).into_bytes()
            }
            OTHER_DAY => return move_to(&path, &state_dir(&path).join("sessions/2020/01/02")),
            ARCHIVED => return move_to(&path, &state_dir(&path).join("archived_sessions")),
            INDEX => return damage_index(&state_dir(&path)),
            damage => return damage_lines(&path, damage),
        };
        std::fs::write(&path, written).unwrap();
    }

    fn kept(&self, place: &Place, id: &NativeId) -> Vec<u8> {
        std::fs::read(transcript(place, id)).unwrap()
    }

    fn one_prompt(&self, session: Option<&NativeId>, prompt: &str) -> Vec<String> {
        let words = session.map(|id| ["resume", id.as_str()]).into_iter().flatten();
        ["exec"].into_iter().chain(words).chain([prompt]).map(str::to_owned).collect()
    }

    fn tool_call(&self, cli: &Pinned, command: &str) -> String {
        let (tool, argument) =
            if cli.at_least([0, 98, 0]) { ("exec_command", "cmd") } else { ("shell_command", "command") };
        format!("[[tool {tool} {}]]", serde_json::json!({ argument: command }))
    }

    fn edit_call(&self, _cli: &Pinned, file: &Path, line: &str) -> String {
        let patch = format!("*** Begin Patch\n*** Add File: {}\n+{line}\n*** End Patch\n", file.display());
        format!("[[tool apply_patch {}]]", serde_json::json!({ "input": patch }))
    }

    fn logged_out(&self, environment: Environment) -> Option<Environment> {
        Some(environment.remove("FAKE_KEY"))
    }

    fn own_trials(&self, cli: &Pinned) -> Vec<Trial> {
        let mut trials = vec![
            trial!(cli, own::a_byte_order_mark_reaches_the_model),
            trial!(cli, own::a_key_that_is_not_there),
            trial!(cli, own::a_configuration_that_is_broken),
            trial!(cli, own::an_address_that_nobody_serves),
            trial!(cli, own::another_provider),
            trial!(cli, own::another_writer),
            trial!(cli, own::the_launcher_killed_alone),
            trial!(cli, own::a_transcript_that_cannot_be_written),
            trial!(cli, places::the_state_dir_holds_the_session_and_the_home_does_not),
            trial!(cli, places::a_store_that_was_moved),
            trial!(cli, places::a_store_that_was_copied),
            trial!(cli, places::the_users_own_home),
        ];
        if cli.at_least([0, 148, 0]) {
            trials.push(trial!(cli, places::a_fork_in_the_users_own_home));
            trials.push(trial!(cli, places::a_fork_whose_original_is_gone));
        }
        if cli.at_least([0, 148, 0]) && versions::older(cli).is_some() {
            trials.push(trial!(cli, versions::a_session_of_an_older_version_goes_on));
            trials.push(trial!(cli, versions::an_older_version_stands_aside));
            trials.push(trial!(cli, versions::what_an_older_version_added_is_mended));
        }
        trials
    }
}

/// What a version does with a session that is damaged: looked at first, and not.
fn damages(cli: &Pinned) -> Vec<(Damage, Fate, Fate)> {
    let (newest, strict) = (cli.at_least([0, 148, 0]), cli.at_least([0, 117, 0]));
    let missing = Fate::Lost(Why::SessionMissing);
    // Older ones begin another session without a word.
    let unfound = if strict { missing } else { Fate::StandsAside(Why::SessionReplaced) };
    let refused = Fate::Lost(Why::SessionIncompatible);
    // 0.63 glues its next record to a line without an end, and loses it. With a look, the line is ended first.
    let cut = if cli.at_least([0, 98, 0]) { Fate::Resumes } else { Fate::ResumesOnce };
    // 0.171 cannot make its index anew of such a file, and says no more than that.
    let bytes = if newest { Fate::StandsAside(Why::SessionUnindexed) } else { refused };
    let archived = match () {
        () if newest => Fate::StandsAside(Why::SessionArchived),
        () if strict => Fate::Resumes,
        () => unfound,
    };
    let mut damages = vec![
        (Damage::Deleted, missing, unfound),
        (Damage::Emptied, Fate::Lost(Why::SessionEmpty), refused),
        (Damage::Garbage, Fate::Lost(Why::SessionDamaged), refused),
        (Damage::CutLastLine, Fate::Resumes, cut),
        (Damage::GarbageInTheMiddle, Fate::Resumes, Fate::Resumes),
        (Damage::UnknownId, missing, unfound),
        (NO_UTF8, bytes, bytes),
        (FIRST_LINE_ONLY, Fate::Lost(Why::SessionEmpty), Fate::Forgets),
        (HALF_FIRST_LINE, refused, refused),
        (OTHER_DAY, Fate::Resumes, Fate::Resumes),
        (ARCHIVED, Fate::Resumes, archived),
        (INDEX, Fate::Resumes, Fate::Resumes),
    ];
    damages.push(if newest {
        (OLDER_RECORDS, Fate::Resumes, Fate::StandsAside(Why::SessionUnindexed))
    } else {
        (NEWER_FORMAT, Fate::StandsAside(Why::VersionCannotResume), Fate::ResumesOnce)
    });
    damages
}

/// The records of the last turn once more, as a version before 0.148 appends them.
fn without_numbers(text: &[u8]) -> Vec<u8> {
    let records: Vec<serde_json::Value> =
        text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let start = records.iter().rposition(|record| record["payload"]["type"] == "task_started").unwrap();
    let mut out = Vec::new();
    for record in &records[start..] {
        let mut record = record.clone();
        record.as_object_mut().unwrap().remove("ordinal").unwrap();
        out.extend(record.to_string().into_bytes());
        out.push(b'\n');
    }
    out
}

fn move_to(path: &Path, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::rename(path, folder.join(path.file_name().unwrap())).unwrap();
}

/// Rubbish in the place of every database, wherever a version may look for it.
fn damage_index(home: &Path) {
    for folder in [home.to_owned(), home.join("index")] {
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["state_5", "logs_2", "queue_1", "goals_1", "memories_1", "thread_history_1"] {
            std::fs::write(folder.join(name).with_extension("sqlite"), "no database").unwrap();
        }
    }
}
