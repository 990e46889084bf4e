//! How a person continues a session in its agent's own interface.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rejoin::core::{CliDialect, EnvChange, EnvMap, Program};
use rejoin::history::{ListedSession, Resumability};
use rejoin::{Answer, Seek, Wanted};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::json::text;
use crate::plain::{self, shell};
use crate::world::{self, World};

/// A command line of an agent, and where to run it.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) program: Program,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    /// What the agent needs to look into the session's state dir.
    pub(crate) changes: Vec<EnvChange>,
}

#[derive(Debug, Serialize)]
pub(crate) struct InvocationJson {
    line: String,
    cwd: String,
    program: String,
    args: Vec<String>,
    env: Vec<VariableJson>,
}

#[derive(Debug, Serialize)]
struct VariableJson {
    name: String,
    /// `None`: the variable is removed.
    value: Option<String>,
}

impl Invocation {
    /// The command line that continues this session, in the folder that its agent finds it from; where that is gone, in this
    /// one, if its agent finds it from here.
    pub(crate) async fn of(
        listed: &ListedSession,
        here: Option<&Path>,
        world: &World,
    ) -> Result<Self, Failure> {
        let ListedSession { agent, entry, .. } = listed;
        if let Resumability::No(why) = entry.resumable {
            let why = crate::commands::list::unresumable(why);
            return Err(Failure::new(Exit::Refused, format!("{} cannot be continued: {why}", entry.id)));
        }
        let dialect = world::dialect(agent);
        let args = dialect.as_ref().and_then(|dialect| dialect.attended(&entry.id));
        let (Some(dialect), Some(args)) = (dialect, args) else {
            let message = format!("there is no way to continue {} in {agent}'s own interface", entry.id);
            return Err(Failure::new(Exit::Refused, message));
        };
        let cwd = folder(listed, here, world).await?;
        Ok(Self { program: dialect.program(), args, cwd, changes: changes(&*dialect, listed, world) })
    }

    /// The line that takes the session out of its agent's archive, where there is one. It may be run anywhere.
    pub(crate) fn unarchive(listed: &ListedSession, world: &World) -> Option<String> {
        let dialect = world::dialect(&listed.agent)?;
        let (args, cwd) = (dialect.unarchive(&listed.entry.id)?, PathBuf::new());
        let changes = changes(&*dialect, listed, world);
        Some(Self { program: dialect.program(), args, cwd, changes }.command())
    }

    /// A line for a POSIX shell.
    pub(crate) fn line(&self) -> String {
        format!("cd {} && {}", shell(&text(&self.cwd)), self.command())
    }

    fn command(&self) -> String {
        let mut parts = Vec::new();
        let removed = self.changes.iter().any(|change| matches!(change, EnvChange::Remove(_)));
        if removed {
            parts.push("env".to_owned());
        }
        for change in &self.changes {
            match change {
                EnvChange::Remove(name) => parts.push(format!("-u {}", shell(&name.to_string_lossy()))),
                EnvChange::Set(..) => {}
            }
        }
        for change in &self.changes {
            if let EnvChange::Set(name, value) = change {
                parts.push(format!("{}={}", name.to_string_lossy(), shell(&value.to_string_lossy())));
            }
        }
        parts.extend(self.words().map(|word| shell(&word)));
        parts.join(" ")
    }

    fn words(&self) -> impl Iterator<Item = String> {
        let program = std::iter::once(text(&self.program.program));
        let args = self.program.leading_args.iter().chain(&self.args);
        program.chain(args.map(|arg| arg.to_string_lossy().into_owned()))
    }

    /// Puts the agent into the place of this process.
    pub(crate) fn take_over(&self, listed: &ListedSession, world: &World) -> Result<i32, Failure> {
        let mut environment: EnvMap = world.around.environment.map().clone();
        for change in &self.changes {
            environment.apply(change);
        }
        rejoin::process::take_over(&listed.agent, &self.program, &self.args, &self.cwd, &environment)
            .map_err(|error| Failure::caused(Exit::NoAgent, &error))
    }
}

impl From<&Invocation> for InvocationJson {
    fn from(invocation: &Invocation) -> Self {
        let env = invocation.changes.iter().map(|change| match change {
            EnvChange::Set(name, value) => VariableJson {
                name: name.to_string_lossy().into_owned(),
                value: Some(value.to_string_lossy().into_owned()),
            },
            EnvChange::Remove(name) => {
                VariableJson { name: name.to_string_lossy().into_owned(), value: None }
            }
        });
        Self {
            line: invocation.line(),
            cwd: text(&invocation.cwd),
            program: text(&invocation.program.program),
            args: invocation.words().skip(1).collect(),
            env: env.collect(),
        }
    }
}

/// What the agent needs to look into the session's state dir.
fn changes(dialect: &dyn CliDialect, listed: &ListedSession, world: &World) -> Vec<EnvChange> {
    dialect.attended_env(&listed.entry.source, world.around.environment.map())
}

/// The folder that the agent has to be started in to find the session; where that is gone, this one, if its agent finds the
/// session from there.
async fn folder(listed: &ListedSession, here: Option<&Path>, world: &World) -> Result<PathBuf, Failure> {
    let entry = &listed.entry;
    let folder = world.sessions.continued_in(listed, &world.around.cwd).await;
    match (folder, here) {
        (Some(folder), _) if folder.is_dir() => Ok(folder),
        (_, Some(here)) => Ok(here.to_owned()),
        (None, None) if entry.cwd.is_none() && entry.last_cwd.is_none() => {
            Err(Failure::new(Exit::Failed, format!("nobody knows which folder {} is of", entry.id)))
        }
        (folder, None) => Err(gone(listed, folder.as_deref(), world).await),
    }
}

/// What helps where the session's folder is gone: another one, by way of a relocation where its agent needs that, and with a
/// yes only where it needs one.
async fn gone(listed: &ListedSession, folder: Option<&Path>, world: &World) -> Failure {
    let id = &listed.entry.id;
    let seek = Seek::new(Wanted::Id(id.clone()), &world.around.cwd).agent(listed.agent.clone());
    let mut answer = world.sessions.locate(&seek).await.map(|located| located.answer);
    let mut yes = "";
    if matches!(answer, Ok(Answer::OtherProject { .. })) {
        yes = " --other-project";
        answer = world.sessions.locate(&seek.other_project(true)).await.map(|located| located.answer);
    }
    let way = if matches!(answer, Ok(Answer::Moved { .. })) {
        format!("rejoin relocate {id}{yes}, then rejoin resume {id}")
    } else {
        format!("rejoin resume {id}{yes}")
    };
    let what = match folder {
        Some(folder) => {
            let folder = plain::path(folder, None);
            format!("the folder of {id} is not there any more: {folder}; make it again, or")
        }
        None => format!("{id} was moved to a folder that is not there any more;"),
    };
    Failure::new(Exit::NotFound, format!("{what} continue the session in this one: {way}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_a_shell_quotes_what_a_shell_would_take_apart() {
        let invocation = Invocation {
            program: Program::new("claude"),
            args: vec!["--resume".into(), "0f3a".into()],
            cwd: "/w/it's \u{1b}here".into(),
            changes: vec![EnvChange::set("CLAUDE_CONFIG_DIR", "/a b"), EnvChange::remove("X")],
        };
        let expected = r"cd $'/w/it\047s \033here' && env -u X CLAUDE_CONFIG_DIR='/a b' claude --resume 0f3a";
        assert_eq!(invocation.line(), expected);
    }
}
