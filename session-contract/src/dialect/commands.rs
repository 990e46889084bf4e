//! What stands in a command, and what never does.

use session_core::{ForkSupport, Mode, NativeId, SessionName};

use super::Subject;
use super::turns::{Commands, PLAIN, Stage};

/// Variables by which agents tell their children of the session that they run in.
const PLANTED: &[&str] = &["SESSION_ID", "AGENT_SESSION_ID", "RESUME", "THREAD_ID", "CONVERSATION_ID"];

fn built(subject: &Subject, stage: &Stage, mode: Mode<'_>) -> Commands {
    stage
        .commands(&*subject.dialect, mode)
        .unwrap_or_else(|error| panic!("{}: {mode:?} is claimed and refused: {error}", stage.version()))
}

/// Whatever was built before, and wherever an id lies about: a new session knows of no other one.
pub(super) fn a_fresh_command_mentions_no_session(subject: &Subject) {
    let (one, two) = subject.two_ids();
    for mut stage in subject.stages() {
        let fresh = Subject::fresh(&stage, &one);
        let plain = built(subject, &stage, fresh);
        assert!(!plain.mention(two.as_str()), "{}: {plain:?}", stage.version());
        let mut words: Vec<String> = Vec::new();
        for mode in
            Subject::modes(&stage, &two, &two).into_iter().filter(|mode| !matches!(mode, Mode::Fresh { .. }))
        {
            let resume = built(subject, &stage, mode);
            let shown = resume.args().map(|arg| arg.to_string_lossy().into_owned());
            words.extend(shown.filter(|arg| plain.count(arg) == 0 && !arg.contains(two.as_str())));
        }
        stage.prompt = format!("{PLAIN}: resume {two}, {}", words.join(" "));
        for name in PLANTED {
            stage.env.set(*name, two.as_str());
        }
        let planted = built(subject, &stage, fresh);
        let told = planted.holding(two.as_str()).len()
            + planted.values().filter(|value| value.to_string_lossy().contains(two.as_str())).count();
        assert_eq!(told, 0, "{}: {planted:?} mentions {two}", stage.version());
        for word in words {
            assert_eq!(planted.count(&word), 0, "{}: {planted:?} has {word}", stage.version());
        }
    }
}

/// Needs resumable sessions. The id, the whole id, once, where nothing can take it for a flag; and no other id.
pub(super) fn a_resume_carries_its_id_once(subject: &Subject) {
    let (one, two) = subject.two_ids();
    let mut tried = 0;
    for stage in subject.stages().iter().filter(|stage| stage.resumes()) {
        tried += 1;
        let commands = built(subject, stage, Mode::Resume { id: &one });
        let command = commands.last();
        let holders: Vec<_> =
            command.args.iter().filter(|arg| arg.to_string_lossy().contains(one.as_str())).collect();
        let [holder] = holders.as_slice() else {
            panic!("{}: {} arguments of {command:?} hold {one}", stage.version(), holders.len())
        };
        let holder = holder.to_string_lossy();
        let before = holder.split(one.as_str()).next().unwrap_or_default();
        let is_value = !before.starts_with('-') || before.ends_with('=');
        assert!(
            is_value && holder.ends_with(one.as_str()),
            "{}: {holder:?} can be read otherwise",
            stage.version()
        );
        let other = built(subject, stage, Mode::Resume { id: &two });
        let renamed: Vec<_> = command
            .args
            .iter()
            .map(|arg| arg.to_string_lossy().replace(one.as_str(), two.as_str()))
            .collect();
        let as_is: Vec<_> = other.last().args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        assert_eq!(renamed, as_is, "{}: the id changes more than itself", stage.version());
    }
    let claims = subject.stages().iter().any(|stage| stage.installation.capabilities.resumable_sessions);
    assert_eq!(tried > 0, claims, "a version that resumes is tried where resuming is claimed");
}

