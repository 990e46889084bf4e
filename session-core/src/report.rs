//! An error for the end of a program.

use std::fmt;

use crate::error::{BoxError, Chain};

/// Any error, for a `main` that returns it: what is shown is the error and all its causes in words, on one line.
///
/// ```
/// use session_core::error::Report;
///
/// fn main() -> Result<(), Report> {
///     let key = session_core::SessionKey::new("issue-42", "claude")?;
///     println!("{key}");
///     Ok(())
/// }
/// ```
pub struct Report(BoxError);

impl<E: Into<BoxError>> From<E> for Report {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Chain(&*self.0).fmt(f)
    }
}

/// As `Display`: this is what `main` prints.
impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::error::{RequestError, RunError};

    #[test]
    fn a_program_ends_with_words() {
        let ended = || -> Result<(), Report> { Err(RunError::Request(RequestError::EmptyPrompt))? };
        let shown = ended().map_err(|report| format!("{report:?}"));
        assert_eq!(shown, Err("the request cannot be run: the prompt is empty".to_owned()));
    }
}
