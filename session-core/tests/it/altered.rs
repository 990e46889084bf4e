//! A catalog that sees one session otherwise than it is.

use std::sync::{Arc, Mutex};

use session_core::error::CatalogError;
use session_core::*;

use crate::bench::Bench;
use crate::scripted::*;

/// A catalog that sees one session otherwise than it is.
#[derive(Debug)]
struct Altered {
    agent: Scripted,
    which: Arc<Mutex<Option<NativeId>>>,
    how: fn(&mut Inspection),
}

#[async_trait]
impl SessionCatalog for Altered {
    async fn inspect(&self, query: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        let altered = self.which.lock().unwrap().as_ref() == Some(query.id);
        let mut look = Glass(self.agent.clone()).inspect(query).await?;
        if altered {
            (self.how)(&mut look);
            // A cure makes a file longer.
            look.bytes += self.agent.world().mended.len() as u64;
        }
        Ok(look)
    }

    async fn last_said(&self, query: SessionQuery<'_>, bytes: usize) -> Result<Conversation, CatalogError> {
        Glass(self.agent.clone()).last_said(query, bytes).await
    }

    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, mend: Mend) -> Result<bool, CatalogError> {
        self.agent.world().mended.push(mend);
        Ok(true)
    }
}

/// The bench's runner, with such a catalog.
pub(crate) fn altered(
    bench: &Bench,
    which: &Arc<Mutex<Option<NativeId>>>,
    how: fn(&mut Inspection),
) -> Lifecycle {
    let catalog = Altered { agent: bench.agent.clone(), which: which.clone(), how };
    let agent = Agent::new(bench.agent.clone()).with_catalog(catalog);
    Lifecycle::new(Arc::new(bench.store.clone()), bench.host.clone()).agent(agent)
}

/// A catalog that cannot look.
#[derive(Debug)]
struct Dark;

#[async_trait]
impl SessionCatalog for Dark {
    async fn inspect(&self, _: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        Err(dark())
    }

    async fn last_said(&self, _: SessionQuery<'_>, _: usize) -> Result<Conversation, CatalogError> {
        Err(dark())
    }

    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Err(dark())
    }
}

fn dark() -> CatalogError {
    CatalogError { path: "/state".into(), source: "it is dark".into() }
}

/// The bench's runner, with a catalog that cannot look.
pub(crate) fn in_the_dark(bench: &Bench) -> Lifecycle {
    let agent = Agent::new(bench.agent.clone()).with_catalog(Dark);
    Lifecycle::new(Arc::new(bench.store.clone()), bench.host.clone()).agent(agent)
}
