//! The verdict: what recorded runs meant, and what nothing may be taken for.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;
use session_core::decide::{Activity, Verdict};
use session_core::{Asked, EndedBy, Evidence, Exit, Observation};

use super::{Fixture, Subject};

/// After these a session is never asked for again.
const CONDEMNING: &[Verdict] = &[Verdict::Missing, Verdict::Incompatible, Verdict::ContextOverflow];

const EXITS: &[Exit] = &[Exit::Code(0), Exit::Code(1), Exit::Code(143), Exit::Signal(9), Exit::Unknown];

impl Subject {
    fn fixtures_with(&self, verdict: Verdict) -> Vec<&Fixture> {
        self.fixtures.iter().filter(|fixture| fixture.verdict == verdict).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        self.dialect.classify(evidence)
    }

    /// Whether any version is claimed to continue sessions.
    fn resumes(&self) -> bool {
        self.stages().iter().any(super::turns::Stage::resumes)
    }
}

/// Each recorded run is what it was: verdict, how far it got, and the conversation named.
pub(super) fn every_fixture_has_its_verdict(subject: &Subject) {
    let mut wrong = Vec::new();
    for fixture in &subject.fixtures {
        let evidence = fixture.whole(&*subject.dialect);
        let found =
            (subject.judge(&evidence), evidence.observation.activity(), evidence.observation.session.clone());
        let expected = (fixture.verdict, fixture.activity, fixture.session.clone());
        if found != expected {
            wrong.push(format!("{}: {found:?}, expected {expected:?}", fixture.name()));
        }
    }
    assert!(!subject.fixtures.is_empty(), "fixtures are needed");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether the agent had nothing more to say after so many lines: for agents without a last word.
fn is_over(subject: &Subject, fixture: &Fixture, count: usize) -> bool {
    let lines = fixture.lines();
    let said = |lines: &[&[u8]]| {
        let observation = fixture.read(&*subject.dialect, lines, fixture.exit).0;
        (
            observation.session,
            observation.partial_text,
            observation.model_called,
            observation.acted,
            observation.trouble,
        )
    };
    fixture.verdict == Verdict::Completed && said(&lines[..count]) == said(&lines)
}

/// A runner, a reboot or the kernel can end a run after any line. Without the agent's own end it is never completed, and
/// once the model was called it is never the session's fault, unless the whole run says so. What stands on stderr, where
/// hooks and servers write too, changes nothing of that.
pub(super) fn a_cut_stream_neither_completes_nor_condemns(subject: &Subject) {
    let said: BTreeSet<_> =
        subject.fixtures_with(Verdict::Missing).iter().map(|fixture| fixture.stderr.clone()).collect();
    let mut cuts = 0;
    for fixture in &subject.fixtures {
        let lines = fixture.lines();
        for count in 0..lines.len() {
            let cut = |exit| fixture.read(&*subject.dialect, &lines[..count], exit);
            let (heard, observation) = cut(fixture.exit);
            if heard.end.is_some() || (observation.end.is_some() && is_over(subject, fixture, count)) {
                break;
            }
            cuts += 1;
            for exit in [Exit::Signal(9), Exit::Signal(15), Exit::Code(1)] {
                let observation = cut(exit).1;
                let began = observation.activity() != Activity::None;
                let mut evidence = fixture.evidence(observation, exit);
                evidence.ended_by = None;
                let verdict = subject.judge(&evidence);
                let at = format!("{} cut after {count} lines, {exit:?}: {verdict:?}", fixture.name());
                assert_ne!(verdict, Verdict::Completed, "{at}");
                let condemned = began && CONDEMNING.contains(&verdict) && verdict != fixture.verdict;
                assert!(!condemned, "{at}");
                for said in said.iter().filter(|_| began) {
                    evidence.stderr_tail.clone_from(said);
                    assert_ne!(subject.judge(&evidence), Verdict::Missing, "{at}, with {said:?} on stderr");
                }
            }
        }
    }
    assert!(cuts > 0, "a fixture with more than one line is needed");
}

/// Needs resumable sessions, and then a fixture of a lost one. However the process ended: what the agent calls missing
/// was not carried out.
pub(super) fn a_missing_session_is_never_completed(subject: &Subject) {
    let missing = subject.fixtures_with(Verdict::Missing);
    assert_eq!(
        !missing.is_empty(),
        subject.resumes(),
        "a fixture with verdict Missing is there where resuming is claimed"
    );
    for fixture in missing {
        assert_eq!(fixture.activity, Activity::None, "{}: what is missing was not continued", fixture.name());
        for exit in EXITS {
            for asked in [fixture.asked.clone(), Asked::Fresh(None)] {
                let mut evidence = fixture.whole(&*subject.dialect);
                evidence.exit = *exit;
                evidence.asked = asked;
                let verdict = subject.judge(&evidence);
                assert_ne!(verdict, Verdict::Completed, "{} with {exit:?}", fixture.name());
            }
        }
    }
}

/// Exit 0 alone proves nothing, nor does a stream without its end, nor an end that reports an error.
pub(super) fn one_sign_alone_is_no_success(subject: &Subject) {
    let (one, _) = subject.two_ids();
    for version in subject.tried_versions() {
        for asked in [
            Asked::Fresh(None),
            Asked::Fresh(Some(one.clone())),
            Asked::Resume(one.clone()),
            Asked::Fork(one.clone()),
        ] {
            for exit in EXITS {
                for ended_by in [None, Some(EndedBy::Linger)] {
                    let evidence = Evidence {
                        asked: asked.clone(),
                        version: version.as_ref().map(|version| version.text.clone()),
                        exit: *exit,
                        ended_by,
                        stderr_tail: String::new(),
                        observation: Observation::default(),
                        leftovers_ended: 0,
                    };
                    let verdict = subject.judge(&evidence);
                    let wrong = verdict == Verdict::Completed || CONDEMNING.contains(&verdict);
                    assert!(!wrong, "{asked:?} that says nothing and ends with {exit:?} is {verdict:?}");
                }
            }
        }
    }
    for fixture in &subject.fixtures {
        let mut evidence = fixture.whole(&*subject.dialect);
        // A turn that ended well before its process was killed lacks the exit alone.
        let ended_well = evidence.observation.end.as_ref().is_some_and(|end| !end.is_error);
        if fixture.verdict == Verdict::Completed || (ended_well && evidence.exit != Exit::Code(0)) {
            evidence.observation.end = None;
        }
        evidence.exit = Exit::Code(0);
        let verdict = subject.judge(&evidence);
        assert_ne!(verdict, Verdict::Completed, "{} with exit 0, without a final event", fixture.name());
    }
}

/// A text that nobody knows is not a reason to leave a session.
pub(super) fn unknown_words_condemn_nothing(subject: &Subject) {
    let (one, _) = subject.two_ids();
    let asked = select(vec![Asked::Resume(one.clone()), Asked::Fork(one), Asked::Fresh(None)]);
    let input = (
        "[a-z]{1,12}( [a-z]{1,12}){0,30}",
        select(EXITS),
        asked,
        any::<bool>(),
        select(subject.tried_versions()),
    );
    let outcome = subject.random(512).run(&input, |(words, exit, asked, on_stderr, version)| {
        let mut observation = Observation::default();
        if !on_stderr {
            observation.noise_head.clone_from(&words);
        }
        let evidence = Evidence {
            asked,
            version: version.map(|version| version.text),
            exit,
            ended_by: None,
            stderr_tail: if on_stderr { words } else { String::new() },
            observation,
            leftovers_ended: 0,
        };
        let verdict = subject.judge(&evidence);
        prop_assert!(verdict != Verdict::Completed && !CONDEMNING.contains(&verdict), "{:?}", verdict);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn replace(bytes: &[u8], from: &str, to: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.contains(from).then(|| text.replace(from, to).into_bytes())
}

/// What the model says of lost sessions, logins and limits is an answer, not a failure.
pub(super) fn the_words_of_the_model_condemn_nothing(subject: &Subject) {
    let dialect = &*subject.dialect;
    let texts: BTreeSet<String> = subject
        .fixtures
        .iter()
        .filter(|fixture| fixture.verdict != Verdict::Completed)
        .flat_map(|fixture| {
            let observation = fixture.whole(dialect).observation;
            let end = observation.end.unwrap_or_default();
            let trouble = observation.trouble.map(|(_, text)| text);
            end.errors.into_iter().chain([end.text, fixture.stderr.clone()]).chain(trouble)
        })
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .collect();
    assert!(!texts.is_empty(), "a fixture of a failure with words is needed");
    let mut said = 0;
    for fixture in subject.fixtures_with(Verdict::Completed) {
        let observation = fixture.whole(dialect).observation;
        let answer = observation.end.map(|end| end.text).filter(|text| !text.is_empty());
        let answer = answer.unwrap_or(observation.partial_text);
        for text in texts.iter().filter(|_| !answer.is_empty()) {
            let Some(stdout) = replace(&fixture.stdout, &in_json(&answer), &in_json(text)) else { continue };
            said += 1;
            let told = Fixture { stdout, ..fixture.clone() };
            let evidence = told.whole(dialect);
            assert_eq!(
                evidence.observation.session,
                fixture.session,
                "{} that answers {text:?}",
                fixture.name()
            );
            let verdict = subject.judge(&evidence);
            assert_eq!(verdict, Verdict::Completed, "{} that answers {text:?}", fixture.name());
            let lines = told.lines();
            let Some(cut) = (0..lines.len())
                .rev()
                .find(|cut| told.fold(dialect, &lines[..*cut], told.exit).end.is_none())
            else {
                continue;
            };
            for exit in EXITS {
                let verdict = subject.judge(&told.evidence(told.fold(dialect, &lines[..cut], *exit), *exit));
                let wrong = CONDEMNING.contains(&verdict) || verdict == Verdict::Completed;
                assert!(
                    !wrong,
                    "{} that answers {text:?} and ends with {exit:?} is {verdict:?}",
                    fixture.name()
                );
            }
        }
    }
    assert!(said > 0, "a completed fixture whose answer stands in its stream is needed");
}

/// Needs resumable sessions. An id that is printed while a resume fails is not adopted (some agents make one up).
pub(super) fn a_failed_resume_names_no_other_session(subject: &Subject) {
    let failed: Vec<_> = subject.fixtures.iter().filter(|fixture| fixture.is_failed_resume()).collect();
    assert_eq!(
        !failed.is_empty(),
        subject.resumes(),
        "a fixture of a failed resume is there where resuming is claimed"
    );
    let (one, two) = subject.two_ids();
    for fixture in failed {
        let Asked::Resume(asked) = &fixture.asked else { continue };
        let named = fixture.whole(&*subject.dialect).observation.session;
        assert!(named.is_none() || named.as_ref() == Some(asked), "{} names {named:?}", fixture.name());
        // The same with every id of its stream changed to one that nobody asked for.
        let other = if *asked == one { &two } else { &one };
        let Some(stdout) = replace(&fixture.stdout, asked.as_str(), other.as_str()) else { continue };
        let strange = Fixture { stdout, ..fixture.clone() };
        let named = strange.whole(&*subject.dialect).observation.session;
        assert_eq!(named, None, "{} that prints {other}", fixture.name());
    }
}
