//! `rejoin list`.

use rejoin::core::Timestamp;
use rejoin::history::{
    Depth, Family, Lineage, ListQuery, ListedSession, Notice, NoticeKind, Resumability, SessionsListing,
    SessionsQuery, Unresumable,
};
use serde::Serialize;

use crate::args::{List, Which};
use crate::exit::Failure;
use crate::folders::Folders;
use crate::json::{NoticeJson, SessionJson, UnlistedJson};
use crate::output::{Output, Style};
use crate::plain;
use crate::target::PREFIX;
use crate::when;
use crate::world::World;

#[derive(Debug, Serialize)]
struct ListJson {
    sessions: Vec<SessionJson>,
    empty: u64,
    complete: bool,
    more: bool,
    notices: Vec<NoticeJson>,
    unlisted: Vec<UnlistedJson>,
}

/// The library's question for what was asked on the command line.
pub(crate) fn query(
    world: &World,
    which: &Which,
    depth: Depth,
    empty: bool,
) -> Result<SessionsQuery, Failure> {
    let folders = Folders::around(&world.around.cwd);
    let list = ListQuery {
        state_dir: None,
        scope: folders.scope(which.scope),
        kinds: which.kind.iter().map(|kind| (*kind).into()).collect(),
        with_empty: empty,
        depth,
        limit: which.limit,
    };
    Ok(SessionsQuery { agents: world.agent_ids(&which.agent)?, list })
}

pub(crate) async fn run(args: &List, world: &World, out: &mut Output) -> Result<(), Failure> {
    let depth = if args.quick { Depth::Quick } else { Depth::Exact };
    let query = query(world, &args.which, depth, args.empty)?;
    out.progress("reading sessions …");
    let listing = world.list(&query).await?;
    if out.json {
        return out.document(&ListJson {
            sessions: in_order(&listing, args.by_root).map(SessionJson::from).collect(),
            empty: listing.empty,
            complete: listing.is_complete(),
            more: listing.more,
            notices: listing.notices.iter().map(NoticeJson::from).collect(),
            unlisted: listing.unlisted.iter().map(UnlistedJson::from).collect(),
        });
    }
    let ids = Ids::of(&listing.sessions, out);
    if args.by_root {
        for family in listing.by_root() {
            show_family(&family, ids, world, out)?;
        }
    } else {
        for listed in &listing.sessions {
            short_line(listed, ids, world, out)?;
        }
    }
    out.flush()?;
    if listing.sessions.is_empty() {
        out.note(&nothing(&listing));
    }
    summary(&listing, out);
    Ok(())
}

/// The sessions, as they are or by their roots.
fn in_order(listing: &SessionsListing, by_root: bool) -> impl Iterator<Item = &ListedSession> {
    let families = if by_root { listing.by_root() } else { Vec::new() };
    let rest = if by_root { &[] } else { &listing.sessions[..] };
    families.into_iter().flat_map(|family| family.sessions).chain(rest)
}

/// The root, and below it what comes from it.
fn show_family(family: &Family<'_>, ids: Ids, world: &World, out: &mut Output) -> Result<(), Failure> {
    // Several files may have its id.
    let (roots, others): (Vec<_>, Vec<_>) =
        family.sessions.iter().partition(|listed| listed.entry.id == *family.root);
    if roots.is_empty() {
        let agent = plain::fit(family.agent.as_str(), 8);
        out.line(&format!("     {agent} {}  (not listed)", plain::line(family.root.as_str())))?;
    }
    let root = Lead { marks: true, ..Lead::default() };
    roots.into_iter().try_for_each(|listed| led_line(root, listed, ids, world, out))?;
    others.into_iter().try_for_each(|listed| {
        let came_by = listed.from.as_ref().map(|(_, lineage)| word(*lineage));
        led_line(Lead { indent: "  ", came_by, marks: true }, listed, ids, world, out)
    })
}

/// How a session came about, in words.
const fn word(lineage: Lineage) -> &'static str {
    match lineage {
        Lineage::Forked => "forked",
        Lineage::Rewound => "rewound",
        Lineage::Cleared => "after a clear",
        Lineage::Compacted => "compacted",
        Lineage::FellBack => "fell back",
        Lineage::Replaced => "replaced",
        _ => "descends",
    }
}

/// On a narrower terminal, of ids no more is shown than tells them apart.
const WIDE: usize = 120;

/// How many characters of each id are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids(usize);

impl Ids {
    /// All; on a narrow terminal as many as no two of the sessions have in common, so that each can be named by them.
    pub(crate) fn of<'a>(sessions: impl IntoIterator<Item = &'a ListedSession>, out: &Output) -> Self {
        if out.columns.is_none_or(|columns| columns >= WIDE) {
            return Self(usize::MAX);
        }
        let mut ids: Vec<&str> = sessions.into_iter().map(|listed| listed.entry.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        let common = |pair: &[&str]| {
            pair[0].chars().zip(pair[1].chars()).take_while(|(one, other)| one == other).count()
        };
        Self(ids.windows(2).map(common).max().map_or(PREFIX, |common| PREFIX.max(common + 1)))
    }
}

