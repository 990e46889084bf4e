//! opencode.

mod own;
mod sessions;
mod versions;

use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use rejoin::adapters::{Opencode, OpencodeOptions, opencode};
use rejoin::core::Program;
use rejoin::core::decide::Reach;
use rejoin::process::{Bubblewrap, Environment};
use rejoin::{Agent, NativeId, Route, Usage, Why};

use crate::agents::{AgentUnderTest, Damage, End, Fate, Fault, Place, Rules};
use crate::pinned::Pinned;
use crate::trial;

#[derive(Debug)]
pub(crate) struct OpencodeCli;

/// Its words are a part of the record, which no version reads as JSON then.
const COLUMN: Damage = Damage::Other("a column that is not JSON");
/// The message is there, its role and time are not.
const FIELDS: Damage = Damage::Other("a message without its fields");
/// Half of the pages are there.
const HALF: Damage = Damage::Other("half of its database");

/// How long a version that tries for ever is waited for.
const TRIES: Duration = Duration::from_secs(12);

/// Where the user keeps the configuration.
fn configuration_dir(place: &Place) -> PathBuf {
    place.home().join(".config/opencode")
}

/// A list of models that names none, beside the configuration.
fn known_models(place: &Place) -> PathBuf {
    configuration_dir(place).join("models.json")
}

/// The user's own configuration: the fake model, and nothing else.
fn configuration(place: &Place) -> serde_json::Value {
    serde_json::json!({
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "enabled_providers": ["fake"],
        "share": "disabled",
        "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": format!("{}/v1", place.model), "apiKey": "none"},
            "models": {"fake-model": {
                "name": "Fake",
                "cost": {"input": 3, "output": 15},
                "limit": {"context": 2_000_000, "output": 8_000},
            }},
        }},
    })
}

fn options(program: Program) -> OpencodeOptions {
    OpencodeOptions::new().program(program).models_fetch(false)
}

