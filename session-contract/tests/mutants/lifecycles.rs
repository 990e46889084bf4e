//! Lifecycles that break the contract: what is wrong with them is done to the records that they write and to what they
//! hear of their agent.

mod agents;
mod stores;

use session_contract::lifecycle::{LIFECYCLE_CASES, Walks};
use session_core::MemoryStore;

use crate::table::{Outcome, compare};

fn over_store(bend: stores::Bend) -> Walks {
    Walks::new(async move |_: &_| stores::Bent::new(bend), env!("CARGO_MANIFEST_DIR"))
}

fn over_agent(wrap: agents::Wrap) -> Walks {
    Walks::new(async |_: &_| MemoryStore::new(), env!("CARGO_MANIFEST_DIR")).agent(wrap)
}

/// The cases that catch it, in walks up to the first one that breaks the case that is meant to.
fn caught(meant: &str, walks: Walks) -> Vec<&'static str> {
    walks.cases(2000).always_the_same().broken_until(meant)
}

#[test]
fn every_broken_lifecycle_is_caught() {
    let outcome = |mutant: &str, meant, caught| Outcome { mutant: mutant.to_owned(), meant, caught };
    // Each thread has its walks to itself.
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let (half, rest) = stores::MUTANTS.split_at(stores::MUTANTS.len() / 2);
        let parts = [half, rest].map(|part| {
            scope.spawn(move || {
                part.iter()
                    .map(|(mutant, meant, bend)| outcome(mutant, *meant, caught(meant, over_store(*bend))))
                    .collect::<Vec<_>>()
            })
        });
        let agents = agents::MUTANTS.iter();
        let over_agents: Vec<_> = agents
            .map(|(mutant, meant, wrap)| outcome(mutant, *meant, caught(meant, over_agent(*wrap))))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).chain(over_agents).collect()
    });
    let cases: Vec<_> = LIFECYCLE_CASES.iter().map(|case| case.name()).collect();
    compare("Lifecycles", &outcomes, &cases);
}