/// A session on one line, with its whole id.
pub(crate) fn line(listed: &ListedSession, world: &World, out: &mut Output) -> Result<(), Failure> {
    short_line(listed, Ids(usize::MAX), world, out)
}

/// A session on one line. Nothing is cut where no person reads it; the id comes early, so that it can be taken from there.
pub(crate) fn short_line(
    listed: &ListedSession,
    ids: Ids,
    world: &World,
    out: &mut Output,
) -> Result<(), Failure> {
    led_line(Lead::default(), listed, ids, world, out)
}

/// What a line has beside the session.
#[derive(Debug, Clone, Copy, Default)]
struct Lead {
    indent: &'static str,
    /// Before its label, how it came about.
    came_by: Option<&'static str>,
    /// Whether it is said of the session in force: where several of a mailbox stand together, one is.
    marks: bool,
}

/// The same, with more to it.
fn led_line(
    Lead { indent, came_by, marks }: Lead,
    listed: &ListedSession,
    ids: Ids,
    world: &World,
    out: &mut Output,
) -> Result<(), Failure> {
    let entry = &listed.entry;
    let ago = |then: Timestamp| when::ago(then, when::now());
    let age = plain::fit(&entry.updated.map(ago).unwrap_or_default(), 4);
    let turns = entry.turns.map(plain::turns).unwrap_or_default();
    let mut label = plain::line(entry.label());
    if let Some(key) = &listed.key {
        let in_force = if marks && listed.bound { ", in force" } else { "" };
        label = format!("[{}{in_force}] {label}", key.mailbox);
    }
    if let Some(why) = remark(listed) {
        label = format!("{label} ({why})");
    }
    if let Some(came_by) = came_by {
        label = format!("{came_by}: {label}");
    }
    let folder = entry.last_cwd.as_deref().or(entry.cwd.as_deref());
    let folder = folder.map(|folder| plain::path(folder, world.home())).unwrap_or_default();
    let id: String = plain::line(entry.id.as_str()).chars().take(ids.0).collect();
    let agent = plain::fit(listed.agent.as_str(), 8);
    let text = match out.columns {
        None => format!("{indent}{age} {agent} {id}  {label}  {turns}  {folder}"),
        Some(columns) => {
            let left = columns.saturating_sub(indent.len() + 4 + 1 + 8 + 1 + plain::width(&id) + 2);
            let folder_columns = (left / 3).min(plain::width(&folder));
            let label = plain::fit(&label, left.saturating_sub(folder_columns + 2));
            let folder = plain::cut_left(&folder, folder_columns);
            let (id, folder) = (out.styled(Style::Dim, &id), out.styled(Style::Dim, &folder));
            format!("{indent}{age} {agent} {id}  {label}  {folder}")
        }
    };
    out.line(text.trim_end())
}

/// Why a session is not like others.
pub(crate) const fn remark(listed: &ListedSession) -> Option<&'static str> {
    match listed.entry.resumable {
        Resumability::Yes => None,
        Resumability::Archived => Some("archived"),
        Resumability::No(why) => Some(unresumable(why)),
    }
}

/// Why a session cannot be continued, in words.
pub(crate) const fn unresumable(why: Unresumable) -> &'static str {
    match why {
        Unresumable::Empty => "nothing was said in it",
        Unresumable::Damaged => "its file is no conversation",
        Unresumable::Unreadable => "its file may not be read",
        Unresumable::Sidechain => "it is a helper's",
        Unresumable::OlderStore => "its agent does not look there any more",
        Unresumable::BaseMissing => "the file that it goes on from is missing",
        _ => "it cannot be continued",
    }
}

/// That the list is empty is no trouble of the command: a person is told so.
fn nothing(listing: &SessionsListing) -> String {
    if listing.more {
        return "nothing is shown: of what was found, --limit leaves nothing".to_owned();
    }
    match listing.empty {
        0 => "no session was found".to_owned(),
        empty => {
            format!("no session was found but for {empty} in which nothing was said: --empty lists them")
        }
    }
}

/// What is not seen in the list.
fn summary(listing: &SessionsListing, out: &mut Output) {
    for unlisted in &listing.unlisted {
        let of = unlisted.key.as_ref().map(|key| format!(" of {}", key.mailbox)).unwrap_or_default();
        out.note(&format!("{}{of} not listed: {}", unlisted.agent, unlisted.reason));
    }
    unreadable(&listing.notices, out);
}

/// What could not be read. What was put right is no reason to disturb anybody.
pub(crate) fn unreadable(notices: &[Notice], out: &mut Output) {
    for notice in notices {
        if let NoticeKind::Unreadable(why) = &notice.kind {
            out.note(&format!("could not be read: {}: {why}", notice.path.display()));
        }
    }
    if notices.iter().any(|notice| notice.kind == NoticeKind::LimitReached) {
        out.note("not everything was looked at: there is more than is read at once");
    }
}
