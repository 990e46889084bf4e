//! The command line of Claude Code, as far as sessions need it.

/// The flags the persona obeys. Others are passed over, with their values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Args {
    pub(super) session_id: Option<String>,
    pub(super) resume: Option<Resume>,
    pub(super) fork: bool,
    pub(super) format: Format,
    pub(super) verbose: bool,
    pub(super) name: Option<String>,
    pub(super) model: Option<String>,
    pub(super) unsaved: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resume {
    Session(String),
    /// `--resume` without a value, which opens a picker for people.
    Picker,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    #[default]
    Text,
    Json,
    StreamJson,
}

impl Args {
    pub(super) fn parse(argv: &[String]) -> Self {
        let mut args = Self::default();
        let mut rest = argv.iter().take_while(|arg| *arg != "--").peekable();
        while let Some(arg) = rest.next() {
            let (flag, inline) = match arg.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            match flag {
                "--fork-session" => args.fork = true,
                "--verbose" => args.verbose = true,
                "--no-session-persistence" => args.unsaved = true,
                "--resume" | "-r" => {
                    let value = inline.or_else(|| rest.next_if(|next| !next.starts_with('-')).cloned());
                    args.resume = Some(value.map_or(Resume::Picker, Resume::Session));
                }
                "--session-id" => args.session_id = inline.or_else(|| rest.next().cloned()),
                "--name" | "-n" => {
                    args.name = inline.or_else(|| rest.next().cloned()).and_then(|text| title(&text))
                }
                "--model" => args.model = inline.or_else(|| rest.next().cloned()),
                "--output-format" => {
                    args.format = match inline.or_else(|| rest.next().cloned()).as_deref() {
                        Some("stream-json") => Format::StreamJson,
                        Some("json") => Format::Json,
                        _ => Format::Text,
                    };
                }
                _ => {}
            }
        }
        args
    }

    /// The session the caller wants to have: the new one of a fork, otherwise the one to resume.
    pub(super) fn wanted_id(&self) -> Option<&str> {
        self.session_id.as_deref().or(match &self.resume {
            Some(Resume::Session(id)) => Some(id),
            _ => None,
        })
    }
}

/// Titles are trimmed and have one line; an empty one is none.
fn title(text: &str) -> Option<String> {
    let title = text.trim().replace('\n', " ");
    (!title.is_empty()).then_some(title)
}

/// Whether the CLI takes this for a session id: 8-4-4-4-12 hexadecimal digits, in any case.
pub(super) fn is_session_id(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Args {
        Args::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn both_forms_of_a_value_are_read() {
        let expected = Args {
            resume: Some(Resume::Session("x".to_owned())),
            format: Format::StreamJson,
            verbose: true,
            ..Args::default()
        };
        assert_eq!(parse("-p --resume x --output-format stream-json --verbose"), expected);
        assert_eq!(parse("-p --resume=x --output-format=stream-json --verbose"), expected);
    }

    #[test]
    fn the_prompt_and_other_flags_are_passed_over() {
        let args = parse("-p --permission-mode plan --session-id a -- --fork-session --name=x");
        assert_eq!(args, Args { session_id: Some("a".to_owned()), ..Args::default() });
        assert_eq!(parse("--resume --verbose").resume, Some(Resume::Picker));
    }

    #[test]
    fn session_ids_are_uuids_of_any_version() {
        assert!(is_session_id("00000000-0000-0000-0000-00000000000A"));
        assert!(!is_session_id("{00000000-0000-0000-0000-000000000000}"));
        assert!(!is_session_id("issue-42"));
        assert!(!is_session_id("00000000-0000-0000-0000-0000000000é"));
    }
}
