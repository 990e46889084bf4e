//! Which session is meant: one sign after another, until one leads to an answer.

mod look;
mod place;

use std::collections::HashMap;
use std::path::PathBuf;

use crate::decide::{
    Consent, Given, Hits, Judgement, LocateFacts, Reach, Sign, Standing, Workdir, is_gone, judge, names,
    proposes, tells_why_not, tries,
};
use crate::error::{Chain, HistoryError};
use crate::history::{
    ListQuery, ListedSession, Notice, NoticeKind, Resumability, SessionKind, SessionsQuery,
};
use crate::relocation::Way;
use crate::resolution::{Answer, Hit, Located, Look, NotResumed, Proposal, Seek, Vanished, Wanted};
use crate::{AgentId, NativeId, SessionKey, WorkTree};

use super::Lifecycle;
use super::list::Known;
pub(super) use place::Whereabouts;

/// One search, as far as it got.
#[derive(Debug)]
pub(super) struct Search<'a> {
    seek: &'a Seek,
    asked: Given,
    text: &'a str,
    here: WorkTree,
    pub(super) known: Known,
    /// How the caller's folder relates to others, by their paths as recorded.
    relations: HashMap<PathBuf, Workdir>,
    /// Everything that can be listed, once it was.
    listed: Option<Vec<ListedSession>>,
    looked_at: Vec<Look>,
}

impl Lifecycle {
    /// Finds the session that is meant. Signs are tried in one order, and the first that leads to one answers: exact id, key,
    /// what runs in the background, whole name or title, beginning of an id, words, and last, for an id, every state dir.
    /// What only proposes sessions never chooses one of several, and none of another project without a yes. Nothing is run
    /// but the agent's version probe, and git for the root commits; nothing is changed.
    ///
    /// # Errors
    /// [`HistoryError::UnknownAgent`]. What could not be looked at is told in the answer.
    ///
    /// # Cancel safety
    /// Nothing is written but what catalogs keep to be faster.
    pub async fn locate(&self, seek: &Seek) -> Result<Located, HistoryError> {
        if let Some(agent) = seek.agent.as_ref().filter(|agent| !self.agents.contains_key(agent)) {
            return Err(HistoryError::UnknownAgent { agent: agent.clone() });
        }
        let mut search = self.begin(seek).await;
        let asked = search.asked;
        for sign in Sign::ALL.iter().copied().filter(|sign| tries(asked, *sign)) {
            let found = self.seen_by(&mut search, sign).await;
            if let Some(answer) = self.answer(&mut search, sign, found).await {
                tracing::debug!(?sign, "a session was located");
                return Ok(Located { answer, looked_at: search.looked_at, vanished: Vec::new() });
            }
        }
        let vanished = self.vanished(&mut search).await;
        let answer = if is_gone(search.asked) { Answer::Gone } else { Answer::Nothing };
        Ok(Located { answer, looked_at: search.looked_at, vanished })
    }

