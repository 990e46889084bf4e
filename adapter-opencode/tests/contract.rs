//! The contract of a dialect, held by opencode's.

session_contract::dialect_contract!(
    opencode,
    adapter_opencode::OpencodeDialect::default(),
    fixtures = "fixtures"
);
