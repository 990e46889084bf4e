//! Recorded runs of the real program.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use session_core::decide::{Activity, Verdict};
use session_core::{
    AgentEvent, Asked, CliDialect, Ended, EndedBy, Evidence, Exit, Mode, NativeId, Observation, Version,
};

use super::turns::Stage;

/// One recorded run: what the program wrote, how it ended, and what the dialect has to say of it.
#[derive(Debug, Clone)]
pub struct Fixture {
    pub(crate) place: PathBuf,
    pub(crate) version: Version,
    pub(crate) asked: Asked,
    pub(crate) exit: Exit,
    pub(crate) ended_by: Option<EndedBy>,
    pub(crate) verdict: Verdict,
    pub(crate) activity: Activity,
    pub(crate) session: Option<NativeId>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    version: String,
    asked: Asked,
    exit: Exit,
    ended_by: Option<EndedBy>,
    /// For people who want to record the run anew.
    #[serde(default, rename = "args")]
    _args: Vec<String>,
    verdict: String,
    activity: String,
    session: Option<NativeId>,
}

impl Fixture {
    fn load(place: &Path) -> Self {
        let meta: Meta = serde_json::from_slice(&read(&place.join("meta.json")))
            .unwrap_or_else(|error| panic!("{}: {error}", place.join("meta.json").display()));
        let named = |what: &str| -> ! { panic!("{}: there is no {what}", place.display()) };
        let folder = place.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        assert_eq!(
            folder,
            Some(meta.version.as_str()),
            "{}: the folder is that of its version",
            place.display()
        );
        Self {
            version: Version::parse(&meta.version).unwrap_or_else(|| named(&meta.version)),
            asked: meta.asked,
            exit: meta.exit,
            ended_by: meta.ended_by,
            verdict: by_name(Verdict::ALL, |v| v.name(), &meta.verdict)
                .unwrap_or_else(|| named(&meta.verdict)),
            activity: by_name(Activity::ALL, |a| a.name(), &meta.activity)
                .unwrap_or_else(|| named(&meta.activity)),
            session: meta.session,
            stdout: read(&place.join("stdout.jsonl")),
            stderr: String::from_utf8_lossy(&read(&place.join("stderr.txt"))).into_owned(),
            place: place.to_owned(),
        }
    }

    /// What the run was asked to continue or to copy, and what it named.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NativeId> {
        let asked = match &self.asked {
            Asked::Fresh(id) => id.clone(),
            Asked::Resume(id) | Asked::Fork(id) => Some(id.clone()),
        };
        asked.into_iter().chain(self.session.clone())
    }

    /// The lines, without their ends.
    pub(crate) fn lines(&self) -> Vec<&[u8]> {
        let mut lines: Vec<_> = self.stdout.split(|byte| *byte == b'\n').collect();
        lines.pop_if(|last| last.is_empty());
        lines
    }

    pub(crate) fn mode(&self) -> Mode<'_> {
        match &self.asked {
            Asked::Fresh(id) => Mode::Fresh { id: id.as_ref() },
            Asked::Resume(id) => Mode::Resume { id },
            Asked::Fork(source) => Mode::Fork { source, transcript: None, id: None },
        }
    }

    /// The fold of these lines and of such an end, as the dialect reads them in such a run.
    pub(crate) fn fold(&self, dialect: &dyn CliDialect, lines: &[&[u8]], exit: Exit) -> Observation {
        self.read(dialect, lines, exit).1
    }

    /// The fold of these lines, before and after the decoder was told that there are no more.
    pub(crate) fn read(
        &self,
        dialect: &dyn CliDialect,
        lines: &[&[u8]],
        exit: Exit,
    ) -> (Observation, Observation) {
        let stage = Stage::new(dialect, Some(self.version.clone()));
        let mut decoder = dialect.decoder(&stage.turn(self.mode()));
        let mut observation = Observation::default();
        for line in lines {
            decoder.line(line, &mut |event: &AgentEvent<'_>| observation.observe(event));
        }
        let before = observation.clone();
        let ended = Ended { exit, stderr_tail: &self.stderr };
        decoder.end(&ended, &mut |event| observation.observe(event));
        (before, observation)
    }

    /// The evidence of a run that wrote these lines and ended like this.
    pub(crate) fn evidence(&self, observation: Observation, exit: Exit) -> Evidence {
        Evidence {
            asked: self.asked.clone(),
            version: Some(self.version.text.clone()),
            exit,
            ended_by: self.ended_by,
            stderr_tail: self.stderr.clone(),
            observation,
            leftovers_ended: 0,
        }
    }

    /// The evidence of the run as it was.
    pub(crate) fn whole(&self, dialect: &dyn CliDialect) -> Evidence {
        self.evidence(self.fold(dialect, &self.lines(), self.exit), self.exit)
    }

    /// Whether a session was to be continued, and the run did nothing.
    pub(crate) fn is_failed_resume(&self) -> bool {
        let resumes = matches!(self.asked, Asked::Resume(_));
        resumes && self.verdict != Verdict::Completed && self.activity == Activity::None
    }

    /// Where it lies, for messages.
    pub(crate) fn name(&self) -> String {
        let parts: Vec<_> = self.place.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
        format!("{}/{}", parts[1], parts[0])
    }
}

fn by_name<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Option<T> {
    all.iter().copied().find(|value| name(*value) == text)
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let path = |entry: std::io::Result<std::fs::DirEntry>| match entry {
        Ok(entry) => entry.path(),
        Err(error) => panic!("{}: {error}", folder.display()),
    };
    let mut children: Vec<_> = entries.map(path).collect();
    children.sort();
    children
}

/// Every fixture below the folder, in order.
pub(crate) fn load(folder: &Path) -> Vec<Fixture> {
    let fixtures: Vec<_> = children(folder)
        .iter()
        .flat_map(|version| children(version))
        .map(|place| Fixture::load(&place))
        .collect();
    assert!(!fixtures.is_empty(), "{}: there are no fixtures", folder.display());
    fixtures
}
