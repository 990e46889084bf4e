//! The resume setting, at two scopes.

/// The name of the setting, wherever a runtime keeps its settings.
pub const RESUME_SETTING: &str = "AGENT_SESSION_RESUME";

/// A text that is no value of [`RESUME_SETTING`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no value of AGENT_SESSION_RESUME; use true or false")]
pub struct InvalidSetting {
    /// The text given.
    pub text: String,
}

/// Whether sessions are resumed at all: set for an organisation, for a project, or for neither.
///
/// The project wins over the organisation; where neither says anything, sessions are resumed. When it is off,
/// every run is fresh with reason `resume_disabled`, and bindings are still recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ResumeSetting {
    organisation: Option<bool>,
    project: Option<bool>,
}

impl ResumeSetting {
    /// Neither scope says anything.
    #[must_use]
    pub const fn new() -> Self {
        Self { organisation: None, project: None }
    }

    /// What the organisation says.
    #[must_use]
    pub const fn organisation(mut self, resume: Option<bool>) -> Self {
        self.organisation = resume;
        self
    }

    /// What the project says.
    #[must_use]
    pub const fn project(mut self, resume: Option<bool>) -> Self {
        self.project = resume;
        self
    }

    /// What is in force.
    #[must_use]
    pub const fn is_on(self) -> bool {
        match (self.project, self.organisation) {
            (Some(project), _) => project,
            (None, Some(organisation)) => organisation,
            (None, None) => true,
        }
    }

    /// Reads a value as people write it: `true`, `on`, `yes`, `1` and their opposites, in any case. Empty
    /// text says nothing.
    ///
    /// # Errors
    /// [`InvalidSetting`] for anything else; a typing error must not switch resuming on or off.
    pub fn parse(text: &str) -> Result<Option<bool>, InvalidSetting> {
        match text.trim().to_ascii_lowercase().as_str() {
            "" => Ok(None),
            "true" | "on" | "yes" | "1" => Ok(Some(true)),
            "false" | "off" | "no" | "0" => Ok(Some(false)),
            _ => Err(InvalidSetting { text: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ResumeSetting;

    #[test]
    fn the_project_wins_and_the_default_is_on() {
        let all = [None, Some(false), Some(true)];
        for organisation in all {
            for project in all {
                let setting = ResumeSetting::new().organisation(organisation).project(project);
                assert_eq!(setting.is_on(), project.or(organisation).unwrap_or(true));
            }
        }
    }

    #[test]
    fn a_typing_error_is_an_error() {
        assert_eq!(ResumeSetting::parse(" OFF "), Ok(Some(false)));
        assert_eq!(ResumeSetting::parse("1"), Ok(Some(true)));
        assert_eq!(ResumeSetting::parse(""), Ok(None));
        assert!(ResumeSetting::parse("flase").is_err());
    }
}
