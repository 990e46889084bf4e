//! The contract of checkpointers, held by this one.

use session_checkpoint::{CheckpointLimits, FsCheckpoints};
use session_contract::Scratch;

/// Files above this are left out, in bytes.
const FILE_LIMIT: u64 = 4 << 20;

async fn open(scratch: &Scratch) -> FsCheckpoints {
    let mut limits = CheckpointLimits::default();
    limits.file_bytes = FILE_LIMIT;
    FsCheckpoints::new(scratch.dir()).limits(limits).home(scratch.dir().join("home"))
}

session_contract::checkpoint_contract!(
    fs,
    open,
    file_limit = Some(FILE_LIMIT),
    home = |dir: &std::path::Path| dir.join("home"),
    regressions = "tests/contract.regressions",
);
