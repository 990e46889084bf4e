//! Renders the decision table from the functions and compares it with the copy that rustdoc shows.
//! `REJOIN_UPDATE=1 cargo test -p session-core decide_table` writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use session_core::decide::*;

use crate::product::{adopt_at, attempt_at, count_at, plan_at, settle_at};

struct Fact {
    name: &'static str,
    values: Vec<&'static str>,
}

macro_rules! fact {
    ($name:literal, $type:ty) => {
        Fact { name: $name, values: <$type>::ALL.iter().map(|value| value.name()).collect() }
    };
}

/// One row: constraints that all have to hold (a fact and its allowed values), and the answer.
struct Row {
    when: Vec<(usize, Vec<usize>)>,
    answer: String,
}

impl Row {
    fn applies(&self, case: &[usize]) -> bool {
        self.when.iter().all(|(fact, values)| values.contains(&case[*fact]))
    }
}

fn cases(facts: &[Fact]) -> Vec<Vec<usize>> {
    facts.iter().fold(vec![Vec::new()], |cases, fact| {
        let extend = |case: Vec<usize>| {
            (0..fact.values.len()).map(move |value| case.iter().copied().chain([value]).collect())
        };
        cases.into_iter().flat_map(extend).collect()
    })
}

/// The widest pattern of so many constraints under which all open cases have one answer.
fn widest(facts: usize, constraints: usize, open: &[(Vec<usize>, String)]) -> Option<Row> {
    let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..constraints {
        let more = |chosen: Vec<usize>| {
            (chosen.last().map_or(0, |last| last + 1)..facts)
                .map(move |fact| chosen.iter().copied().chain([fact]).collect())
        };
        choices = choices.into_iter().flat_map(more).collect();
    }
    let mut best: Option<(usize, Row)> = None;
    for choice in choices {
        let mut seen: BTreeMap<Vec<usize>, (usize, Option<&str>)> = BTreeMap::new();
        for (case, answer) in open {
            let values = choice.iter().map(|fact| case[*fact]).collect();
            let entry = seen.entry(values).or_insert((0, Some(answer)));
            entry.0 += 1;
            entry.1 = entry.1.filter(|known| known == answer);
        }
        for (values, (count, answer)) in seen {
            if let Some(answer) = answer
                && best.as_ref().is_none_or(|(most, _)| count > *most)
            {
                let when = choice.iter().copied().zip(values.into_iter().map(|value| vec![value])).collect();
                best = Some((count, Row { when, answer: answer.to_owned() }));
            }
        }
    }
    best.map(|(_, row)| row)
}

/// An ordered list of rows of which the first that applies gives the answer: as few constraints as can be, and
/// the widest row first.
fn rows(facts: &[Fact], answer: &dyn Fn(&[usize]) -> String) -> Vec<Row> {
    let all: Vec<_> =
        cases(facts).into_iter().map(|case| (answer(&case), case)).map(|(a, c)| (c, a)).collect();
    let mut open = all.clone();
    let mut rows: Vec<Row> = Vec::new();
    while !open.is_empty() {
        let row = (0..=facts.len())
            .find_map(|count| widest(facts.len(), count, &open))
            .expect("a case is a pattern");
        open.retain(|(case, _)| !row.applies(case));
        match rows.last_mut() {
            // Neighbours that differ in the values of one fact stand together.
            Some(last) if last.answer == row.answer && mergeable(last, &row) => {
                for ((_, values), (_, more)) in last.when.iter_mut().zip(&row.when) {
                    if values != more {
                        values.extend(more);
                    }
                }
            }
            _ => rows.push(row),
        }
    }
    for (case, expected) in &all {
        let first = rows.iter().find(|row| row.applies(case)).expect("the rows cover all");
        assert_eq!(first.answer, *expected, "{case:?}");
    }
    rows
}

