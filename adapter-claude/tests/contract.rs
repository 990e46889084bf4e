//! What every dialect has to hold.

session_contract::dialect_contract!(claude, adapter_claude::ClaudeDialect::default(), fixtures = "fixtures");
