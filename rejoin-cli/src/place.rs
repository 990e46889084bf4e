//! Where everything is: what is read of the environment, once, and what follows from it.

use std::io;
use std::path::{Path, PathBuf};

use rejoin::core::EnvMap;
use rejoin::process::Environment;

use crate::exit::{Exit, Failure};

/// The folder of a store, below its base.
const STORE: &str = ".agent-sessions";

/// What the command is started in.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) environment: Environment,
    /// The folder that the command was started in, as a real path where there is one.
    pub(crate) cwd: PathBuf,
    pub(crate) home: Option<PathBuf>,
    pub(crate) no_color: bool,
    /// Whether the terminal knows no escape codes at all.
    pub(crate) is_dumb: bool,
    store: Option<PathBuf>,
    data: Option<PathBuf>,
    cache: Option<PathBuf>,
}

/// How the store was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FoundBy {
    /// `--store` names it.
    Option,
    /// `REJOIN_STORE` names it.
    Variable,
    /// It is the user's own.
    Home,
}

/// The folder that holds the store, and whether there is one in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) base: PathBuf,
    pub(crate) by: FoundBy,
    pub(crate) exists: bool,
    /// Why nobody can tell whether there is one.
    pub(crate) unknown: Option<String>,
}

impl Surroundings {
    /// Looks around.
    pub(crate) fn look() -> Result<Self, Failure> {
        let environment = Environment::inherited();
        let cwd = std::env::current_dir()
            .map_err(|error| Failure::new(Exit::Failed, format!("the present folder is gone: {error}")))?;
        Ok(Self::of(environment, &cwd))
    }

    fn of(environment: Environment, cwd: &Path) -> Self {
        let env = environment.map();
        let home = folder(env, "HOME");
        let in_home = |variable: &str, below: &str| {
            let own = folder(env, variable).or_else(|| home.as_ref().map(|home| home.join(below)));
            own.map(|folder| folder.join("rejoin"))
        };
        Self {
            cwd: cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()),
            store: env.get("REJOIN_STORE").map(PathBuf::from),
            data: in_home("XDG_DATA_HOME", ".local/share"),
            cache: in_home("XDG_CACHE_HOME", ".cache"),
            // One that is empty counts as unset, as no-color.org has it.
            no_color: env.get("NO_COLOR").is_some(),
            is_dumb: env.get("TERM").is_some_and(|term| term == "dumb"),
            home,
            environment,
        }
    }

    /// The place of the store: what was said, else the variable, else the user's own. Never one that happens to lie in a
    /// project: a state dir holds what its agent runs, and a project may come from anybody.
    pub(crate) fn store(&self, said: Option<&Path>) -> Result<Place, Failure> {
        let named = said.map(|base| (base.to_owned(), FoundBy::Option));
        let named = named.or_else(|| self.store.clone().map(|base| (base, FoundBy::Variable)));
        let own = || self.data.clone().map(|base| (base, FoundBy::Home));
        let (base, by) = named.or_else(own).ok_or_else(|| {
            let message = "there is no place for the store: name one with --store, or set HOME";
            Failure::new(Exit::Failed, message)
        })?;
        let base = self.cwd.join(base);
        // What stands there and is no folder is no store that is absent: whoever opens it says what it is.
        let (exists, unknown) = match base.join(STORE).symlink_metadata() {
            Ok(_) => (true, None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (false, dangles(&base)),
            Err(error) => (false, Some(error.to_string())),
        };
        Ok(Place { base, by, exists, unknown })
    }

    /// The folder for what can be had again: the indexes of lists.
    pub(crate) fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }
}

/// Why a folder that is not there may be one that is only out of reach: a link on the way to it leads nowhere.
fn dangles(base: &Path) -> Option<String> {
    let there = base.ancestors().find_map(|above| Some((above, above.symlink_metadata().ok()?)));
    let (link, _) = there.filter(|(above, metadata)| metadata.is_symlink() && above.metadata().is_err())?;
    Some(format!("{} is a link that leads nowhere", link.display()))
}

/// A folder that a variable names. A relative one counts as unset, as the XDG specification has it.
fn folder(env: &EnvMap, variable: &str) -> Option<PathBuf> {
    env.get(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(variables: &[(&str, &Path)], cwd: &Path) -> Surroundings {
        let environment = variables.iter().fold(Environment::bare(), |e, (name, value)| e.set(*name, *value));
        Surroundings::of(environment, cwd)
    }

    #[test]
    fn the_store_is_where_it_was_said_else_at_home_and_never_in_a_project_unasked() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (home, deep) = (root.join("home"), root.join("project/src/deep"));
        std::fs::create_dir_all(&deep).unwrap();

        let found = |around: &Surroundings, said: Option<&str>| {
            let place = around.store(said.map(Path::new)).unwrap();
            (place.base, place.by, place.exists)
        };
        let bare = around(&[("HOME", &home)], &deep);
        assert_eq!(found(&bare, None), (home.join(".local/share/rejoin"), FoundBy::Home, false));
        let xdg = around(&[("HOME", &home), ("XDG_DATA_HOME", &root.join("data"))], &deep);
        assert_eq!(found(&xdg, None), (root.join("data/rejoin"), FoundBy::Home, false));

        std::fs::create_dir_all(root.join("project").join(STORE)).unwrap();
        assert_eq!(found(&bare, None), (home.join(".local/share/rejoin"), FoundBy::Home, false));
        let variable = around(&[("HOME", &home), ("REJOIN_STORE", &root.join("x"))], &deep);
        assert_eq!(found(&variable, None), (root.join("x"), FoundBy::Variable, false));
        assert_eq!(found(&variable, Some("y")), (deep.join("y"), FoundBy::Option, false));
    }

    #[test]
    fn without_a_home_there_is_a_word_on_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let failure =
            around(&[("XDG_DATA_HOME", Path::new("relative"))], root.path()).store(None).unwrap_err();
        assert!(failure.message.contains("--store"), "{}", failure.message);
    }
}
