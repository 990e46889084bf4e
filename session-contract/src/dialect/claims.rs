//! The claims of each version: what is claimed is done, what is not claimed is refused.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;
use session_core::decide::Verdict;
use session_core::{AgentCapabilities, Asked, ForkSupport, IdOnResume, Mode, Version};

use super::Subject;
use super::turns::Stage;

/// Versions around those that are known, where claims change.
fn near(subject: &Subject) -> impl Strategy<Value = Option<Version>> + use<> {
    let known = subject.tried_versions();
    let numbers: Vec<_> = known.iter().flatten().map(|version| version.numbers).collect();
    let parts = move |part: usize| {
        let mut values: Vec<u64> = numbers.iter().map(|numbers| numbers[part]).collect();
        values.extend([0, 1, 2]);
        let top = values.iter().copied().filter(|value| *value < 999).max().unwrap_or(1);
        prop_oneof![select(values), 0..=top + 1]
    };
    let made = (parts(0), parts(1), parts(2)).prop_map(|(major, minor, patch)| {
        Some(Version { text: format!("{major}.{minor}.{patch}"), numbers: [major, minor, patch] })
    });
    prop_oneof![1 => select(known), 3 => made]
}

/// Tries a claim on every known version and on many between them.
fn on_versions(subject: &Subject, claim: impl Fn(&Stage) -> Result<(), String>) {
    for stage in subject.stages() {
        claim(&stage).unwrap_or_else(|wrong| panic!("{}: {wrong}", stage.version()));
    }
    let outcome = subject.random(1024).run(&near(subject), |version| {
        claim(&Stage::new(&*subject.dialect, version)).map_err(TestCaseError::fail)
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// Where the caller chooses the id, the command carries it, once; elsewhere it is refused.
pub(super) fn a_chosen_id_is_carried_or_refused(subject: &Subject) {
    let (one, _) = subject.two_ids();
    on_versions(subject, |stage| {
        let commands = stage.commands(&*subject.dialect, Mode::Fresh { id: Some(&one) });
        match (stage.installation.capabilities.caller_chosen_id, commands) {
            (true, Ok(commands)) if commands.mention(one.as_str()) => Ok(()),
            (false, Err(_)) => Ok(()),
            (claimed, found) => Err(format!("caller_chosen_id is {claimed}, and the command is {found:?}")),
        }
    });
}

/// An id that is made for a new session has the agent's shape, and no two are the same. Without a claim to take ids, none
/// is made.
pub(super) fn a_new_id_has_the_agents_shape(subject: &Subject) {
    let takes_ids = |stage: &Stage| {
        stage.installation.capabilities.caller_chosen_id || stage.forks() == ForkSupport::CallerChoosesId
    };
    if !subject.stages().iter().any(takes_ids) {
        return a_chosen_id_is_carried_or_refused(subject);
    }
    let randoms = prop::collection::btree_set(any::<u128>(), 2..20);
    let outcome = subject.random(256).run(&randoms, |randoms| {
        let mut made = BTreeSet::new();
        for random in randoms {
            let random = uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid();
            let id = subject.dialect.new_id(&random.to_string());
            prop_assert!(
                subject.dialect.accepts_id(&id) && id.is_argument_safe(),
                "{:?} from {}",
                id,
                random
            );
            prop_assert!(made.insert(id.clone()), "{:?} is made twice", id);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// Where a session can be forked, the command carries original and copy and is no mere resume; elsewhere it is refused.
/// A file of the original that lies elsewhere is used or refused, never passed over.
pub(super) fn a_fork_is_carried_or_refused(subject: &Subject) {
    let (one, two) = subject.two_ids();
    let file = std::path::Path::new("/srv/state/elsewhere").join(format!("{one}.jsonl"));
    on_versions(subject, |stage| {
        let dialect = &*subject.dialect;
        let fork = |id, transcript| stage.commands(dialect, Mode::Fork { source: &one, transcript, id });
        let chooses = stage.forks() == ForkSupport::CallerChoosesId;
        if stage.forks() == ForkSupport::No {
            let refused = fork(None, None).is_err() && fork(Some(&two), None).is_err();
            return refused.then_some(()).ok_or_else(|| "a fork is not claimed, and not refused".to_owned());
        }
        match fork(Some(&two), None) {
            Ok(commands) if chooses && commands.mention(two.as_str()) => {}
            Err(_) if !chooses => {}
            found => return Err(format!("{:?}, and the command is {found:?}", stage.forks())),
        }
        let id = Some(&two).filter(|_| chooses);
        let commands = fork(id, None).map_err(|error| format!("a fork is claimed, and refused: {error}"))?;
        if !commands.mention(one.as_str()) {
            return Err(format!("{commands:?} does not name the original"));
        }
        for other in [Mode::Resume { id: &one }, Subject::fresh(stage, &two)] {
            if stage.commands(dialect, other).is_ok_and(|other| other == commands) {
                return Err(format!("a fork is the same as {other:?}"));
            }
        }
        match fork(id, Some(&file)) {
            Ok(commands) if !commands.mention(&file.to_string_lossy()) => {
                Err(format!("{commands:?} passes over the original's file"))
            }
            _ => Ok(()),
        }
    });
}

/// Where a session can be continued, the command names it; elsewhere it is refused.
pub(super) fn a_resume_is_carried_or_refused(subject: &Subject) {
    let (one, _) = subject.two_ids();
    on_versions(subject, |stage| {
        match (stage.resumes(), stage.commands(&*subject.dialect, Mode::Resume { id: &one })) {
            (true, Ok(commands)) if commands.mention(one.as_str()) => Ok(()),
            (false, Err(_)) => Ok(()),
            (claimed, found) => Err(format!("resuming is claimed: {claimed}, and the command is {found:?}")),
        }
    });
}

fn but_unverified(mut capabilities: AgentCapabilities) -> AgentCapabilities {
    capabilities.verified = false;
    capabilities
}

/// A version that nobody has seen is taken for the newest one that somebody has, and never called verified.
pub(super) fn an_unknown_version_has_the_newest_rules(subject: &Subject) {
    let newest = subject
        .versions
        .last()
        .unwrap_or_else(|| panic!("a version is needed, in fixtures or as `versions`"));
    let rules = subject.dialect.capabilities(Some(newest));
    for version in [None, Some(super::version("999.0.0"))] {
        let found = subject.dialect.capabilities(version.as_ref());
        assert!(!found.verified, "{version:?} is called verified");
        assert_eq!(found, but_unverified(rules), "{version:?} has not the rules of {newest}");
    }
}

/// An agent that could continue its sessions goes on to be able to, or the suite is told (`gives_up_resuming`).
pub(super) fn no_version_loses_the_resume_unsaid(subject: &Subject) {
    let mut before = false;
    for version in &subject.versions {
        let capabilities = subject.dialect.capabilities(Some(version));
        let resumes = capabilities.resumable_sessions && capabilities.headless_resume;
        let said = subject.gives_up_resuming.iter().any(|said| said.numbers == version.numbers);
        assert_eq!(before && !resumes, said, "{version}");
        before = resumes;
    }
}

/// A resume that worked was in the session asked for where the id is claimed to stay, and in another where it is not.
pub(super) fn the_id_of_a_resume_is_as_claimed(subject: &Subject) {
    for fixture in subject.fixtures.iter().filter(|fixture| fixture.verdict == Verdict::Completed) {
        let named = fixture.whole(&*subject.dialect).observation.session;
        let (kept, asked) = match &fixture.asked {
            Asked::Fresh(None) => continue,
            Asked::Fresh(Some(id)) => (true, id),
            Asked::Fork(id) => (false, id),
            Asked::Resume(id) => {
                let capabilities = subject.dialect.capabilities(Some(&fixture.version));
                (capabilities.id_on_resume == IdOnResume::Kept, id)
            }
        };
        assert_eq!(named.as_ref() == Some(asked), kept, "{}: {named:?}", fixture.name());
        let safe = named.iter().all(|id| id.is_argument_safe() && subject.dialect.accepts_id(id));
        assert!(safe, "{}: {named:?} is an id that `accepts_id` refuses", fixture.name());
    }
}

/// What is called verified was seen: for each such version, a turn, and, where it is claimed, a resume that worked, one
/// that found nothing, and a fork.
pub(super) fn what_is_claimed_as_verified_is_shown(subject: &Subject) {
    let mut verified = 0;
    for stage in subject.stages().iter().filter(|stage| stage.installation.capabilities.verified) {
        verified += 1;
        let shows = |verdict: Verdict, asked: fn(&Asked) -> bool| {
            subject.fixtures.iter().any(|fixture| {
                stage.installation.version.as_ref() == Some(&fixture.version)
                    && fixture.verdict == verdict
                    && asked(&fixture.asked)
            })
        };
        let fresh = shows(Verdict::Completed, |asked| matches!(asked, Asked::Fresh(_)));
        assert!(fresh, "{}: no fixture of a turn", stage.version());
        if stage.resumes() {
            let resumed = |asked: &Asked| matches!(asked, Asked::Resume(_));
            assert!(shows(Verdict::Completed, resumed), "{}: no fixture of a resume", stage.version());
            assert!(shows(Verdict::Missing, resumed), "{}: no fixture of a lost session", stage.version());
        }
        if stage.forks() != ForkSupport::No {
            let forked = shows(Verdict::Completed, |asked| matches!(asked, Asked::Fork(_)));
            assert!(forked, "{}: no fixture of a fork", stage.version());
        }
    }
    assert!(
        verified > 0 || subject.fixtures.is_empty(),
        "there are fixtures, and no version is called verified"
    );
}
