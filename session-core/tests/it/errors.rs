//! Every error says one thing a level, and names what it is about.

use std::error::Error;
use std::path::PathBuf;

use session_core::error::*;
use session_core::{AgentId, Holder, InvalidName, SessionKey};

fn chain(error: &dyn Error) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    texts
}

#[test]
fn chains_never_repeat_themselves() {
    let io = || std::io::Error::other("disk on fire");
    let agent = AgentId::new("claude").unwrap();
    let errors: Vec<Box<dyn Error>> = vec![
        Box::new(RunError::Store(
            StoreError::new(StoreErrorKind::Unavailable, "state_dir", "/base/state").with_source(io()),
        )),
        Box::new(RunError::Agent(
            AgentError::new(AgentErrorKind::Spawn, agent.clone(), "/usr/bin/claude").with_source(io()),
        )),
        Box::new(RunError::Agent(AgentError::new(AgentErrorKind::NotFound, agent.clone(), "claude"))),
        Box::new(RunError::Request(RequestError::Name(InvalidName::Empty { kind: "mailbox" }))),
        Box::new(RunError::Request(RequestError::Folder(FolderError::Unusable {
            path: PathBuf::from("/w/demo"),
            source: io().into(),
        }))),
        Box::new(RunError::Request(RequestError::UnknownAgent { agent, known: "codex".to_owned() })),
        Box::new(RunError::Busy {
            key: SessionKey::new("issue-42", "claude").unwrap(),
            by: Some(Holder { host: "ci-3".to_owned(), pid: 7, since: None }),
        }),
        Box::new(RunError::Refused { why: session_core::decide::Why::SessionMissing }),
    ];
    let chains: Vec<_> = errors.iter().map(|error| chain(&**error)).collect();
    for chain in &chains {
        for (level, text) in chain.iter().enumerate() {
            assert!(!text.ends_with('.'), "{text}");
            for below in &chain[level + 1..] {
                assert!(!text.contains(below.as_str()), "{text:?} repeats {below:?}");
            }
        }
    }
    insta::assert_json_snapshot!(chains);
}