fn mergeable(a: &Row, b: &Row) -> bool {
    a.when.len() == b.when.len()
        && a.when.iter().zip(&b.when).all(|(a, b)| a.0 == b.0)
        && a.when.iter().zip(&b.when).filter(|(a, b)| a.1 != b.1).count() == 1
}

fn render(out: &mut String, facts: &[Fact], answer: &dyn Fn(&[usize]) -> String) {
    out.push_str("| # | when | answer |\n|---|---|---|\n");
    for (number, row) in rows(facts, answer).iter().enumerate() {
        let when: Vec<String> = row
            .when
            .iter()
            .map(|(fact, values)| {
                let names: Vec<_> = values.iter().map(|value| facts[*fact].values[*value]).collect();
                format!("{} = {}", facts[*fact].name, names.join(" or "))
            })
            .collect();
        let when = if when.is_empty() { "otherwise".to_owned() } else { when.join(", ") };
        writeln!(out, "| {} | {when} | {} |", number + 1, row.answer).unwrap();
    }
}

fn say(word: &str, why: Option<Why>) -> String {
    match (word, why) {
        (word, None) => format!("**{word}**"),
        ("", Some(why)) => format!("`{}`", why.code()),
        (word, Some(why)) => format!("**{word}** `{}`", why.code()),
    }
}