fn configured(program: Program, environment: Environment) -> Opencode {
    let options = options(program).permission(r#"{"*":"allow"}"#).unwrap();
    opencode().options(options).environment(environment)
}

impl AgentUnderTest for OpencodeCli {
    fn id(&self) -> &'static str {
        "opencode"
    }

    fn prepare(&self, place: &Place) {
        let folder = configuration_dir(place);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(known_models(place), "{}").unwrap();
        std::fs::write(folder.join("opencode.json"), configuration(place).to_string()).unwrap();
    }

    fn environment(&self, place: &Place, bare: Environment) -> Environment {
        // Plugins would be fetched. The folder that a shell is in need not be that of the run, and a password for a
        // server of the user's locks 1.15.13 out of its own. Of the thousands of models in the program none is called, and
        // to make them all ready takes a third of a start.
        bare.set("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1")
            .set("OPENCODE_MODELS_PATH", known_models(place))
            .set("PWD", place.home())
            .set("OPENCODE_SERVER_PASSWORD", "for another server")
    }

    fn agent(&self, program: Program, environment: Environment) -> Agent {
        configured(program, environment).into()
    }

    fn sandboxed(&self, program: Program, environment: Environment, launcher: Bubblewrap) -> Agent {
        configured(program, environment).launcher(launcher).into()
    }

    fn rules(&self, cli: &Pinned) -> Rules {
        let (files, per_session) = (!cli.at_least([1, 2, 0]), cli.at_least([1, 15, 13]));
        let newest = cli.at_least([1, 17, 0]);
        let missing = Fate::Lost(Why::SessionMissing);
        let damaged = Fate::Lost(Why::SessionDamaged);
        // A fresh run on trial took its place.
        let refused = Fate::Lost(Why::ResumeUnrecognisedFailure);
        let garbage = match () {
            () if files => refused,
            () if newest => Fate::Lost(Why::SessionIncompatible),
            // It does not tell a damaged database from a locked one.
            () if per_session => Fate::StandsAside(Why::SessionUnindexed),
            // All sessions of the state dir lie in it, and nobody looks, so that nobody sets it aside.
            () => Fate::Fails(Why::AgentMisconfigured),
        };
        let mut damages = vec![
            (Damage::Deleted, missing, missing),
            (Damage::Emptied, Fate::Lost(Why::SessionEmpty), Fate::Forgets),
            (Damage::Garbage, damaged, garbage),
            (Damage::CutLastLine, damaged, refused),
            (Damage::GarbageInTheMiddle, damaged, refused),
            (Damage::UnknownId, missing, missing),
        ];
        if !files {
            let column = if per_session { missing } else { refused };
            let fields = if newest { (damaged, refused) } else { (Fate::Resumes, Fate::Resumes) };
            damages.extend([
                (COLUMN, damaged, column),
                (FIELDS, fields.0, fields.1),
                (HALF, damaged, garbage),
            ]);
        }
        Rules {
            reach: match () {
                () if files => Reach::Repository,
                () if per_session => Reach::SameFolder,
                () => Reach::Anywhere,
            },
            forks: per_session,
            branches_at_home: false,
            unknown_id: "ses_00000000000000000000000000000000",
            malformed_id: "nope",
            commands: &["/compact", "/init", "!ls", "@README.md what is it"],
            long_prompt: 300_000,
            usage: Usage {
                input_tokens: 100,
                output_tokens: 20,
                cache_read_tokens: 3,
                cache_write_tokens: 0,
            },
            has_cost: true,
            // 1.15.13 keeps the answer there, and says nothing of it.
            answers_anywhere: files || newest || !per_session,
            keeps_prompts_at_once: true,
            titles_other_sessions: false,
            // 1.2.1 cannot be given an id, and says its own when the model has answered.
            after_a_killed_first_turn: match files || per_session {
                true => Route::Resumed,
                false => Route::Fresh(Why::NoPriorSession),
            },
            damages,
            faults: vec![
                (Fault::Status(401), End::Fails(Why::Unauthenticated)),
                (Fault::Status(429), End::NeverEnds(TRIES)),
                (Fault::Status(529), End::NeverEnds(TRIES)),
                (
                    Fault::Cut,
                    if per_session && !newest {
                        End::Fails(Why::TransientFailure)
                    } else {
                        End::Loops(Why::TransientFailure)
                    },
                ),
            ],
        }
    }

    fn damage(&self, place: &Place, id: &NativeId, damage: Damage) {
        match sessions::find(place, id) {
            sessions::Kept::Database(path) => sessions::damage_database(&path, id, damage),
            sessions::Kept::Files(root) => sessions::damage_files(&root, id, damage),
        }
    }

    fn kept(&self, place: &Place, id: &NativeId) -> Vec<u8> {
        match sessions::find(place, id) {
            sessions::Kept::Database(path) => sessions::rows(&path, id),
            sessions::Kept::Files(root) => sessions::files(&root, id),
        }
    }

    fn one_prompt(&self, session: Option<&NativeId>, prompt: &str) -> Vec<String> {
        let words = session.map(|id| ["--session", id.as_str()]).into_iter().flatten();
        ["run"].into_iter().chain(words).chain([prompt]).map(str::to_owned).collect()
    }

    fn tool_call(&self, _cli: &Pinned, command: &str) -> String {
        format!("[[tool bash {}]]", serde_json::json!({ "command": command, "description": "…" }))
    }

    fn edit_call(&self, _cli: &Pinned, file: &Path, line: &str) -> String {
        format!("[[tool write {}]]", serde_json::json!({ "filePath": file, "content": format!("{line}\n") }))
    }

    /// 1.1.65 is locked out of its own server by the password for another one.
    fn in_person(&self, environment: Environment) -> Environment {
        environment.remove("OPENCODE_SERVER_PASSWORD")
    }

    fn own_trials(&self, cli: &Pinned) -> Vec<Trial> {
        let mut trials = vec![
            trial!(cli, own::the_state_dir_holds_the_session_and_the_home_does_not),
            trial!(cli, own::a_rejected_permission_is_named),
            trial!(cli, own::a_conversation_that_is_too_long_once),
            trial!(cli, own::a_configuration_that_is_broken),
            trial!(cli, own::a_model_that_is_unknown),
            trial!(cli, own::a_folder_that_is_reached_by_a_link),
        ];
        if cli.at_least([1, 2, 0]) {
            trials.push(trial!(cli, own::a_database_that_is_locked));
        }
        if cli.at_least([1, 15, 13]) {
            trials.push(trial!(cli, own::a_fork_is_resumed));
        }
        trials.extend(versions::trials(cli));
        trials
    }
}

/// The session's own database, as the newest versions keep it.
fn own_database(place: &Place, id: &NativeId) -> PathBuf {
    let name = format!("{id}.db");
    let found = place.state_files().into_iter().find(|path| path.ends_with(&name));
    found.unwrap_or_else(|| panic!("no database of {id}"))
}
