//! `rejoin show`.

use std::time::Duration;

use rejoin::history::{Cursor, ListedSession, Located, PageQuery, TranscriptPage};
use serde::Serialize;

use crate::args::Show;
use crate::commands::list::unreadable;
use crate::exit::{Exit, Failure};
use crate::json::{EntryJson, NoticeJson, SessionJson};
use crate::meant::looked_at;
use crate::output::{Output, Style};
use crate::plain;
use crate::talk::{self, Detail};
use crate::when;
use crate::world::World;

/// How often a file is looked at for what was added.
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
    let session = looked_at(world, &args.session).await?;
    let turns = args.turns;
    let query = match &args.before {
        Some(cursor) => PageQuery::Before { cursor: Cursor(cursor.clone()), turns },
        None => PageQuery::Last { turns },
    };
    let mut page = world.page(&session, &query).await?;
    page.notices.extend(world.missing_store());
    if out.json {
        out.document(&document(&session, &page))?;
    } else {
        let detail = if args.full { Detail::Full } else { Detail::Brief };
        heading(&session, world, out)?;
        if let Some(before) = &page.before {
            let hint = format!("… rejoin show {} --before {}", session.entry.id, plain::shell(&before.0));
            let hint = out.styled(Style::Dim, &plain::line(&hint));
            out.line(&hint)?;
        }
        entries(&page.entries, detail, out)?;
        out.flush()?;
        unreadable(&page.notices, out);
    }
    if args.follow { follow(args, &session, page.after, world, out).await } else { Ok(()) }
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
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let text = out.styled(Style::Dim, &parts.join(" · "));
    out.line(&text)?;
    out.line("")
}

fn entries(located: &[Located], detail: Detail, out: &mut Output) -> Result<(), Failure> {
    for one in located {
        for (style, text) in talk::lines(&one.entry, detail) {
            let text = style.map_or_else(|| text.clone(), |style| out.styled(style, &text));
            out.line(&text)?;
        }
    }
    Ok(())
}

/// Goes on with what is added, until it is ended. With `--json`, each entry is a document of its own.
async fn follow(
    args: &Show,
    session: &ListedSession,
    mut after: Option<Cursor>,
    world: &World,
    out: &mut Output,
) -> Result<(), Failure> {
    let detail = if args.full { Detail::Full } else { Detail::Brief };
    loop {
        let Some(cursor) = after.clone() else {
            return Err(Failure::new(Exit::Failed, "this session cannot be followed"));
        };
        let query = PageQuery::After { cursor, records: BATCH };
        let page = world.page(session, &query).await?;
        let is_quiet = page.entries.is_empty();
        if out.json {
            for one in &page.entries {
                out.document(&AddedJson { entry: one.into() })?;
            }
        } else {
            entries(&page.entries, detail, out)?;
            out.flush()?;
        }
        after = page.after.or(after);
        if is_quiet {
            tokio::time::sleep(LOOK).await;
        }
    }
}