fn table() -> String {
    let mut out = String::from(include_str!("table_head.md"));

    out.push_str(
        "\n# Before the run: `plan`\n\nUnder the policy `Never` the answer is always **fresh** `resume_disabled`, under `Rerun` **fresh** `recipe_rerun`. \
         Under `Prefer` a reason below means **fresh**, under `Require` it means **refuse**.\n\n",
    );
    let facts = [
        fact!("record", RecordFact),
        fact!("support", Support),
        fact!("id", IdShape),
        fact!("workdir", Workdir),
        fact!("reach", Reach),
        fact!("consent", Consent),
        fact!("transcript", Transcript),
        fact!("history", History),
    ];
    render(&mut out, &facts, &|at| {
        let under = |policy| plan(PlanFacts { policy, ..plan_at(&[&[0], at].concat()) });
        assert_eq!(under(Policy::Never), Plan::Fresh(Why::ResumeDisabled));
        assert_eq!(under(Policy::Rerun), Plan::Fresh(Why::RecipeRerun));
        match (under(Policy::Prefer), under(Policy::Require)) {
            (Plan::Resume, Plan::Resume) => say("resume", None),
            (Plan::Fresh(why), Plan::Refuse(same)) if why == same => say("", Some(why)),
            other => panic!("{at:?}: {other:?}"),
        }
    });

    out.push_str(
        "\n# After an attempt: `next`\n\n`Fresh` stands for a fallback as well: nothing follows out of either. \
         The policies `Never` and `Rerun` count as `Prefer`.\n\n",
    );
    let facts = [
        Fact { name: "attempt", values: vec!["Resume", "Fresh"] },
        fact!("verdict", Verdict),
        fact!("activity", Activity),
        fact!("continuity", Continuity),
        fact!("patience", Patience),
        Fact { name: "policy", values: vec!["Prefer", "Require"] },
    ];
    render(&mut out, &facts, &|at| {
        let facts = attempt_at(&[at[5], at[0], at[1], at[2], at[3], at[4]]);
        let answer = next(facts);
        if facts.attempt == Attempt::Fresh {
            assert_eq!(next(AttemptFacts { attempt: Attempt::Fallback, ..facts }), answer);
        }
        if facts.policy == Policy::Prefer {
            assert_eq!(next(AttemptFacts { policy: Policy::Never, ..facts }), answer);
            assert_eq!(next(AttemptFacts { policy: Policy::Rerun, ..facts }), answer);
        }
        match answer {
            Next::Accept => say("accept", None),
            Next::AcceptAsFresh(why) => say("accept as fresh", Some(why)),
            Next::FallBack(why) => say("fall back", Some(why)),
            Next::Wait => say("wait", None),
            Next::Fail(why) => say("fail", Some(why)),
        }
    });

    out.push_str("\n# After the run: `settle`\n\n`Fresh` stands for a fallback as well.\n\n");
    // Verdicts and reasons matter by their kind only; a test holds that.
    let special = [Why::SessionBusy, Why::SessionMissing];
    let facts = [
        Fact { name: "attempt", values: vec!["Resume", "Fresh"] },
        Fact {
            name: "verdict",
            values: vec!["Completed", "Incompatible or ContextOverflow", "another failure"],
        },
        fact!("activity", Activity),
        fact!("continuity", Continuity),
        fact!("persisted", Persisted),
        fact!("bound", Bound),
        Fact { name: "why", values: vec!["out of reach for now", "condemns the session", "other or none"] },
    ];
    render(&mut out, &facts, &|at| {
        let why =
            special.get(at[6]).map_or(Why::ALL.len(), |why| Why::ALL.iter().position(|w| w == why).unwrap());
        let verdict = [Verdict::Completed, Verdict::Incompatible, Verdict::Crashed][at[1]];
        let verdict = Verdict::ALL.iter().position(|v| *v == verdict).unwrap();
        let facts = settle_at(&[at[0], verdict, at[2], at[3], at[4], at[5], why]);
        let answer = settle(facts);
        if facts.attempt == Attempt::Fresh {
            assert_eq!(settle(SettleFacts { attempt: Attempt::Fallback, ..facts }), answer);
        }
        say(
            match answer {
                Settlement::Bind => "bind",
                Settlement::KeepPending => "keep pending",
                Settlement::SetAside => "set aside",
                Settlement::KeepBinding => "keep binding",
                Settlement::Poison => "poison",
            },
            None,
        )
    });

    out.push_str("\n# A session whose run died: `adopt`\n\n");
    let facts = [
        fact!("leftover", Leftover),
        Fact { name: "replaces", values: vec!["Yes", "No"] },
        fact!("bound", Bound),
    ];
    render(&mut out, &facts, &|at| {
        let word = match adopt(adopt_at(at)) {
            Adoption::Bind => "bind",
            Adoption::Try => "try",
            Adoption::SetAside => "set aside",
            Adoption::Drop => "drop",
        };
        say(word, None)
    });

    out.push_str("\n# The row of failed resumes: `count`\n\n");
    let facts = [
        fact!("attempt", Attempt),
        fact!("verdict", Verdict),
        fact!("activity", Activity),
        Fact { name: "why", values: vec!["resume_keeps_failing", "session_busy", "other", "none"] },
    ];
    let special = [Some(Why::ResumeKeepsFailing), Some(Why::SessionBusy), Some(Why::SessionMissing), None];
    render(&mut out, &facts, &|at| {
        let why =
            special[at[3]].map_or(Why::ALL.len(), |why| Why::ALL.iter().position(|w| *w == why).unwrap());
        let word = match count(count_at(&[at[0], at[1], at[2], why])) {
            Count::Worked => "worked",
            Count::Failed => "failed",
            Count::Skipped => "skipped",
            Count::Silent => "silent",
        };
        say(word, None)
    });

    out.push_str(
        "\n# A text that waits to go before a prompt: `holds`\n\nWhether the session that is to be continued has it already, \
         from a run that died.\n\n",
    );
    let facts = [fact!("telling", Telling), fact!("grown", Grown)];
    render(&mut out, &facts, &|at| {
        say(if holds(Telling::ALL[at[0]], Grown::ALL[at[1]]) { "held" } else { "told" }, None)
    });

    out.push_str("\n# In a sweep: `fate`\n\n");
    let facts =
        [fact!("owner", Owner), fact!("grace", Unused), fact!("idle", Unused), fact!("extent", Extent)];
    render(&mut out, &facts, &|at| {
        let facts = SweepFacts {
            owner: Owner::ALL[at[0]],
            grace: Unused::ALL[at[1]],
            idle: Unused::ALL[at[2]],
            extent: Extent::ALL[at[3]],
        };
        let word = match fate(facts) {
            Fate::Orphaned => "orphaned",
            Fate::Idle => "idle",
            Fate::Kept => "kept",
            Fate::Spare => "kept, unless room is needed",
        };
        say(word, None)
    });

    gone_back(&mut out);
    located(&mut out);

    out.push_str("\n# Reasons\n\n| code | meaning |\n|---|---|\n");
    for why in Why::ALL {
        writeln!(out, "| `{}` | {why} |", why.code()).unwrap();
    }
    out
}

