//! Dialects that read or judge wrongly.

use std::sync::atomic::Ordering;

use session_core::decide::Verdict;
use session_core::*;

use super::Mutant;

/// A decoder that does something to lines before, or in place of, the sound one.
struct Through<F>(Box<dyn Decoder>, F);

impl<F: FnMut(&mut dyn Decoder, &[u8], &mut dyn FnMut(&AgentEvent<'_>)) + Send> Decoder for Through<F> {
    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)) {
        (self.1)(&mut *self.0, line, emit);
    }
}

pub(super) const STREAM: &[Mutant] = &[
    ("panics on what is no UTF-8", "any_bytes_are_read", |d| {
        d.decoder = |_, _, inner| {
            Box::new(Through(
                inner,
                |inner: &mut dyn Decoder, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)| {
                    inner.line(std::str::from_utf8(line).unwrap().as_bytes(), emit);
                },
            ))
        };
    }),
    ("shares a counter between runs", "the_same_lines_are_the_same_events", |d| {
        d.decoder = |memory, _, inner| {
            let count = memory.count.fetch_add(1, Ordering::SeqCst);
            Box::new(Through(
                inner,
                move |inner: &mut dyn Decoder, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)| {
                    inner.line(line, emit);
                    emit(&AgentEvent::Other { kind: &count.to_string() });
                },
            ))
        };
    }),
    ("takes what it does not know for trouble", "noise_says_nothing", |d| {
        d.decoder = |_, _, inner| {
            Box::new(Through(
                inner,
                |inner: &mut dyn Decoder, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)| {
                    inner.line(line, &mut |event| match event {
                        AgentEvent::Noise { line } => {
                            emit(&AgentEvent::Trouble { code: "noise", status: None, text: line })
                        }
                        event => emit(event),
                    });
                },
            ))
        };
    }),
    ("drops noise in silence", "noise_says_nothing", |d| {
        d.decoder = |_, _, inner| {
            Box::new(Through(
                inner,
                |inner: &mut dyn Decoder, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)| {
                    inner.line(line, &mut |event| {
                        if !matches!(event, AgentEvent::Noise { .. }) {
                            emit(event);
                        }
                    });
                },
            ))
        };
    }),
    ("keeps noise whole, however long it is", "a_huge_line_is_survived", |d| {
        d.decoder = |_, _, inner| {
            Box::new(Through(
                inner,
                |inner: &mut dyn Decoder, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)| {
                    inner.line(line, &mut |event| match event {
                        AgentEvent::Noise { .. } => {
                            emit(&AgentEvent::Noise { line: &String::from_utf8_lossy(line) })
                        }
                        event => emit(event),
                    });
                },
            ))
        };
    }),
    ("adopts the id that a failing resume prints", "a_failed_resume_names_no_other_session", |d| {
        d.decoder = |_, _, inner| {
            Box::new(Through(
                inner,
                |inner: &mut dyn Decoder, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)| {
                    let value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
                    if let Some(id) = value["session"].as_str() {
                        emit(&AgentEvent::Session { id });
                    }
                    inner.line(line, emit);
                },
            ))
        };
    }),
    ("finds ids in the words of the model", "the_words_of_the_model_condemn_nothing", |d| {
        d.decoder = |_, _, inner| {
            Box::new(Through(
                inner,
                |inner: &mut dyn Decoder, line: &[u8], emit: &mut dyn FnMut(&AgentEvent<'_>)| {
                    inner.line(line, &mut |event| {
                        emit(event);
                        if let AgentEvent::Text(text) = event
                            && let Some(at) = text.find("s-0")
                        {
                            emit(&AgentEvent::Session { id: &text[at..at + 12] });
                        }
                    });
                },
            ))
        };
    }),
];

fn says(evidence: &Evidence, word: &str) -> bool {
    let observation = &evidence.observation;
    evidence.stderr_tail.contains(word) || observation.noise_head.contains(word)
}

pub(super) const VERDICTS: &[Mutant] = &[
    ("says missing for busy", "every_fixture_has_its_verdict", |d| {
        d.classify = |_, verdict| if verdict == Verdict::Busy { Verdict::Missing } else { verdict };
    }),
    ("takes an answer for an end", "a_cut_stream_neither_completes_nor_condemns", |d| {
        d.classify = |evidence, verdict| match evidence.observation.partial_text.is_empty() {
            false => Verdict::Completed,
            true => verdict,
        };
    }),
    (
        "looks for lost sessions on stderr, whatever was done",
        "a_cut_stream_neither_completes_nor_condemns",
        |d| {
            d.classify = |evidence, verdict| match verdict {
                Verdict::Crashed if says(evidence, "there is no session") => Verdict::Missing,
                verdict => verdict,
            };
        },
    ),
    ("calls a lost session completed when the exit is 0", "a_missing_session_is_never_completed", |d| {
        d.classify = |evidence, verdict| match (verdict, evidence.exit) {
            (Verdict::Missing, Exit::Code(0)) => Verdict::Completed,
            (verdict, _) => verdict,
        };
    }),
    ("takes exit 0 for success", "one_sign_alone_is_no_success", |d| {
        d.classify = |evidence, verdict| match (verdict, evidence.exit) {
            (Verdict::NoResult, Exit::Code(0)) => Verdict::Completed,
            (verdict, _) => verdict,
        };
    }),
    ("calls what it does not know missing", "unknown_words_condemn_nothing", |d| {
        d.classify = |evidence, verdict| match verdict {
            Verdict::Unknown if !evidence.stderr_tail.is_empty() => Verdict::Missing,
            verdict => verdict,
        };
    }),
    ("reads verdicts out of the words of the model", "the_words_of_the_model_condemn_nothing", |d| {
        d.classify = |evidence, verdict| {
            let text = &evidence.observation.partial_text;
            if text.contains("there is no session") { Verdict::Missing } else { verdict }
        };
    }),
];
