//! `rejoin search`.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use rejoin::core::Timestamp;
use rejoin::error::Chain;
use rejoin::history::{
    Depth, Hit, HitPlace, ListedSession, Notice, SearchQuery, Searched, SessionKind, SessionSource, Unlisted,
};
use rejoin::{AgentId, NativeId};
use serde::Serialize;

use crate::args::Search;
use crate::commands::list::{self, query, unreadable};
use crate::exit::{Exit, Failure};
use crate::json::{NoticeJson, SessionJson, UnlistedJson, notice_code, text};
use crate::output::{Output, Style};
use crate::plain;
use crate::world::World;

/// Hits of a session that people are shown.
const SHOWN: usize = 3;

#[derive(Debug, Serialize)]
struct SearchJson {
    sessions: Vec<FoundJson>,
    complete: bool,
    more: bool,
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
    /// Where each session is among them.
    places: HashMap<Which, usize>,
    notices: Vec<Notice>,
    unlisted: Vec<Unlisted>,
    /// Whether more was found than was asked for.
    more: bool,
}

/// A session, however many files it lies in: of whom, where, and its id.
type Which = (AgentId, Option<PathBuf>, String);

fn which(agent: &AgentId, source: &SessionSource, id: &NativeId) -> Which {
    (agent.clone(), source.state_dir.clone(), id.to_string())
}

pub(crate) async fn run(args: &Search, world: &World, out: &mut Output) -> Result<(), Failure> {
    let words = words(args);
    if words.is_empty() {
        return Err(Failure::usage("there is nothing to search for"));
    }
    out.progress("reading sessions …");
    let mut asked = query(world, &args.which, Depth::Quick, false)?;
    // The number is one of sessions that are found.
    let limit = asked.list.limit.take().unwrap_or(usize::MAX);
    let with_sidechains = asked.list.kinds.contains(&SessionKind::Sidechain);
    let listing = world.list(&asked).await?;
    let mut outcome = Outcome { notices: listing.notices, unlisted: listing.unlisted, ..Outcome::default() };
    let mut sessions: HashMap<Which, ListedSession> = HashMap::new();
    let mut dirs: HashMap<AgentId, Vec<Option<PathBuf>>> = HashMap::new();
    for listed in listing.sessions {
        let dirs = dirs.entry(listed.agent.clone()).or_default();
        if !dirs.contains(&listed.entry.source.state_dir) {
            dirs.push(listed.entry.source.state_dir.clone());
        }
        let entry = &listed.entry;
        sessions.insert(which(&listed.agent, &entry.source, &entry.id), listed);
    }
    let (scope, kinds) = (asked.list.scope, asked.list.kinds);
    for agent in &world.agents {
        let (id, catalog) = (agent.adapter().id(), agent.catalog());
        let Some((dirs, catalog)) = dirs.remove(id).zip(catalog) else { continue };
        for state_dir in dirs {
            out.progress(&format!("searching sessions of {id} …"));
            let query = SearchQuery {
                state_dir,
                words: words.clone(),
                scope: scope.clone(),
                kinds: kinds.clone(),
                with_sidechains,
                limit: None,
            };
            let mut search = match catalog.search(&query).await {
                Ok(search) => search,
                Err(error) => {
                    let reason = Chain(&error).to_string();
                    outcome.unlisted.push(Unlisted::new(id.clone(), reason));
                    continue;
                }
            };
            // Those of each place come newest first: of any, as many as are wanted in all may be among them.
            let before = outcome.found.len();
            while let Some(searched) = search.next().await {
                match searched {
                    Searched::Hit(hit) => {
                        let which = which(id, &hit.source, &hit.id);
                        if let Some(listed) = sessions.get(&which) {
                            outcome.add(*hit, which, listed);
                        }
                        out.progress(&format!("searching sessions of {id}: {} found …", outcome.found.len()));
                    }
                    Searched::Notice(notice) => outcome.notices.push(notice),
                    _ => {}
                }
                if outcome.found.len() - before > limit {
                    break;
                }
            }
        }
    }
    outcome.found.sort_by(|one, other| one.listed.newest_first(&other.listed));
    outcome.more = outcome.found.len() > limit;
    outcome.found.truncate(limit);
    // The list and the search come upon the same.
    let mut seen = HashSet::new();
    outcome.notices.retain(|it| seen.insert((it.path.clone(), it.offset, notice_code(&it.kind))));
    tell(&outcome, world, out)?;
    if outcome.found.is_empty() && outcome.more {
        out.note("nothing is shown: of what was found, --limit leaves nothing");
        Ok(())
    } else if outcome.found.is_empty() {
        Err(Failure::new(Exit::NotFound, "nothing was found").told_in(out.json))
    } else {
        Ok(())
    }
}

/// What has to be there: each word, or with `--phrase` each argument as it stands.
fn words(args: &Search) -> Vec<String> {
    let is_said = |word: &String| !word.trim().is_empty();
    if args.phrase {
        return args.words.iter().filter(|word| is_said(word)).cloned().collect();
    }
    args.words.iter().flat_map(|word| word.split_whitespace()).map(str::to_owned).collect()
}

impl Outcome {
    /// Hits of a session that lies in several files need not come one after the other.
    fn add(&mut self, hit: Hit, which: Which, listed: &ListedSession) {
        let at = *self.places.entry(which).or_insert(self.found.len());
        match self.found.get_mut(at) {
            Some(found) => found.hits.push(hit),
            None => self.found.push(Found { listed: listed.clone(), hits: vec![hit] }),
        }
    }

    /// Whether everything was searched that is there.
    fn is_complete(&self) -> bool {
        self.unlisted.is_empty() && !self.notices.iter().any(Notice::is_gap)
    }
}

fn tell(outcome: &Outcome, world: &World, out: &mut Output) -> Result<(), Failure> {
    if out.json {
        let session = |found: &Found| FoundJson {
            session: (&found.listed).into(),
            hits: found.hits.iter().map(HitJson::from).collect(),
        };
        return out.document(&SearchJson {
            sessions: outcome.found.iter().map(session).collect(),
            complete: outcome.is_complete(),
            more: outcome.more,
            notices: outcome.notices.iter().map(NoticeJson::from).collect(),
            unlisted: outcome.unlisted.iter().map(UnlistedJson::from).collect(),
        });
    }
    let ids = list::Ids::of(outcome.found.iter().map(|found| &found.listed), out);
    for found in &outcome.found {
        list::short_line(&found.listed, ids, world, out)?;
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
