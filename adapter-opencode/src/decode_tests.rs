use proptest::prelude::*;

use super::*;

/// One that gives its reason: nothing is made up of it.
const SILENT: Ended<'static> = Ended { exit: Exit::Code(1), stderr_tail: "Error: x" };

fn events(lines: &[&str]) -> Vec<String> {
    let mut decoder = OpencodeDecoder::default();
    let mut events = Vec::new();
    let mut note = |event: &AgentEvent<'_>| {
        events.push(match event {
            AgentEvent::Finished(end) => format!("Finished {} {:?}", end.kind, end.text),
            event => format!("{event:?}"),
        });
    };
    for line in lines {
        decoder.line(line.as_bytes(), &mut note);
    }
    decoder.end(&SILENT, &mut note);
    events
}

fn line(kind: &str, part: &str) -> String {
    format!(r#"{{"type":"{kind}","sessionID":"ses_1","part":{part}}}"#)
}

#[test]
fn the_first_line_names_the_session_and_the_call() {
    let start = line("step_start", "{}");
    assert_eq!(
        events(&[&start, &start]),
        [
            r#"Session { id: "ses_1" }"#,
            "ModelCalled",
            r#"Other { kind: "step_start" }"#,
            r#"Other { kind: "step_start" }"#,
        ]
    );
}

#[test]
fn the_end_is_told_when_the_output_is_over_and_not_at_a_stop() {
    let (start, stop) = (line("step_start", "{}"), line("step_finish", r#"{"reason":"stop"}"#));
    let one = line("text", r#"{"text":"one"}"#);
    let (two, three) = (line("text", r#"{"text":"two"}"#), line("text", r#"{"text":"three"}"#));
    let synthetic = line("text", r#"{"text":"go on","synthetic":true}"#);
    let all = events(&[&start, &one, &stop, &synthetic, &start, &two, &three, &stop]);
    let ends: Vec<_> = all.iter().filter(|event| event.starts_with("Finished")).collect();
    assert_eq!(ends, [r#"Finished stop "two\nthree""#]);
    assert_eq!(all.last(), Some(ends[0]));
    assert!(!all.iter().any(|event| event.contains("go on")));
}

#[test]
fn the_text_is_that_of_the_last_step_that_spoke() {
    let (start, call) = (line("step_start", "{}"), line("step_finish", r#"{"reason":"tool-calls"}"#));
    let stop = line("step_finish", r#"{"reason":"stop"}"#);
    let all = events(&[&start, &line("text", r#"{"text":"done"}"#), &call, &start, &stop]);
    assert_eq!(all.last().unwrap(), r#"Finished stop "done""#);
}

#[test]
fn a_tool_is_told_when_it_is_done() {
    let done = line("tool_use", r#"{"callID":"c","tool":"bash","state":{"status":"completed"}}"#);
    let failed = done.replace("completed", "error");
    assert_eq!(
        events(&[&done, &failed])[2..],
        [
            r#"ToolStarted { id: "c", name: "bash" }"#,
            r#"ToolFinished { id: "c", is_error: false }"#,
            r#"ToolStarted { id: "c", name: "bash" }"#,
            r#"ToolFinished { id: "c", is_error: true }"#,
        ]
    );
}

#[test]
fn an_error_from_before_the_call_names_no_session() {
    let error = |name: &str, data: &str| {
        format!(r#"{{"type":"error","sessionID":"ses_1","error":{{"name":"{name}","data":{data}}}}}"#)
    };
    let before = events(&[&error("UnknownError", r#"{"message":"odd","ref":"err_1"}"#)]);
    assert_eq!(
        before,
        [r#"Trouble { code: "UnknownError", status: None, text: "odd (err_1)" }"#, r#"Finished error """#,]
    );
    let after = events(&[&error("APIError", r#"{"message":"no","statusCode":400}"#)]);
    assert_eq!(after[..2], [r#"Session { id: "ses_1" }"#, "ModelCalled"]);
}

#[test]
fn tokens_and_cost_add_up_and_reasoning_counts_where_it_stands_apart() {
    let finish = line(
        "step_finish",
        r#"{"reason":"tool-calls","cost":0.25,"tokens":{"input":10,"output":5,"reasoning":2,"cache":{"read":3,"write":1}}}"#,
    );
    let stdout = format!("{finish}\n{finish}\n");
    for (version, output) in [("1.2.1", 10), ("1.15.13", 14), ("1.18.33", 14)] {
        let end = decode_for_tests(version, stdout.as_bytes(), &SILENT).end.unwrap();
        let usage =
            Usage { input_tokens: 20, output_tokens: output, cache_read_tokens: 6, cache_write_tokens: 2 };
        assert_eq!((end.usage, end.cost_usd, end.turns), (usage, Some(0.5), Some(2)), "{version}");
    }
}

/// A part is told again when the agent changed something in it.
#[test]
fn a_part_that_is_told_twice_counts_once() {
    let end = |id: &str, cost: u32, reason: &str| {
        let part = format!(r#"{{"id":"{id}","reason":"{reason}","cost":{cost},"tokens":{{"input":10}}}}"#);
        line("step_finish", &part)
    };
    let text = line("text", r#"{"id":"prt_1","text":"done"}"#);
    let (one, two) = (end("prt_2", 1, "tool-calls"), end("prt_3", 2, "stop"));
    let stdout = [&one, &text, &text, &two, &two].map(String::as_str).join("\n");
    let end = decode_for_tests("1.18.33", stdout.as_bytes(), &SILENT).end.unwrap();
    assert_eq!((end.cost_usd, end.usage.input_tokens, end.turns), (Some(3.0), 20, Some(2)));
    assert_eq!((end.kind.as_str(), end.text.as_str()), ("stop", "done"));
}

#[test]
fn a_stream_that_is_cut_again_and_again_is_over() {
    let (start, cut) = (line("step_start", "{}"), line("step_finish", r#"{"reason":"unknown"}"#));
    let text = line("text", r#"{"text":"x"}"#);
    let is_over = |lines: &[&str]| {
        let mut decoder = OpencodeDecoder::default();
        let mut over = false;
        for line in lines {
            decoder.line(line.as_bytes(), &mut |event| {
                if let AgentEvent::Finished(end) = event {
                    over |= end.is_error && end.kind == STREAM_CUT;
                }
            });
        }
        over
    };
    let cuts: Vec<&str> = [start.as_str(), cut.as_str()].repeat(5);
    assert!(is_over(&cuts));
    assert!(!is_over(&cuts[..8]));
    // A step that brought something is none of them.
    let spoken: Vec<&str> = [start.as_str(), text.as_str(), cut.as_str()].repeat(9);
    assert!(!is_over(&spoken));
}

#[test]
fn what_is_no_event_is_noise_and_a_byte_order_mark_is_nothing() {
    let marked = format!("\u{feff}{}", line("step_start", "{}"));
    assert_eq!(events(&[&marked])[0], r#"Session { id: "ses_1" }"#);
    assert_eq!(events(&["", "  ", "Update available!"]), [r#"Noise { line: "Update available!" }"#]);
    assert_eq!(events(&["{}"]), [r#"Noise { line: "{}" }"#]);
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20)) {
        let mut decoder = OpencodeDecoder::default();
        for line in &lines {
            decoder.line(line, &mut |_| {});
        }
        decoder.end(&SILENT, &mut |_| {});
    }

    #[test]
    fn no_field_is_too_odd(kind in "(text|tool_use|step_start|step_finish|error|reasoning)", part in "[\\[\\]{}\":,0-9a-z]{0,30}") {
        let line = format!(r#"{{"type":"{kind}","sessionID":{part},"part":{{"text":{part},"tokens":{part}}},"error":{part}}}"#);
        let mut decoder = OpencodeDecoder::default();
        decoder.line(line.as_bytes(), &mut |_| {});
        decoder.end(&SILENT, &mut |_| {});
    }
}
