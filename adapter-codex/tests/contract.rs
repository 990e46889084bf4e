//! What every dialect has to hold.

session_contract::dialect_contract!(
    codex,
    adapter_codex::CodexDialect::default(),
    fixtures = "fixtures",
    prompt_of = prompt,
    starts_anew = &["0.63.0", "0.98.0"],
    versions = &["0.45.0", "0.80.0", "0.148.0"],
);

/// Stdin is the prompt, but for a byte order mark: from 0.98 on, the agent takes one away.
fn prompt(command: &session_core::CommandSpec, version: Option<&session_core::Version>) -> Option<String> {
    let text = String::from_utf8(command.stdin.clone()).ok()?;
    let takes_one_away = version.is_none_or(|version| version.at_least(0, 98, 0));
    match text.strip_prefix('\u{feff}') {
        Some(rest) if takes_one_away => Some(rest.to_owned()),
        _ => Some(text),
    }
}
