//! The decoder: total, without memory of other runs, deaf to noise.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use session_core::decide::Verdict;
use session_core::{AgentEvent, Decoder, Ended, Exit, Mode, NativeId, Observation};

use super::turns::Stage;
use super::{Fixture, Subject};

/// What is between the lines of agents: of package managers, of terminals, of the runtime, and what is no text at all.
const NOISE: &[&[u8]] = &[
    b"",
    b"   ",
    b"npm warn deprecated something@1.0.0",
    b"(node:4711) ExperimentalWarning: it is an experiment",
    b"\x1b[2K\x1b[1G downloading 17%",
    b"\xef\xbb\xbf",
    b"\0\0\0",
    b"\xff\xfe\xfd",
    b"\xed\xa0\x80 half of a pair",
    b"{",
    b"}]",
    br#"{"type":"rejoin_contract_unknown","text":"\ud83d"}"#,
    br#"{"rejoin_contract":[1,2,{"deep":null}]}"#,
];

/// The lines of all fixtures, each once, as far as a test can take them.
fn real_lines(subject: &Subject) -> Vec<Vec<u8>> {
    let mut lines: Vec<_> =
        subject.fixtures.iter().flat_map(|fixture| fixture.lines()).map(<[u8]>::to_vec).collect();
    lines.retain(|line| line.len() < 64 * 1024);
    lines.sort();
    lines.dedup();
    lines.push(Vec::new());
    lines
}

fn any_line(subject: &Subject) -> impl Strategy<Value = Vec<u8>> + use<> {
    let real = select(real_lines(subject));
    let bent = (real.clone(), any::<Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
        if !line.is_empty() {
            let at = at.index(line.len());
            line[at] = byte;
        }
        line
    });
    let cut = (real.clone(), any::<Index>()).prop_map(|(mut line, at)| {
        line.truncate(at.index(line.len() + 1));
        line
    });
    prop_oneof![3 => real, 2 => bent, 1 => cut, 1 => prop::collection::vec(any::<u8>(), 0..80)]
}

/// How a run may have been asked for; ids stand for themselves.
fn any_mode(subject: &Subject) -> impl Strategy<Value = (u8, Option<NativeId>)> + use<> {
    let (one, two) = subject.two_ids();
    (0..3_u8, select(vec![None, Some(one), Some(two)]))
}

fn mode_of((kind, id): &(u8, Option<NativeId>)) -> Mode<'_> {
    match (kind, id) {
        (1, Some(id)) => Mode::Resume { id },
        (2, Some(source)) => Mode::Fork { source, transcript: None, id: None },
        (_, id) => Mode::Fresh { id: id.as_ref() },
    }
}

/// An end in order, without a word.
const SILENT: Ended<'static> = Ended { exit: Exit::Code(0), stderr_tail: "" };

fn decoder(subject: &Subject, mode: Mode<'_>) -> Box<dyn Decoder> {
    let stage = Stage::new(&*subject.dialect, subject.versions.last().cloned());
    subject.dialect.decoder(&stage.turn(mode))
}

