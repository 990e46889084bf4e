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
    use ForkSupport::{AgentChoosesId, No};
    use ReachCapability::{Anywhere, Repository, SameFolder};
    let rows = [
        ("0.9.0", false, false, false, No, SameFolder, false),
        ("1.0.98", true, false, false, No, SameFolder, false),
        ("1.1.11", true, false, false, No, SameFolder, false),
        ("1.1.65", true, true, true, AgentChoosesId, Repository, true),
        ("1.2.0", true, true, false, AgentChoosesId, Repository, false),
        ("1.2.1", true, true, false, AgentChoosesId, Anywhere, true),
        ("1.14.34", true, true, false, AgentChoosesId, Anywhere, false),
        ("1.14.35", true, true, false, AgentChoosesId, SameFolder, false),
        ("1.15.13", true, true, true, AgentChoosesId, SameFolder, true),
        ("1.18.33", true, true, true, AgentChoosesId, SameFolder, true),
        ("1.99.0", true, true, true, AgentChoosesId, SameFolder, false),
        ("9.0.0", true, true, true, AgentChoosesId, SameFolder, false),
        ("2.0.0", false, false, false, No, SameFolder, false),
    ];
    for (version, resumable, headless, chosen, fork, reach, verified) in rows {
        let found = at(version);
        let row = (
            version,
            found.resumable_sessions,
            found.headless_resume,
            found.caller_chosen_id,
            found.fork,
            found.resume_reach,
            found.verified,
        );
        assert_eq!(row, (version, resumable, headless, chosen, fork, reach, verified));
    }
}

#[test]
fn a_conversation_is_taken_back_from_the_oldest_version_on_that_was_seen_to_go_on_from_there() {
    for (version, rewinds) in [("1.1.64", false), ("1.1.65", true), ("1.18.33", true)] {
        assert_eq!(at(version).rewind, rewinds, "{version}");
    }
}

#[test]
fn an_unknown_version_has_the_newest_rules() {
    assert_eq!(of(None), at("1.99.0"));
}

#[test]
fn the_version_is_found_behind_a_banner() {
    let numbers = |printed: &str| super::version(printed).map(|version| version.numbers);
    assert_eq!(numbers("1.18.33\n"), Some([1, 18, 33]));
    let offline =
        "Now using node v20.20.2 (npm v10)\n1.1.65\nERROR 2026-11-29T10:00:00 +12ms service=models.dev\n";
    assert_eq!(numbers(offline), Some([1, 1, 65]));
    assert_eq!(numbers("opencode 3.0.0\n"), Some([3, 0, 0]), "worded otherwise one day");
    assert_eq!(numbers("hello"), None);
}
