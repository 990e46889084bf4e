//! `rejoin search`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rejoin::AgentId;
use rejoin::core::Timestamp;
use rejoin::error::Chain;
use rejoin::history::{
    Depth, Hit, HitPlace, ListedSession, Notice, SearchQuery, Searched, SessionKind, Unlisted,
};
use serde::Serialize;

use crate::args::Search;
use crate::commands::list::{self, query, unreadable};
use crate::exit::{Exit, Failure};
use crate::json::{NoticeJson, SessionJson, UnlistedJson, text};
use crate::output::{Output, Style};
use crate::plain;
use crate::world::World;

/// Hits of a session that people are shown.
const SHOWN: usize = 3;

#[derive(Debug, Serialize)]
struct SearchJson {
    sessions: Vec<FoundJson>,
    complete: bool,
    notices: Vec<NoticeJson>,
    unlisted: Vec<UnlistedJson>,
}

#[derive(Debug, Serialize)]
struct FoundJson {
    session: SessionJson,
    hits: Vec<HitJson>,
}

#[derive(Debug, Serialize)]
struct HitJson {
    place: HitPlace,
    time: Option<Timestamp>,
    excerpt: String,
    /// Where in the excerpt, in bytes.
    from: usize,
    to: usize,
    path: String,
    offset: Option<u64>,
}

impl From<&Hit> for HitJson {
    fn from(hit: &Hit) -> Self {
        Self {
            place: hit.place,
            time: hit.time,
            excerpt: hit.excerpt.clone(),
            from: hit.matched.start,
            to: hit.matched.end,
            path: text(&hit.source.path),
            offset: hit.span.map(|span| span.offset),
        }
    }
}

/// A session, and where the words are in it.
#[derive(Debug)]
struct Found {
    listed: ListedSession,
    hits: Vec<Hit>,
}

/// What a search came to.
#[derive(Debug, Default)]
struct Outcome {
    found: Vec<Found>,
    notices: Vec<Notice>,
    unlisted: Vec<Unlisted>,
}

pub(crate) async fn run(args: &Search, world: &World, out: &mut Output) -> Result<(), Failure> {
    out.progress("reading sessions …");
    let mut asked = query(world, &args.which, Depth::Quick, false)?;
    // The number is one of sessions that are found.
    let limit = asked.list.limit.take().unwrap_or(usize::MAX);
    let with_sidechains = asked.list.kinds.contains(&SessionKind::Sidechain);
    let listing = world.list(&asked).await?;
    let is_partial = !listing.is_complete();
    let mut outcome = Outcome { notices: listing.notices, unlisted: listing.unlisted, ..Outcome::default() };
    let mut sessions: HashMap<(AgentId, PathBuf, String), ListedSession> = HashMap::new();
    let mut dirs: HashMap<AgentId, Vec<Option<PathBuf>>> = HashMap::new();
    for listed in listing.sessions {
        let dirs = dirs.entry(listed.agent.clone()).or_default();
        if !dirs.contains(&listed.entry.source.state_dir) {
            dirs.push(listed.entry.source.state_dir.clone());
        }
        let entry = &listed.entry;
        let key = (listed.agent.clone(), entry.source.path.clone(), entry.id.to_string());
        sessions.insert(key, listed);
    }
    let scope = asked.list.scope;
    for agent in &world.agents {
        let (id, catalog) = (agent.adapter().id(), agent.catalog());
        let Some((dirs, catalog)) = dirs.remove(id).zip(catalog) else { continue };
        for state_dir in dirs {
            out.progress(&format!("searching sessions of {id} …"));
            let query = SearchQuery {
                state_dir,
                words: args.words.clone(),
                scope: scope.clone(),
                with_sidechains,
                limit: None,
            };
            let mut search = match catalog.search(&query).await {
                Ok(search) => search,
                Err(error) => {
                    let reason = Chain(&error).to_string();
                    outcome.unlisted.push(Unlisted { agent: id.clone(), key: None, reason });
                    continue;
                }
            };
            while let Some(searched) = search.next().await {
                match searched {
                    Searched::Hit(hit) => {
                        let key = (id.clone(), hit.source.path.clone(), hit.id.to_string());
                        outcome.add(*hit, sessions.get(&key));
                        out.progress(&format!("searching sessions of {id}: {} found …", outcome.found.len()));
                    }
                    Searched::Notice(notice) => outcome.notices.push(notice),
                    _ => {}
                }
                if outcome.found.len() > limit {
                    break;
                }
            }
        }
    }
    outcome.found.sort_by_key(|found| std::cmp::Reverse(found.listed.entry.updated));
    outcome.found.truncate(limit);
    tell(&outcome, is_partial, world, out)?;
    if outcome.found.is_empty() {
        Err(Failure::new(Exit::NotFound, "nothing was found").told_in(out.json))
    } else {
        Ok(())
    }
}

impl Outcome {
    /// Hits of a session come one after the other. One of a session that is not in the list was not asked for.
    fn add(&mut self, hit: Hit, listed: Option<&ListedSession>) {
        let is_of = |path: &Path, id: &str| path == hit.source.path && id == hit.id.as_str();
        match self.found.last_mut() {
            Some(last) if is_of(&last.listed.entry.source.path, last.listed.entry.id.as_str()) => {
                last.hits.push(hit);
            }
            _ => self.found.extend(listed.map(|listed| Found { listed: listed.clone(), hits: vec![hit] })),
        }
    }
}

fn tell(outcome: &Outcome, is_partial: bool, world: &World, out: &mut Output) -> Result<(), Failure> {
    if out.json {
        let session = |found: &Found| FoundJson {
            session: (&found.listed).into(),
            hits: found.hits.iter().map(HitJson::from).collect(),
        };
        return out.document(&SearchJson {
            sessions: outcome.found.iter().map(session).collect(),
            complete: !is_partial && outcome.unlisted.is_empty(),
            notices: outcome.notices.iter().map(NoticeJson::from).collect(),
            unlisted: outcome.unlisted.iter().map(UnlistedJson::from).collect(),
        });
    }
    for found in &outcome.found {
        list::line(&found.listed, world, out)?;
        for hit in found.hits.iter().take(SHOWN) {
            let (before, rest) =
                hit.excerpt.split_at_checked(hit.matched.start).unwrap_or((&hit.excerpt, ""));
            let (word, after) = rest.split_at_checked(hit.matched.len()).unwrap_or((rest, ""));
            let word = out.styled(Style::Bold, &plain::lines(word));
            let text = format!("     {}{word}{}", plain::lines(before), plain::lines(after));
            out.line(&text.replace('\n', " "))?;
        }
        if found.hits.len() > SHOWN {
            let more = out.styled(Style::Dim, &format!("     … {} more", found.hits.len() - SHOWN));
            out.line(&more)?;
        }
    }
    out.flush()?;
    for unlisted in &outcome.unlisted {
        out.note(&format!("{} not searched: {}", unlisted.agent, unlisted.reason));
    }
    unreadable(&outcome.notices, out);
    Ok(())
}
