//! The contract of stores.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use session_contract::agent::Cannot;
use session_contract::store::Damage;
use session_contract::{Scratch, store_contract};
use session_core::SessionKey;
use session_store_fs::FsStore;

/// The record whose header names the key.
fn record(root: &Path, key: &SessionKey) -> PathBuf {
    let names = format!("\"key\":{}", serde_json::to_string(key).unwrap());
    let mut records = fs::read_dir(root.join("records")).unwrap().map(|entry| entry.unwrap().path());
    records.find(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).contains(&names)).unwrap()
}

async fn damage(scratch: &Scratch, key: &SessionKey, damage: Damage) -> Result<(), Cannot> {
    let (root, away) = (scratch.dir().join(".agent-sessions"), scratch.dir().join("away"));
    let change = |change: fn(Vec<u8>) -> Vec<u8>| {
        let path = record(&root, key);
        fs::write(&path, change(fs::read(&path).unwrap())).unwrap();
    };
    match damage {
        Damage::Cut => change(|bytes| bytes[..bytes.len() - 3].to_vec()),
        Damage::Altered => change(|mut bytes| {
            *bytes.last_mut().unwrap() ^= 1;
            bytes
        }),
        Damage::Newer => change(|_| b"{\"store\":2,\"anything\":[]}\nof a later day".to_vec()),
        Damage::Away => fs::rename(root, away).unwrap(),
        Damage::Back => fs::rename(away, root).unwrap(),
    }
    Ok(())
}

// Its disk is slow: the store in memory walks further.
store_contract!(
    embedded,
    async |scratch: &Scratch| FsStore::open(scratch.dir()).unwrap(),
    damage = damage,
    walks = 24,
    seed = 1,
    regressions = "proptest-regressions/store.txt",
);
