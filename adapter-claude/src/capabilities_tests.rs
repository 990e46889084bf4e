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
    use ForkSupport::{AgentChoosesId, CallerChoosesId, No};
    use IdOnResume::{Kept, Replaced};
    use ReachCapability::{Anywhere, Repository, SameFolder};
    let rows = [
        ("1.0.44", false, Replaced, No, SameFolder, FigureScope::Process, None, false),
        ("1.0.60", true, Replaced, No, SameFolder, FigureScope::Process, None, false),
        ("1.0.123", true, Replaced, AgentChoosesId, SameFolder, FigureScope::Process, None, false),
        ("1.0.124", true, Kept, AgentChoosesId, SameFolder, FigureScope::Process, None, false),
        ("2.0.14", true, Kept, AgentChoosesId, SameFolder, FigureScope::Process, None, true),
        ("2.0.73", true, Kept, CallerChoosesId, SameFolder, FigureScope::Process, None, false),
        ("2.1.50", true, Kept, CallerChoosesId, SameFolder, FigureScope::Process, None, false),
        ("2.1.197", true, Kept, CallerChoosesId, Repository, FigureScope::Process, Some(10_000_000), true),
        ("2.1.238", true, Kept, CallerChoosesId, Anywhere, FigureScope::Process, Some(10_000_000), false),
        ("2.1.281", true, Kept, CallerChoosesId, Anywhere, FigureScope::Process, Some(10_000_000), false),
        ("2.1.332", true, Kept, CallerChoosesId, Anywhere, FigureScope::Session, Some(10_000_000), true),
        ("9.0.0", true, Kept, CallerChoosesId, Anywhere, FigureScope::Session, Some(10_000_000), false),
    ];
    for (version, chosen, id, fork, reach, cost, limit, verified) in rows {
        let found = at(version);
        let row = (
            version,
            found.caller_chosen_id,
            found.id_on_resume,
            found.fork,
            found.resume_reach,
            found.cost_scope,
            found.prompt_limit,
            found.verified,
        );
        assert_eq!(row, (version, chosen, id, fork, reach, cost, limit, verified));
        assert!(found.resumable_sessions && found.headless_resume);
        // Both were first seen in 2.1.197.
        assert_eq!(found.tool_lists, limit.is_some(), "{version}");
    }
    assert!(!at("0.1.0").resumable_sessions);
    assert_eq!(["2.0.13", "2.0.14"].map(|version| at(version).system_prompt), [false, true]);
}

#[test]
fn a_conversation_is_taken_back_from_the_oldest_version_on_that_was_seen_to_go_on_from_there() {
    for (version, rewinds) in [("2.0.13", false), ("2.0.14", true), ("2.1.332", true)] {
        assert_eq!(at(version).rewind, rewinds, "{version}");
    }
}

#[test]
fn an_unknown_version_has_the_newest_rules_unverified() {
    assert_eq!(of(None), at("9.0.0"));
}

#[test]
fn the_version_is_found_behind_a_banner() {
    let numbers = |printed: &str| super::version(printed).map(|version| version.numbers);
    assert_eq!(numbers("2.1.332 (Claude Code)\n"), Some([2, 1, 332]));
    assert_eq!(numbers("Now using node v20.20.2\n2.0.14 (Claude Code)\nbye 1.0\n"), Some([2, 0, 14]));
    assert_eq!(numbers("3.0.0\n"), Some([3, 0, 0]), "worded otherwise one day");
    assert_eq!(numbers("hello"), None);
}
