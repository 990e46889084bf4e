//! What goes in and comes out: every byte, in bounded memory.

use std::fs;

use session_core::NoSink;
use session_core::decide::Verdict;

use crate::support::{END, Heard, Stage};

#[tokio::test]
async fn a_prompt_of_a_mebibyte_arrives_by_stdin_alone_and_stdin_is_closed() {
    let stage = Stage::new(&format!(
        r#"cat > "$DIR/prompt"; tr '\0' '\n' < /proc/$$/cmdline > "$DIR/argv"; echo seen > "$DIR/after"; {END}"#
    ));
    let prompt = "secret \u{2028} $(x) `y` \"z\" é\r\n".repeat(40_000);
    assert!(prompt.len() > 1 << 20);
    let report = stage.run_in(stage.folder.path(), &prompt, &mut NoSink).await.unwrap();
    assert_eq!(report.verdict, Verdict::Completed);
    assert!(stage.read("prompt") == prompt, "the prompt is not the one given");
    assert_eq!(stage.read("after"), "seen\n");
    assert!(!stage.read("argv").contains("secret"));
}

#[tokio::test]
async fn an_agent_that_does_not_read_its_prompt_is_no_failure() {
    let stage = Stage::new(&format!("exec <&-; {END}"));
    let report = stage.run_in(stage.folder.path(), &"x".repeat(1 << 20), &mut NoSink).await.unwrap();
    assert_eq!(report.verdict, Verdict::Completed);
}

#[tokio::test]
async fn lines_end_at_line_feeds_only_and_characters_may_be_cut_anywhere() {
    let stage = Stage::new(r#"dd bs=1 if="$DIR/out" 2>/dev/null"#);
    let out = "{\"text\":\"caf\u{e9} \u{1f600}\"}\n{\"text\":\"a\u{2028}b\u{85}c\"}\r\n\n{\"text\":\"last\"}";
    fs::write(stage.path("out"), out).unwrap();
    let mut heard = Heard::default();
    let report = stage.run(&mut heard).await.unwrap();
    assert_eq!(heard.texts, ["caf\u{e9} \u{1f600}", "a\u{2028}b\u{85}c", "last"]);
    assert_eq!(heard.noise, [""]);
    assert_eq!(report.verdict, Verdict::NoResult);
    assert_eq!(report.evidence.observation.partial_text, "last");
    assert_eq!(report.evidence.version.as_deref(), Some("1.2.3"));
}

#[tokio::test]
async fn a_line_that_is_not_utf8_is_noise_and_the_run_goes_on() {
    let stage = Stage::new(&format!(r"printf 'caf\351 \377\n'; {END}"));
    let mut heard = Heard::default();
    let report = stage.run(&mut heard).await.unwrap();
    assert_eq!(heard.noise, ["caf\u{fffd} \u{fffd}"]);
    assert_eq!(report.verdict, Verdict::Completed);
}

#[tokio::test]
async fn a_line_above_the_limit_is_noise_and_the_run_goes_on() {
    let mut stage =
        Stage::new(&format!(r"head -c 3000000 /dev/zero | tr '\0' y; echo; {END}; echo 'not last'"));
    stage.max_line = 100_000;
    let mut heard = Heard::default();
    let report = stage.run(&mut heard).await.unwrap();
    assert_eq!(report.verdict, Verdict::Completed);
    assert_eq!(report.evidence.ended_by, None);
    assert_eq!(heard.noise.len(), 2);
    assert!(heard.noise[0].starts_with("[a line of more than 100000 bytes, left out] yyy"));
    assert!(heard.noise[0].len() < 1000);
    assert!(report.evidence.observation.noise_head.contains("left out"));
}

#[tokio::test]
async fn full_pipes_on_all_sides_do_not_block_each_other() {
    let stage = Stage::new(&format!(
        r#"head -c 10000000 /dev/zero | tr '\0' e >&2
        head -c 10000000 /dev/zero | tr '\0' o | fold -w 1000; echo
        echo END >&2; wc -c > "$DIR/count"; {END}"#
    ));
    let report = stage.run_in(stage.folder.path(), &"x".repeat(1 << 20), &mut NoSink).await.unwrap();
    assert_eq!(report.verdict, Verdict::Completed);
    assert_eq!(stage.read("count").trim(), (1 << 20).to_string());
    assert_eq!(report.evidence.observation.noise, 10_000);
    let tail = &report.evidence.stderr_tail;
    assert!(tail.len() < 70_000 && tail.ends_with("eEND\n"), "{}", tail.len());
    assert!(tail.starts_with("[9934468 bytes left out]\n"), "{}", &tail[..60]);
}

fn high_water_mark() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("the mark");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[tokio::test]
async fn two_hundred_megabytes_pass_in_constant_memory() {
    let stage =
        Stage::new(&format!(r"head -c 200000000 /dev/zero | tr '\0' 'x' | fold -w 8000; echo; {END}"));
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = high_water_mark();
    let report = stage.run(&mut NoSink).await.unwrap();
    let growth = high_water_mark() - before;
    assert_eq!(report.verdict, Verdict::Completed);
    assert_eq!(report.evidence.observation.noise, 25_000);
    assert!(growth < 16 * 1024, "{growth} KiB");
}
