//! A model provider of one's own.

use super::checks::{OptionsError, check_url, check_word};

/// A model provider that speaks the Responses protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodexProvider {
    pub(crate) id: String,
    base_url: String,
    env_key: Option<String>,
    retries: Option<u32>,
}

impl CodexProvider {
    /// A provider under this id at this address, such as `https://models.example/v1`.
    ///
    /// # Errors
    /// [`OptionsError`] when the id is not one word without dots, or the address has white space or control
    /// characters.
    pub fn new(id: impl Into<String>, base_url: impl Into<String>) -> Result<Self, OptionsError> {
        let id = check_word("provider", id.into())?;
        if id.contains('.') {
            return Err(OptionsError::Word { what: "provider", text: id });
        }
        Ok(Self { id, base_url: check_url(base_url.into())?, env_key: None, retries: None })
    }

    /// The environment variable that holds the key. The agent then needs no login.
    ///
    /// # Errors
    /// [`OptionsError::Word`] when it is not one word.
    pub fn env_key(mut self, name: impl Into<String>) -> Result<Self, OptionsError> {
        self.env_key = Some(check_word("variable", name.into())?);
        Ok(self)
    }

    /// How often a failed model call is tried again. The agent's own default makes up to 30 calls.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    pub(crate) const fn has_key(&self) -> bool {
        self.env_key.is_some()
    }

    /// The provider as a TOML table on one line.
    pub(crate) fn table(&self) -> String {
        let mut table = format!(
            "{{name={},base_url={},wire_api=\"responses\"",
            toml_text(&self.id),
            toml_text(&self.base_url)
        );
        match &self.env_key {
            Some(name) => table.push_str(&format!(",env_key={}", toml_text(name))),
            None => table.push_str(",requires_openai_auth=true"),
        }
        if let Some(retries) = self.retries {
            table.push_str(&format!(",request_max_retries={retries},stream_max_retries={retries}"));
        }
        table.push('}');
        table
    }
}

/// A text in the form of TOML.
pub(crate) fn toml_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