    pub(super) async fn begin<'a>(&self, seek: &'a Seek) -> Search<'a> {
        let here = self.work_tree_of(&seek.ours(&seek.from)).await;
        let mut looked_at = Vec::new();
        let known = self.known().await.unwrap_or_else(|error| {
            let trouble = Some(Chain(&error).to_string());
            looked_at.push(Look { sign: Sign::Key, agent: None, place: None, found: 0, trouble });
            Known::default()
        });
        // What a record that cannot be read is bound to may be what is sought.
        let unread =
            known.unread.iter().filter(|(key, _)| seek.agent.as_ref().is_none_or(|it| *it == key.agent));
        looked_at.extend(unread.map(|(key, trouble)| Look {
            sign: Sign::Key,
            agent: Some(key.agent.clone()),
            place: None,
            found: 0,
            trouble: Some(trouble.clone()),
        }));
        let (asked, text) = match &seek.what {
            Wanted::Nothing => (Given::Nothing, ""),
            Wanted::Id(id) => (Given::Id, id.as_str()),
            Wanted::Key(key) => (Given::Key, key.mailbox.as_str()),
            Wanted::Text(text) => match text.trim() {
                "" => (Given::Nothing, ""),
                text if self.agents_of(seek).any(|(_, agent)| {
                    let id = NativeId::new(text);
                    id.is_argument_safe() && agent.adapter().accepts_id(&id)
                }) =>
                {
                    (Given::IdLike, text)
                }
                text => (Given::Text, text),
            },
        };
        Search { seek, asked, text, here, known, relations: HashMap::new(), listed: None, looked_at }
    }

    /// What the sessions that a sign led to come to.
    async fn answer(&self, search: &mut Search<'_>, sign: Sign, found: Vec<ListedSession>) -> Option<Answer> {
        let consent = if search.seek.yes_other_project { Consent::Yes } else { Consent::No };
        let mut hits = self.hits(search, found).await;
        let standing = |hit: &Hit| standing(&hit.session, search.seek.current.as_ref());
        let can_be = |hit: &Hit| proposes(sign, standing(hit), hit.workdir, consent);
        // Who names one may be told why not; of several, only those that can be continued are proposed.
        if hits.iter().any(can_be) || !(names(sign) || (tells_why_not(sign) && hits.len() == 1)) {
            hits.retain(can_be);
        } else {
            hits.truncate(1);
        }
        // Those of this project before all others.
        if hits.iter().any(|hit| hit.workdir != Workdir::OtherProject) && !names(sign) {
            hits.retain(|hit| hit.workdir != Workdir::OtherProject);
        }
        let first = hits.first()?;
        let reach = self.reach(search, &first.session.agent).await;
        let is_found = self.whereabouts(search, &first.session).await.is_found_by(reach);
        let facts = LocateFacts {
            sign,
            hits: if hits.len() == 1 { Hits::One } else { Hits::Many },
            standing: standing(first),
            // The place of its file counts, whatever the folders are.
            workdir: match first.workdir {
                Workdir::Same if !is_found => Workdir::SameRepository,
                workdir => workdir,
            },
            reach: if is_found { Reach::Anywhere } else { Reach::SameFolder },
            consent,
        };
        let how = sign;
        let judgement = judge(facts);
        if matches!(judgement, Judgement::Offer) {
            return Some(Answer::Ambiguous { candidates: hits, how });
        }
        let why = why_not(&first.session, search.seek.current.as_ref());
        let hit = Box::new(hits.swap_remove(0));
        Some(match judgement {
            Judgement::GoOn | Judgement::Offer => return None,
            Judgement::Found => Answer::Found { hit, how },
            Judgement::AskProject => Answer::OtherProject { hit, how },
            Judgement::CannotResume => Answer::CannotResume { hit, how, why },
            Judgement::Relocate => {
                let to = search.here.folder.path.as_path().unwrap_or(&search.seek.from).to_owned();
                let proposal = Proposal { from: hit.folder.clone(), to, way: Way::Move };
                Answer::Moved { proposal, hit, how }
            }
        })
    }

    /// From where the installed version finds its sessions. Of one that cannot be asked, no more than its own folder.
    async fn reach(&self, search: &Search<'_>, agent: &AgentId) -> Reach {
        if search.seek.only_to_look {
            return Reach::Anywhere;
        }
        let Some(agent) = self.agents.get(agent) else { return Reach::SameFolder };
        match agent.adapter().detect_in(&search.seek.from).await {
            Ok(installation) => installation.capabilities.resume_reach.into(),
            Err(error) => {
                tracing::warn!(%error, "the agent could not be asked for its version");
                Reach::SameFolder
            }
        }
    }

    /// The sessions with how they relate; several files of one session are one.
    async fn hits(&self, search: &mut Search<'_>, found: Vec<ListedSession>) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::with_capacity(found.len());
        for session in found {
            let Whereabouts { workdir, folder, .. } = self.whereabouts(search, &session).await;
            let hit = Hit { session, workdir, folder, copies: Vec::new() };
            let same = |other: &&mut Hit| {
                let (one, other) = (&hit.session, &other.session);
                (&one.agent, &one.entry.id) == (&other.agent, &other.entry.id)
            };
            match hits.iter_mut().find(same) {
                None => hits.push(hit),
                // The nearer one counts, of equals the newer one; what comes first is not older.
                Some(other) if hit.workdir < other.workdir => {
                    let farther = std::mem::replace(other, hit);
                    other.copies = farther.copies;
                    other.copies.push(farther.session.entry.source.path);
                }
                Some(other) if other.session.entry.source != hit.session.entry.source => {
                    other.copies.push(hit.session.entry.source.path);
                }
                Some(_) => {}
            }
        }
        hits.sort_by(|one, other| {
            let far = |hit: &Hit| hit.workdir == Workdir::OtherProject;
            far(one).cmp(&far(other)).then_with(|| one.session.newest_first(&other.session))
        });
        hits
    }

    /// Sessions of folders that are gone and were this one, by all that is known.
    async fn vanished(&self, search: &mut Search<'_>) -> Vec<Vanished> {
        let Some(listed) = search.listed.take() else { return Vec::new() };
        let mut vanished: Vec<Vanished> = Vec::new();
        for hit in self.hits(search, listed).await {
            let moved = matches!(hit.workdir, Workdir::Moved | Workdir::Gone);
            let resumable = standing(&hit.session, search.seek.current.as_ref()) == Standing::Resumable;
            let Some(folder) = hit.folder.filter(|_| moved && resumable) else { continue };
            match vanished.iter_mut().find(|other| other.folder == folder) {
                Some(other) => other.sessions += 1,
                None => vanished.push(Vanished { folder, sessions: 1 }),
            }
        }
        vanished
    }

    /// The agents that may be meant.
    fn agents_of<'a>(&'a self, seek: &'a Seek) -> impl Iterator<Item = (&'a AgentId, &'a crate::Agent)> {
        self.agents.iter().filter(|(id, _)| seek.agent.as_ref().is_none_or(|agent| agent == *id))
    }

    /// Everything that can be listed.
    async fn listed<'s>(&self, search: &'s mut Search<'_>, sign: Sign) -> &'s [ListedSession] {
        if search.listed.is_none() {
            // Of those without a turn it is told that they have none, where one is named.
            let query = SessionsQuery {
                agents: search.seek.agent.iter().cloned().collect(),
                list: ListQuery { with_empty: true, ..ListQuery::default() },
            };
            let looked = |agent, place, found, trouble| Look { sign, agent, place, found, trouble };
            let sessions = match self.list(&query).await {
                Ok(listing) => {
                    search.looked_at.push(looked(None, None, listing.sessions.len(), None));
                    let unlisted = listing.unlisted.into_iter();
                    search
                        .looked_at
                        .extend(unlisted.map(|what| looked(Some(what.agent), None, 0, Some(what.reason))));
                    let gaps = listing.notices.into_iter().filter(Notice::is_gap);
                    search.looked_at.extend(gaps.map(|Notice { path, kind, .. }| {
                        let why =
                            if let NoticeKind::Unreadable(why) = kind { why } else { TOO_MUCH.to_owned() };
                        looked(None, Some(path), 0, Some(why))
                    }));
                    listing.sessions
                }
                Err(error) => {
                    search.looked_at.push(looked(None, None, 0, Some(Chain(&error).to_string())));
                    Vec::new()
                }
            };
            search.listed = Some(sessions);
        }
        search.listed.as_deref().unwrap_or_default()
    }
}

