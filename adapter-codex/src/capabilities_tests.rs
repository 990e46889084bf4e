use super::*;

fn at(version: &str) -> AgentCapabilities {
    of(Version::parse(version).as_ref())
}

#[test]
fn the_claims_are_in_order_and_say_where_they_were_seen() {
    assert!(CLAIMS.is_sorted_by_key(|claim| claim.since));
    assert!(CLAIMS.iter().all(|claim| !claim.what.is_empty() && !claim.seen.is_empty()));
}

#[test]
fn each_version_has_its_rules() {
    use FigureScope::{Process, Session};
    use ForkSupport::{AgentChoosesId, No};
    let rows = [
        ("0.39.0", false, Process, None, No, false),
        ("0.45.0", true, Process, None, No, false),
        ("0.63.0", true, Process, None, No, true),
        ("0.80.0", true, Session, None, No, false),
        ("0.98.0", true, Session, None, No, true),
        ("0.116.0", true, Session, None, No, false),
        ("0.130.0", true, Session, Some(1_048_576), No, true),
        ("0.146.0", true, Session, Some(1_048_576), No, false),
        ("0.148.0", true, Session, Some(1_048_576), AgentChoosesId, false),
        ("0.171.0", true, Session, Some(1_048_576), AgentChoosesId, true),
        ("0.172.0-alpha.1", true, Session, Some(1_048_576), AgentChoosesId, false),
        ("1.0.0", true, Session, Some(1_048_576), AgentChoosesId, false),
    ];
    for (version, resumes, usage, limit, fork, verified) in rows {
        let found = at(version);
        let row = (
            version,
            found.resumable_sessions,
            found.usage_scope,
            found.prompt_limit,
            found.fork,
            found.verified,
        );
        assert_eq!(row, (version, resumes, usage, limit, fork, verified));
        assert_eq!(found.headless_resume, resumes);
        assert!(!found.caller_chosen_id);
    }
    assert_eq!(at("0.63.0").resume_reach, ReachCapability::Anywhere);
}

#[test]
fn a_conversation_is_taken_back_from_the_oldest_version_on_that_was_seen_to_go_on_from_there() {
    for (version, rewinds) in [("0.62.0", false), ("0.63.0", true), ("0.171.0", true)] {
        assert_eq!(at(version).rewind, rewinds, "{version}");
    }
}

#[test]
fn an_unknown_version_has_the_newest_rules_unverified() {
    assert_eq!(of(None), at("1.0.0"));
}

#[test]
fn the_version_is_found_behind_a_banner() {
    let numbers = |printed: &str| super::version(printed).map(|version| version.numbers);
    assert_eq!(numbers("codex-cli 0.171.0\n"), Some([0, 171, 0]));
    assert_eq!(numbers("Now using node v20.20.2\ncodex-cli 0.63.0\nbye 1.0\n"), Some([0, 63, 0]));
    assert_eq!(numbers("codex 1.0.0\n"), Some([1, 0, 0]), "worded otherwise one day");
    assert_eq!(numbers("hello"), None);
}
