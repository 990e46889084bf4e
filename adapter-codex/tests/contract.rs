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
fn prompt(command: &session_core::CommandSpec) -> Option<String> {
    let text = String::from_utf8(command.stdin.clone()).ok()?;
    Some(text.strip_prefix("\u{feff}\u{feff}").map_or(text.clone(), |rest| format!("\u{feff}{rest}")))
}