fn take(decoder: &mut dyn Decoder, line: &[u8], into: &mut Vec<String>) {
    decoder.line(line, &mut |event: &AgentEvent<'_>| into.push(format!("{event:?}")));
}

/// No bytes make a decoder fail, in whatever order they come.
pub(super) fn any_bytes_are_read(subject: &Subject) {
    let lines = prop::collection::vec(any_line(subject), 0..16);
    let outcome = subject.random(512).run(&(any_mode(subject), lines), |(mode, lines)| {
        let mut decoder = decoder(subject, mode_of(&mode));
        let mut observation = Observation::default();
        for line in &lines {
            decoder.line(line, &mut |event| observation.observe(event));
        }
        decoder.end(&SILENT, &mut |event| observation.observe(event));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// Nothing but the lines counts: not the time, and not what another decoder was given meanwhile.
pub(super) fn the_same_lines_are_the_same_events(subject: &Subject) {
    let lines = || prop::collection::vec(any_line(subject), 0..10);
    let input = (any_mode(subject), lines(), lines());
    let outcome = subject.random(128).run(&input, |(mode, lines, others)| {
        let mode = mode_of(&mode);
        let (mut alone, mut among) = (Vec::new(), Vec::new());
        let mut first = decoder(subject, mode);
        lines.iter().for_each(|line| take(&mut *first, line, &mut alone));
        let (mut second, mut third) = (decoder(subject, mode), decoder(subject, mode));
        let mut others = others.iter();
        for line in &lines {
            if let Some(other) = others.next() {
                take(&mut *third, other, &mut Vec::new());
            }
            take(&mut *second, line, &mut among);
        }
        first.end(&SILENT, &mut |event| alone.push(format!("{event:?}")));
        second.end(&SILENT, &mut |event| among.push(format!("{event:?}")));
        prop_assert_eq!(alone, among);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// What is known of an attempt, but for how much noise there was.
fn heard(mut observation: Observation) -> serde_json::Value {
    observation.events = 0;
    observation.noise = 0;
    observation.noise_head.clear();
    serde_json::to_value(observation).unwrap_or_else(|error| panic!("{error}"))
}

fn with_noise<'a>(fixture: &'a Fixture, noise: &[(Index, &'a [u8])]) -> Vec<&'a [u8]> {
    let mut lines = fixture.lines();
    for (at, line) in noise {
        lines.insert(at.index(lines.len() + 1), line);
    }
    lines
}

/// What is no event changes neither what is known nor the verdict, wherever it stands and in whatever order.
pub(super) fn noise_says_nothing(subject: &Subject) {
    let fixtures: Vec<_> = (0..subject.fixtures.len()).collect();
    assert!(!fixtures.is_empty(), "fixtures are needed");
    let noise = prop::collection::vec((any::<Index>(), select(NOISE)), 1..6);
    let outcome = subject.random(512).run(&(select(fixtures), noise), |(at, noise)| {
        let (fixture, dialect) = (&subject.fixtures[at], &*subject.dialect);
        let plain = fixture.fold(dialect, &fixture.lines(), fixture.exit);
        let noisy = fixture.fold(dialect, &with_noise(fixture, &noise), fixture.exit);
        prop_assert_eq!(heard(plain), heard(noisy.clone()), "{}", fixture.name());
        prop_assert_eq!(dialect.classify(&fixture.evidence(noisy, fixture.exit)), fixture.verdict);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let mut events = Vec::new();
    take(&mut *decoder(subject, Mode::Fresh { id: None }), NOISE[2], &mut events);
    assert!(
        matches!(events.as_slice(), [only] if only.starts_with("Noise")),
        "noise is passed on: {events:?}"
    );
}

/// A tool can put 50 MB on one line, and the line can be cut. The run goes on, and of what is no event little is kept.
pub(super) fn a_huge_line_is_survived(subject: &Subject) {
    let completed = |fixture: &&Fixture| fixture.verdict == Verdict::Completed;
    let fixture = subject
        .fixtures
        .iter()
        .find(completed)
        .unwrap_or_else(|| panic!("a fixture of a completed run is needed"));
    let mut huge = br#"{"type":"rejoin_contract_unknown","text":""#.to_vec();
    huge.resize(50 * 1000 * 1000 / subject.divisor as usize, b'x');
    let cut = huge.clone();
    huge.extend(br#""}"#);
    let mut lines = fixture.lines();
    let middle = lines.len() / 2;
    lines.splice(middle..middle, [huge.as_slice(), cut.as_slice()]);
    let observation = fixture.fold(&*subject.dialect, &lines, fixture.exit);
    assert!(observation.noise_head.len() < 64 * 1024, "what is kept of noise is bounded");
    let verdict = subject.dialect.classify(&fixture.evidence(observation, fixture.exit));
    assert_eq!(verdict, Verdict::Completed, "{}", fixture.name());
}