fn gone_back(out: &mut String) {
    out.push_str("\n# A path in a rewind: `path_fate`\n\n");
    render(out, &[fact!("changed by", Changer)], &|at| say(path_fate(Changer::ALL[at[0]]).name(), None));
    out.push_str("\n# The conversation in a rewind: `turn_back`\n\n");
    let facts = [fact!("stood", Stood), fact!("place", Place), fact!("holds", Holds), fact!("bound", Bound)];
    render(out, &facts, &|at| {
        let (stood, place, holds) = (Stood::ALL[at[0]], Place::ALL[at[1]], Holds::ALL[at[2]]);
        say(
            &format!("{:?}", turn_back(TurnBackFacts { stood, place, holds, bound: Bound::ALL[at[3]] })),
            None,
        )
    });
}

fn located(out: &mut String) {
    out.push_str(
        "\n# Which session is meant: `judge`\n\nSigns are tried in the order of the tables; what comes to *go on* leaves it to the next one.\n\n\
         | given | signs |\n|---|---|\n",
    );
    for given in Given::ALL {
        let signs = Sign::ALL.iter().filter(|sign| tries(*given, **sign)).map(|sign| sign.name());
        writeln!(out, "| {} | {} |", given.name(), signs.collect::<Vec<_>>().join(", ")).unwrap();
    }
    out.push('\n');
    let facts = [
        fact!("sign", Sign),
        fact!("hits", Hits),
        fact!("standing", Standing),
        fact!("workdir", Workdir),
        fact!("reach", Reach),
        fact!("consent", Consent),
    ];
    render(out, &facts, &|at| {
        let word = match judge(LocateFacts {
            sign: Sign::ALL[at[0]],
            hits: Hits::ALL[at[1]],
            standing: Standing::ALL[at[2]],
            workdir: Workdir::ALL[at[3]],
            reach: Reach::ALL[at[4]],
            consent: Consent::ALL[at[5]],
        }) {
            Judgement::GoOn => "go on",
            Judgement::Found => "found",
            Judgement::Relocate => "relocate",
            Judgement::AskProject => "ask for the project",
            Judgement::Offer => "offer",
            Judgement::CannotResume => "cannot resume",
        };
        say(word, None)
    });
}

#[test]
fn the_rendered_table_is_the_one_that_is_shown() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/decide/table.md");
    let fresh = table();
    if std::env::var_os("REJOIN_UPDATE").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap();
    assert!(shown == fresh, "{} is stale; write it anew with REJOIN_UPDATE=1", path.display());
}

#[test]
fn verdicts_and_reasons_matter_by_their_kind_when_settling() {
    let out_of_reach = [
        Why::SessionBusy,
        Why::SessionUnreadable,
        Why::SessionArchived,
        Why::SessionUnindexed,
        Why::ProviderDiffers,
        Why::VersionCannotResume,
        Why::AgentCannotResume,
    ];
    for facts in crate::product::settle_facts() {
        let like = match facts.why {
            Some(why) if out_of_reach.contains(&why) => Some(Why::SessionBusy),
            Some(why) if condemns(why) => Some(Why::SessionMissing),
            _ => None,
        };
        let verdict = match facts.verdict {
            Verdict::Completed => Verdict::Completed,
            Verdict::Incompatible | Verdict::ContextOverflow => Verdict::Incompatible,
            _ => Verdict::Crashed,
        };
        assert_eq!(settle(facts), settle(SettleFacts { why: like, verdict, ..facts }), "{facts:?}");
    }
}
