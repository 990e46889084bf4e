//! Which session is meant by a word.

use rejoin::history::{Depth, ListedSession, Resumability, SessionKind, SessionsListing};

use crate::exit::{Exit, Failure};
use crate::plain;
use crate::world::World;

/// The shortest beginning of an id that is taken for one.
pub(crate) const PREFIX: usize = 8;

/// Whether a person would be shown the session to go on with it.
pub(crate) fn is_offered(listed: &ListedSession) -> bool {
    listed.entry.kind != SessionKind::Sidechain && listed.entry.resumable == Resumability::Yes
}

/// A session and its place for people.
pub(crate) fn told(listed: &ListedSession) -> String {
    let folder = listed.entry.last_cwd.as_deref().or(listed.entry.cwd.as_deref());
    let folder = folder.map(|folder| format!("  {}", plain::path(folder, None))).unwrap_or_default();
    format!(
        "{} {}  {}{folder}",
        listed.agent,
        listed.entry.id,
        plain::cut(&plain::line(listed.entry.label()), 60)
    )
}

/// The one session of the list that a word means: by its id, the beginning of it, or its whole title.
///
/// An id is one of several agents, or of a file and its copy, at times: then it is not the only one.
fn pick(listing: &SessionsListing, word: &str, is_sure: bool) -> Result<ListedSession, Failure> {
    let folded = word.trim().to_lowercase();
    let id = |listed: &&ListedSession| listed.entry.id.as_str() == word;
    let prefix = |listed: &&ListedSession| word.len() >= PREFIX && listed.entry.id.as_str().starts_with(word);
    let title = |listed: &&ListedSession| {
        let title = listed.entry.title.as_ref().map(|title| title.text.trim().to_lowercase());
        title.is_some_and(|title| title == folded)
    };
    let found = |filter: &dyn Fn(&&ListedSession) -> bool| -> Vec<&ListedSession> {
        listing.sessions.iter().filter(filter).collect()
    };
    for found in [found(&id), found(&prefix), found(&title)] {
        match found[..] {
            [] => {}
            [one] => return Ok(one.clone()),
            _ => {
                let message = format!("{} sessions are meant by {word:?}; name one by its id", found.len());
                let candidates = found.into_iter().take(20).map(told).collect();
                return Err(Failure::new(Exit::Ambiguous, message).with_candidates(candidates));
            }
        }
    }
    Err(missing(word, is_sure && listing.is_complete()))
}

pub(crate) fn missing(word: &str, is_sure: bool) -> Failure {
    let unsure = if is_sure { "" } else { ", but not everything could be looked at" };
    let is_id = word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let hint =
        if is_id { "" } else { "; by words that were said, rejoin search finds those of all projects" };
    Failure::new(Exit::NotFound, format!("there is no session {word:?}{unsure}{hint}"))
}

/// The same, over everything there is, also what cannot be continued. `is_sure`: whether all could be looked at by now.
pub(crate) async fn find(world: &World, word: &str, is_sure: bool) -> Result<ListedSession, Failure> {
    let listing = world.everything(Depth::Quick).await?;
    pick(&listing, word, is_sure)
}