/// Why a session may be where not everything was looked at.
const TOO_MUCH: &str = "there is more than is looked at";

/// Whether a session is one to be continued by somebody who asks.
fn standing(session: &ListedSession, current: Option<&NativeId>) -> Standing {
    let entry = &session.entry;
    if current == Some(&entry.id) || entry.kind == SessionKind::Sidechain {
        return Standing::Aside;
    }
    match entry.resumable {
        Resumability::Yes => Standing::Resumable,
        Resumability::Archived | Resumability::No(_) => Standing::Unresumable,
    }
}

fn why_not(session: &ListedSession, current: Option<&NativeId>) -> NotResumed {
    if current == Some(&session.entry.id) {
        NotResumed::Current
    } else if session.entry.kind == SessionKind::Sidechain {
        NotResumed::Sidechain
    } else {
        NotResumed::File(session.entry.resumable)
    }
}

/// The keys that a text may mean: a mailbox, of whatever agent, or a mailbox and an agent.
fn keys_of(known: &Known, text: &str, agent: Option<&AgentId>) -> Vec<SessionKey> {
    let meant = |key: &&SessionKey| {
        (key.mailbox.as_str() == text || key.to_string() == text)
            && agent.is_none_or(|agent| *agent == key.agent)
    };
    known.keys.iter().filter(meant).cloned().collect()
}
