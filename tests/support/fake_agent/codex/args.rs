//! The command line of `codex exec`, as far as sessions need it.

/// Flags that take a value in the next argument.
const WITH_VALUE: &[&str] = &[
    "-c",
    "--config",
    "-m",
    "--model",
    "-s",
    "--sandbox",
    "-C",
    "--cd",
    "-p",
    "--profile",
    "--add-dir",
    "--enable",
    "--disable",
    "-o",
    "--output-last-message",
    "--output-schema",
    "-i",
    "--image",
    "--color",
];

/// What the persona obeys. Other flags are passed over, with their values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Args {
    /// The thread to resume.
    pub(super) resume: Option<String>,
}

impl Args {
    /// Only what a runtime may ask for: `exec --json … [resume ID] [-]`, the prompt on standard input.
    pub(super) fn parse(argv: &[String]) -> Result<Self, String> {
        let mut words = Vec::new();
        let mut json = false;
        let mut rest = argv.iter();
        while let Some(arg) = rest.next() {
            if arg == "--" {
                words.extend(rest.by_ref());
            } else if WITH_VALUE.contains(&arg.as_str()) {
                rest.next();
            } else if arg == "--json" {
                json = true;
            } else if arg == "-" || !arg.starts_with('-') {
                words.push(arg);
            }
        }
        let words: Vec<_> = words.into_iter().map(String::as_str).filter(|word| *word != "-").collect();
        if !json {
            return Err("error: this one speaks JSON only".to_owned());
        }
        match words.as_slice() {
            ["exec"] => Ok(Self { resume: None }),
            ["exec", "resume", id] => Ok(Self { resume: Some((*id).to_owned()) }),
            _ => Err(format!("error: unexpected argument {words:?} found")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn flags_stand_anywhere_and_the_id_is_a_word() {
        let resumed = Ok(Args { resume: Some("x".to_owned()) });
        assert_eq!(parse("-c a=b exec --json --skip-git-repo-check -s read-only resume x -"), resumed);
        assert_eq!(parse("exec resume --json -- x"), resumed);
        assert_eq!(parse("exec --json -m resume -"), Ok(Args { resume: None }));
        for wrong in ["exec resume x", "exec --json resume x prompt", "--json", "exec --json resume"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