/// An id of another shape is turned away by `accepts_id` or by the command, and never passed.
pub(super) fn a_malformed_id_is_refused(subject: &Subject) {
    let (one, _) = subject.two_ids();
    let text = one.as_str();
    let tail = |skip: usize| text.chars().skip(skip).collect::<String>();
    let with = |c: char| {
        let half = text.chars().count() / 2;
        text.chars().enumerate().map(|(at, own)| if at == half { c } else { own }).collect::<String>()
    };
    let mut evil: Vec<String> =
        ["", " ", "-", "--", "--help", "--resume", "--last", "$(id)", "..", "../../x"]
            .map(str::to_owned)
            .into();
    evil.extend([format!("-{}", tail(1)), format!("--{}", tail(2)), format!("../{}", tail(3))]);
    evil.extend(['\0', '\n', '\r', ' ', '\t', '/', '\u{7f}', '\u{2028}'].map(with));
    evil.extend([format!("{text} --help"), format!("{text}\n"), format!("{text}\0"), format!(" {text}")]);
    for id in evil.into_iter().map(NativeId::new).filter(|id| subject.dialect.accepts_id(id)) {
        for stage in subject.stages() {
            for mode in Subject::modes(&stage, &id, &id)
                .into_iter()
                .filter(|mode| !matches!(mode, Mode::Fresh { id: None }))
            {
                let commands = stage.commands(&*subject.dialect, mode);
                assert!(
                    commands.is_err(),
                    "{}: {mode:?} is accepted and passed: {commands:?}",
                    stage.version()
                );
            }
        }
    }
    assert!(subject.dialect.accepts_id(&one), "{one:?} is an id");
}

/// A dialect remembers nothing: the same turn is the same command, whatever was asked before.
pub(super) fn a_command_depends_on_its_turn_alone(subject: &Subject) {
    let (one, two) = subject.two_ids();
    for stage in subject.stages() {
        let modes = Subject::modes(&stage, &one, &two);
        let first: Vec<_> = modes.iter().map(|mode| built(subject, &stage, *mode)).collect();
        for other in Subject::modes(&stage, &two, &one) {
            built(subject, &stage, other);
            for (mode, first) in modes.iter().zip(&first) {
                assert_eq!(
                    built(subject, &stage, *mode),
                    *first,
                    "{}: {mode:?} after {other:?}",
                    stage.version()
                );
            }
        }
    }
}

/// A label is a label: with names claimed, it is carried as no flag of its own; without, it changes nothing.
pub(super) fn a_name_is_no_flag(subject: &Subject) {
    let (one, two) = subject.two_ids();
    let names =
        ["agent/issue-42", "-x", "--help", "--", &format!("--resume={two}"), "two words", "\"quoted\" $(id)"];
    for mut stage in subject.stages() {
        for mode in Subject::modes(&stage, &one, &two) {
            stage.name = None;
            let nameless = built(subject, &stage, mode);
            for name in names {
                stage.name = SessionName::new(name).ok();
                assert!(stage.name.is_some(), "{name:?} is a name");
                let named = built(subject, &stage, mode);
                if !stage.installation.capabilities.names {
                    assert_eq!(named, nameless, "{}: {mode:?} as {name:?}", stage.version());
                    continue;
                }
                let more = named.count(name) - nameless.count(name);
                assert!(more == 0 || !name.starts_with('-'), "{}: {named:?} as {name:?}", stage.version());
                let is_new = matches!(mode, Mode::Fresh { .. });
                assert!(!is_new || named.mention(name), "{}: {named:?} leaves out {name:?}", stage.version());
            }
        }
    }
}

/// Asking for the version runs no turn: nothing is on stdin, no session is named, and it is no command of a turn. What it
/// prints is read.
pub(super) fn the_version_probe_prompts_nothing(subject: &Subject) {
    let (one, two) = subject.two_ids();
    let probe = subject.dialect.version_probe();
    assert!(probe.stdin.is_empty(), "{probe:?} has something on stdin");
    assert!(!probe.args.is_empty(), "a program without arguments may start a conversation");
    assert_eq!(probe, subject.dialect.version_probe(), "the probe is the same every time");
    for version in &subject.versions {
        let read = subject.dialect.version(&format!("{version}\n"));
        assert_eq!(read.as_ref(), Some(version), "what {version} prints");
    }
    for stage in subject.stages() {
        for mode in Subject::modes(&stage, &one, &two) {
            let turn = built(subject, &stage, mode);
            let args = &turn.last().args;
            assert_ne!(*args, probe.args, "{}: the probe is {mode:?}", stage.version());
            let begins = probe.args.iter().all(|arg| args.contains(arg));
            assert!(!begins, "{}: {probe:?} is a part of {mode:?}", stage.version());
        }
    }
}

impl Stage {
    /// Whether this version is claimed to continue sessions without a person.
    pub(super) const fn resumes(&self) -> bool {
        let capabilities = self.installation.capabilities;
        capabilities.resumable_sessions && capabilities.headless_resume
    }

    /// How this version is claimed to fork.
    pub(super) const fn forks(&self) -> ForkSupport {
        self.installation.capabilities.fork
    }
}
