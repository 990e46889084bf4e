//! What a session cost, by its own files.

use rejoin::core::history::usage_by_day;
use serde_json::{Value, json};

use crate::desk::{Desk, reply, said, user};

fn cost(usd: impl Into<Value>) -> Value {
    json!({"type": "cost-state", "sessionId": "s", "totalCostUSD": usd.into(), "modelUsage": {}})
}

#[test]
fn a_counter_that_falls_is_a_new_one_and_what_it_showed_stays() {
    for (shown, expected) in [
        (vec![0.25, 0.28, 0.03], Some(0.31)),
        (vec![0.25, 0.28], Some(0.28)),
        (vec![0.1, 0.2, 0.1, 0.3, 0.0], Some(0.5)),
        (vec![0.0], Some(0.0)),
        (vec![], None),
    ] {
        let mut lines = vec![user("u1", None, "hi"), said("a2", "u1", "ho")];
        lines.extend(shown.iter().map(|usd| cost(*usd)));
        assert_eq!(Desk::of(&lines).restored().cost_usd, expected, "{shown:?}");
    }
}

#[test]
fn a_figure_that_is_none_is_left_out() {
    let lines = [cost(0.5), cost(-3), cost("much"), cost(json!(null)), cost(json!({"usd": 1}))];
    assert_eq!(Desk::of(&lines).restored().cost_usd, Some(0.5));
}

/// A run that was killed has no result: its tokens are in the file all the same.
#[test]
fn tokens_of_runs_that_were_killed_count() {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let desk = Desk::of(&[
        user("u1", None, "one"),
        reply("a2", "u1", text("killed"), 1000),
        user("u3", Some("a2"), "two"),
        reply("a4", "u3", text("done"), 200),
        user("u5", Some("a4"), "three"),
        reply("a6", "u5", text("failed"), 300),
    ]);
    desk.helper(
        "agent-x",
        &[user("u8", None, "help"), reply("a9", "u8", text("helped"), 40)].map(|mut line| {
            line["isSidechain"] = json!(true);
            line
        }),
    );
    let restored = desk.restored();
    assert_eq!((restored.usage.output_tokens, restored.usage_of_sidechains.output_tokens), (1500, 40));
    assert_eq!((restored.model.as_deref(), restored.branch.as_deref()), (Some("claude-x"), Some("main")));
    assert_eq!(restored.cwd.as_deref(), Some(std::path::Path::new("/w")));
}

/// What was spent on a day is of the day of whoever asks.
#[test]
fn tokens_by_day_are_of_the_zone_that_is_asked_for() {
    let text = json!([{"type": "text", "text": "so"}]);
    let spent = |name: &str, time: &str, tokens: u64| {
        let mut line = reply(name, "u1", text.clone(), tokens);
        line["timestamp"] = json!(time);
        line
    };
    let lines = [
        user("u1", None, "hi"),
        spent("a1", "2026-03-01T15:30:00.000Z", 1),
        spent("a2", "2026-03-01T16:30:00.000Z", 10),
        // Of one reply that goes on after midnight.
        spent("a2", "2026-03-02T16:00:01.000Z", 12),
        spent("a3", "2026-03-28T23:30:00.000Z", 100),
        spent("a4", "2026-03-29T21:59:59.000Z", 1000),
        spent("a5", "2026-03-29T22:00:00.000Z", 10_000),
        spent("a6", "yesterday", 100_000),
    ];
    let page = Desk::of(&lines).last(9);
    let days = |zone: jiff::tz::TimeZone| -> Vec<(Option<String>, u64)> {
        let day = |time: rejoin::core::Timestamp| {
            let time = jiff::Timestamp::from_millisecond(time.as_millis()).unwrap();
            zone.to_datetime(time).date().to_string()
        };
        let days = usage_by_day(page.entries.iter().map(|located| &located.entry), day);
        days.into_iter().map(|(day, usage)| (day, usage.output_tokens)).collect()
    };
    let expected = |days: &[(Option<&str>, u64)]| {
        days.iter().map(|(day, tokens)| (day.map(str::to_owned), *tokens)).collect::<Vec<_>>()
    };
    let east = jiff::tz::TimeZone::fixed(jiff::tz::offset(8));
    assert_eq!(
        days(east),
        expected(&[
            (None, 100_000),
            (Some("2026-03-01"), 1),
            (Some("2026-03-02"), 12),
            (Some("2026-03-29"), 100),
            (Some("2026-03-30"), 11_000),
        ])
    );
    // A day of 23 hours, from 23:00 to 22:00 in UTC.
    let berlin = jiff::tz::TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    assert_eq!(
        days(berlin),
        expected(&[
            (None, 100_000),
            (Some("2026-03-01"), 13),
            (Some("2026-03-29"), 1100),
            (Some("2026-03-30"), 10_000),
        ])
    );
}
