//! `rejoin show`.

use std::io;
use std::time::Duration;

use rejoin::adapters::OpencodeDatabaseError;
use rejoin::error::{CatalogError, HistoryError};
use rejoin::history::{Cursor, ListedSession, Located, PageQuery, TranscriptPage};
use rejoin::transcript::Followed;
use serde::Serialize;

use crate::args::{Show, TURNS};
use crate::commands::list::{remark, unreadable};
use crate::exit::{Exit, Failure};
use crate::json::{EntryJson, NoticeJson, SessionJson, text};
use crate::meant::looked_at;
use crate::output::{Output, Style};
use crate::place::FoundBy;
use crate::plain;
use crate::talk::{self, Detail};
use crate::when;
use crate::world::{self, World};

/// How often an agent without files is asked for what was added.
const LOOK: Duration = Duration::from_millis(400);
/// Records read at once of what was added.
const BATCH: usize = 200;

#[derive(Debug, Serialize)]
struct ShowJson {
    session: SessionJson,
    entries: Vec<EntryJson>,
    before: Option<Cursor>,
    after: Option<Cursor>,
    notices: Vec<NoticeJson>,
}

#[derive(Debug, Serialize)]
struct AddedJson {
    entry: EntryJson,
}

pub(crate) async fn run(args: &Show, world: &World, out: &mut Output) -> Result<(), Failure> {
    out.progress("looking for the session …");
    let session = looked_at(world, &args.session.join(" ")).await?;
    let turns = args.turns;
    let query = match &args.before {
        Some(cursor) => PageQuery::Before { cursor: Cursor(cursor.clone()), turns },
        None => PageQuery::Last { turns },
    };
    let page = world.sessions.page(&session, &query).await;
    let mut page = page.map_err(|error| match &args.before {
        Some(_) if names_no_place(&error) => Failure::caused(Exit::Usage, &error),
        _ => Failure::failed(&error),
    })?;
    page.notices.extend(world.missing_store());
    if out.json {
        out.document(&document(&session, &page))?;
    } else {
        let detail = if args.full { Detail::Full } else { Detail::Brief };
        heading(&session, world, out)?;
        if let Some(before) = &page.before {
            let hint = out.styled(Style::Dim, &plain::line(&earlier(args, &session, before, world)));
            out.line(&hint)?;
        }
        let shown = entries(&page.entries, detail, out)?;
        out.flush()?;
        if !shown && page.before.is_none() && args.before.is_none() && turns > 0 {
            let hidden = !page.entries.is_empty() && !args.full;
            let otherwise = if hidden { "--full shows what there is" } else { "nothing was said in it" };
            let why = remark(&session).unwrap_or(otherwise);
            out.note(&format!("nothing is shown: {why}"));
        }
        unreadable(&page.notices, out);
    }
    if args.follow { follow(args, &session, page.after, world, out).await } else { Ok(()) }
}

/// The command line for what is before, with the words that this one was called with.
fn earlier(args: &Show, session: &ListedSession, before: &Cursor, world: &World) -> String {
    let mut line = format!("… rejoin show {} --before {}", session.entry.id, plain::shell(&before.0));
    if args.turns != TURNS {
        line.push_str(&format!(" -n {}", args.turns));
    }
    if args.full {
        line.push_str(" --full");
    }
    if let Some(place) = world.place.as_ref().filter(|place| place.by == FoundBy::Option) {
        line.push_str(&format!(" --store {}", plain::shell(&text(&place.base))));
    }
    line
}

/// Whether the session is as good as ever, and the place that was named is none in it.
fn names_no_place(error: &HistoryError) -> bool {
    let HistoryError::Catalog(CatalogError { source, .. }) = error else { return false };
    let invalid = |error: &io::Error| error.kind() == io::ErrorKind::InvalidInput;
    let gone = |error: &OpencodeDatabaseError| matches!(error, OpencodeDatabaseError::PlaceGone);
    source.downcast_ref().is_some_and(invalid) || source.downcast_ref().is_some_and(gone)
}

fn document(session: &ListedSession, page: &TranscriptPage) -> ShowJson {
    ShowJson {
        session: session.into(),
        entries: page.entries.iter().map(EntryJson::from).collect(),
        before: page.before.clone(),
        after: page.after.clone(),
        notices: page.notices.iter().map(NoticeJson::from).collect(),
    }
}

fn heading(session: &ListedSession, world: &World, out: &mut Output) -> Result<(), Failure> {
    let entry = &session.entry;
    let title = out.styled(Style::Bold, &plain::line(entry.label()));
    out.line(&title)?;
    let folder = entry.last_cwd.as_deref().or(entry.cwd.as_deref());
    let parts = [
        Some(format!("{} {}", session.agent, plain::line(entry.id.as_str()))),
        entry.updated.map(|then| when::ago(then, when::now())),
        entry.branch.as_deref().map(plain::line),
        folder.map(|folder| plain::path(folder, world.home())),
        remark(session).map(str::to_owned),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let text = out.styled(Style::Dim, &parts.join(" · "));
    out.line(&text)?;
    out.line("")
}

/// Whether there was anything to show.
fn entries(located: &[Located], detail: Detail, out: &mut Output) -> Result<bool, Failure> {
    let mut shown = false;
    for one in located {
        for (style, text) in talk::lines(&one.entry, detail) {
            shown = true;
            let text = style.map_or_else(|| text.clone(), |style| out.styled(style, &text));
            out.line(&text)?;
        }
    }
    Ok(shown)
}

/// Goes on with what is added, until it is ended. With `--json`, each entry is a document of its own.
async fn follow(
    args: &Show,
    session: &ListedSession,
    after: Option<Cursor>,
    world: &World,
    out: &mut Output,
) -> Result<(), Failure> {
    let detail = if args.full { Detail::Full } else { Detail::Brief };
    let Some(after) = after else {
        return Err(Failure::new(Exit::Failed, "this session cannot be followed"));
    };
    let Some(mut follow) = world::follow(session, &after, world) else {
        return ask(session, after, detail, world, out).await;
    };
    loop {
        match follow.next().await.map_err(|error| Failure::failed(&error))? {
            Followed::Added { entries, notices } => {
                added(&entries, detail, out)?;
                unreadable(&notices, out);
            }
            // A program could not tell what comes twice.
            Followed::Anew if out.json => {
                return Err(Failure::new(Exit::Failed, "the session was written anew, or cut"));
            }
            Followed::Anew => out.note("the session was written anew: this is its beginning"),
            Followed::Gone => out.note("the session's file is gone; it is waited for"),
            _ => {}
        }
    }
}

/// The same for an agent whose sessions are no files: it is asked again and again.
async fn ask(
    session: &ListedSession,
    mut after: Cursor,
    detail: Detail,
    world: &World,
    out: &mut Output,
) -> Result<(), Failure> {
    loop {
        let query = PageQuery::After { cursor: after.clone(), records: BATCH };
        let page = world.page(session, &query).await?;
        added(&page.entries, detail, out)?;
        after = page.after.unwrap_or(after);
        if page.entries.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn added(located: &[Located], detail: Detail, out: &mut Output) -> Result<(), Failure> {
    if !out.json {
        entries(located, detail, out)?;
        return out.flush();
    }
    located.iter().try_for_each(|one| out.document(&AddedJson { entry: one.into() }))
}
