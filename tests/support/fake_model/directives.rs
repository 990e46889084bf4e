//! What a prompt asks the fake model to do, written as `[[…]]`.

use std::time::Duration;

use serde_json::Value;

use super::stream::Ending;

/// The longest that a directive can delay an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The directives of one prompt.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Directives {
    pub(super) tool: Option<(String, Value)>,
    pub(super) status: Option<Status>,
    pub(super) delay: Option<Duration>,
    pub(super) hold: Option<String>,
    pub(super) say: Option<String>,
    pub(super) drop: bool,
    pub(super) cut: bool,
    pub(super) usage: Option<Usage>,
}

/// An answer which is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: u16,
    /// Only the first request with this prompt is refused.
    pub(super) once: bool,
}

/// The tokens that an answer reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_write: u64,
    pub(super) cache_read: u64,
}

impl Directives {
    /// How a stream is to end.
    pub(super) const fn ending(&self) -> Ending {
        if self.drop {
            Ending::Broken
        } else if self.cut {
            Ending::Cut
        } else {
            Ending::Whole
        }
    }

    /// Reads the directives of a prompt. What is no directive, or a broken one, is plain text.
    pub(super) fn parse(prompt: &str) -> Self {
        let mut found = Self::default();
        let mut rest = prompt;
        while let Some(at) = rest.find("[[") {
            let body = &rest[at + 2..];
            // After a broken one the search goes on inside it: `[[[say x]]` has one too.
            rest = found.take(body).unwrap_or(&rest[at + 1..]);
        }
        found
    }

    /// Takes in the directive at the start of a text and gives what follows it.
    fn take<'a>(&mut self, body: &'a str) -> Option<&'a str> {
        if let Some(call) = body.strip_prefix("tool ") {
            return self.take_tool(call);
        }
        let end = body.find("]]")?;
        let (word, argument) = body[..end].split_once(' ').unwrap_or((&body[..end], ""));
        match word {
            "status" => self.status = Some(Status::parse(argument)?),
            "delay" => {
                self.delay = Some(Duration::from_millis(argument.parse().ok()?).min(PATIENCE));
            }
            "hold" if !argument.is_empty() => self.hold = Some(argument.to_owned()),
            "say" => self.say = Some(argument.to_owned()),
            "drop" if argument.is_empty() => self.drop = true,
            "cut" if argument.is_empty() => self.cut = true,
            "usage" => self.usage = Some(Usage::parse(argument)?),
            _ => return None,
        }
        Some(&body[end + 2..])
    }

    /// The arguments of a tool are read as JSON, because they may contain `]]` themselves.
    fn take_tool<'a>(&mut self, call: &'a str) -> Option<&'a str> {
        let (name, json) = call.split_once(' ')?;
        let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
        let input = values.next()?.ok().filter(Value::is_object)?;
        let rest = json[values.byte_offset()..].trim_start().strip_prefix("]]")?;
        self.tool = Some((name.to_owned(), input));
        Some(rest)
    }
}

impl Status {
    fn parse(argument: &str) -> Option<Self> {
        let (code, once) = match argument.split_once(' ') {
            None => (argument, false),
            Some((code, "once")) => (code, true),
            Some(_) => return None,
        };
        let code = code.parse().ok().filter(|code| (400..600).contains(code))?;
        Some(Self { code, once })
    }
}

impl Usage {
    fn parse(argument: &str) -> Option<Self> {
        let numbers: Vec<u64> = argument.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [input, output, cache_write, cache_read] = numbers[..] else { return None };
        Some(Self { input, output, cache_write, cache_read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_directive_is_found_in_a_text() {
        let prompt = "do [[status 529 once]] and [[delay 20]][[hold here]] [[say a b]]\n\
                      [[drop]][[cut]] [[usage 1 2 3 4]] [[tool Bash {\"a\": [[1]], \"b\": \"]]\"}]] end";
        let expected = Directives {
            tool: Some(("Bash".to_owned(), json!({"a": [[1]], "b": "]]"}))),
            status: Some(Status { code: 529, once: true }),
            delay: Some(Duration::from_millis(20)),
            hold: Some("here".to_owned()),
            say: Some("a b".to_owned()),
            drop: true,
            cut: true,
            usage: Some(Usage { input: 1, output: 2, cache_write: 3, cache_read: 4 }),
        };
        assert_eq!(Directives::parse(prompt), expected);
    }

    #[test]
    fn everything_else_is_plain_text() {
        for prompt in [
            "",
            "[[",
            "[[]]",
            "[[status]]",
            "[[status 200]]",
            "[[status 529 twice]]",
            "[[delay soon]]",
            "[[hold]]",
            "[[cut it]]",
            "[[usage 1 2 3]]",
            "[[tool Bash]]",
            "[[tool Bash [1]]]",
            "[[tool Bash {\"a\": 1}",
            "[[nothing known]]",
            "[ [drop]]",
        ] {
            assert_eq!(Directives::parse(prompt), Directives::default(), "{prompt}");
        }
    }

    #[test]
    fn a_broken_directive_does_not_hide_the_next_one() {
        assert!(Directives::parse("[[status x]] [[drop]]").drop);
        assert!(Directives::parse("[[[[drop]]").drop);
    }

    #[test]
    fn a_broken_connection_is_more_than_a_cut_stream() {
        assert_eq!(Directives::parse("").ending(), Ending::Whole);
        assert_eq!(Directives::parse("[[cut]]").ending(), Ending::Cut);
        assert_eq!(Directives::parse("[[cut]] [[drop]]").ending(), Ending::Broken);
    }

    #[test]
    fn delays_have_an_end() {
        assert_eq!(Directives::parse("[[delay 999999999]]").delay, Some(PATIENCE));
    }
}
