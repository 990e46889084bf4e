//! What the record of the key says, and what a list says of a session that was relocated.

use super::*;

#[tokio::test]
async fn a_session_whose_record_cannot_be_read_stays() {
    for (document, told) in [
        (&br#"{"format":{"major":1,"minor":9},"record":{}}"#[..], "a newer version wrote it, in format 1.9"),
        (br#"{"format":{"major":1,"minor":0},"rec"#, "EOF"),
    ] {
        let (bench, mover, id) = bound().await;
        let bound = mover.session(Some(key()));
        // Which session it binds is not known, either.
        let mut unbound = bound.clone();
        unbound.bound = false;
        let document = Document::new(document.to_vec());
        let saved = bench.store.inner.save(&key(), &document, &Guard::Any, None).await;
        assert!(matches!(saved, Ok(Saved::Done(_))));
        for session in [bound, unbound] {
            let refused = bench.lifecycle.relocate(&Relocation::new(session, "/w/tree")).await.unwrap();
            let Relocated::Refused(Refusal::RecordUnreadable(why)) = refused else { panic!("{refused:?}") };
            assert!(why.starts_with(told), "{why}");
        }
        assert_eq!(mover.place(), Path::new("/w/demo").join(&id));
        assert!(mover.asked.lock().unwrap().is_empty());
        assert_eq!(bench.store.inner.load(&key()).await.unwrap().unwrap().document, document);
    }
}

#[tokio::test]
async fn a_session_of_a_key_without_a_record_is_relocated_and_noted_nowhere() {
    let (bench, mover, _) = bound().await;
    let wish =
        Relocation::new(mover.session(Some(SessionKey::new("another", "scripted").unwrap())), "/w/tree");
    assert!(matches!(bench.lifecycle.relocate(&wish).await, Ok(Relocated::Done { .. })));
    assert!(relocations(&bench).await.is_empty());
}

/// A catalog that lists a session, and finds none by its id.
#[derive(Debug)]
struct Blind(SessionEntry);

#[async_trait]
impl SessionCatalog for Blind {
    async fn inspect(&self, _: SessionQuery<'_>) -> Result<Inspection, CatalogError> {
        Ok(Inspection::MISSING)
    }
    async fn last_said(&self, _: SessionQuery<'_>, _: usize) -> Result<Conversation, CatalogError> {
        Ok(Conversation::default())
    }
    async fn mend(&self, _: SessionQuery<'_>, _: &Inspection, _: Mend) -> Result<bool, CatalogError> {
        Ok(false)
    }
    async fn list(&self, _: &ListQuery) -> Result<Listing, CatalogError> {
        Ok(Listing { sessions: vec![self.0.clone()], ..Listing::default() })
    }
    async fn find(&self, _: &NativeId, _: Option<&Path>) -> Result<Vec<SessionEntry>, CatalogError> {
        let source = std::io::Error::other("it cannot be read").into();
        Err(CatalogError { path: "/w/tree".into(), source })
    }
}

#[tokio::test]
async fn where_a_relocated_session_cannot_be_found_the_others_are_listed_and_that_is_told() {
    let (bench, mover, _) = bound().await;
    let wish = Relocation::new(mover.session(Some(key())), "/w/tree");
    assert!(matches!(bench.lifecycle.relocate(&wish).await, Ok(Relocated::Done { .. })));
    let there = entry("another", "/w/tree", "");
    let agent = Agent::new(bench.agent.clone()).with_catalog(Blind(there.clone()));
    let list = ListQuery { scope: Scope::Exact("/w/tree".into()), ..ListQuery::default() };
    let query = SessionsQuery { list, ..SessionsQuery::default() };
    let listing = bench.lifecycle.clone().agent(agent).list(&query).await.unwrap();
    let listed: Vec<_> = listing.sessions.iter().map(|listed| &listed.entry).collect();
    assert_eq!(listed, [&there]);
    assert!(matches!(&*listing.unlisted, [one] if one.reason.contains("cannot be read")), "{listing:?}");
    assert!(!listing.is_complete());
}
