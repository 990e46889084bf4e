//! `rejoin relocate`.

use rejoin::{Answer, Refusal, Relocated, Relocation, Way};
use serde::Serialize;

use crate::args::Relocate;
use crate::exit::{Exit, Failure};
use crate::json::{SessionJson, text};
use crate::meant::{meant, seek};
use crate::output::Output;
use crate::plain;
use crate::world::World;

#[derive(Debug, Serialize)]
struct RelocateJson {
    session: SessionJson,
    to: String,
    dry_run: bool,
    outcome: &'static str,
    way: Option<Way>,
    from_path: Option<String>,
    to_path: Option<String>,
    records: Option<u64>,
    left: Vec<String>,
    split: bool,
    reason: Option<String>,
}

pub(crate) async fn run(args: &Relocate, world: &World, out: &mut Output) -> Result<(), Failure> {
    let cwd = &world.around.cwd;
    let to = args.folder.as_ref().map_or_else(|| cwd.clone(), |folder| cwd.join(folder));
    if !to.is_dir() {
        return Err(Failure::new(Exit::NotFound, format!("there is no folder {}", to.display())));
    }
    out.progress("looking for the session …");
    let found = meant(world, &seek(&args.session, &to, None, args.other_project)).await?;
    let mut document = RelocateJson {
        session: (&found.session).into(),
        to: text(&to),
        dry_run: args.dry_run,
        outcome: "nothing_to_do",
        way: None,
        from_path: None,
        to_path: None,
        records: None,
        left: Vec::new(),
        split: false,
        reason: None,
    };
    let mut is_busy = false;
    match &found.located.answer {
        // To relocate is to enter: an id alone is no yes to that.
        Answer::OtherProject { hit, .. } => {
            let folder =
                hit.folder.as_deref().map(|folder| plain::path(folder, world.home())).unwrap_or_default();
            let message = format!(
                "the session belongs to another project, {folder}; say --other-project to take it out of it"
            );
            return Err(Failure::new(Exit::OtherProject, message));
        }
        Answer::Moved { proposal, .. } if args.dry_run => {
            document.outcome = "would_be_done";
            document.way = Some(proposal.way);
        }
        _ if args.dry_run => {}
        _ => {
            out.progress("relocating …");
            let wish = Relocation::new(found.session, &to);
            let outcome = world.sessions.relocate(&wish).await.map_err(|error| Failure::history(&error))?;
            // Somebody is at work on it.
            is_busy = matches!(
                outcome,
                Relocated::Refused(Refusal::Live { .. } | Refusal::Growing | Refusal::Busy)
            );
            document.note(&outcome);
        }
    }
    let refused = (document.outcome == "refused").then(|| document.reason.clone().unwrap_or_default());
    if out.json {
        out.document(&document)?;
    } else if refused.is_none() {
        out.line(&document.told())?;
        out.flush()?;
    }
    match refused {
        None => Ok(()),
        Some(reason) => {
            let exit = if is_busy { Exit::Busy } else { Exit::Refused };
            Err(Failure::new(exit, format!("the session was not relocated: {reason}")).told_in(out.json))
        }
    }
}

impl RelocateJson {
    fn note(&mut self, outcome: &Relocated) {
        match outcome {
            Relocated::Already { path } => {
                self.outcome = "already";
                self.to_path = Some(text(path));
            }
            Relocated::Done { from, to, way, records, left, split } => {
                self.outcome = "done";
                self.way = Some(*way);
                self.from_path = Some(text(from));
                self.to_path = Some(text(to));
                self.records = Some(*records);
                self.left = left.iter().map(|path| text(path)).collect();
                self.split = *split;
            }
            Relocated::Refused(refusal) => {
                self.outcome = "refused";
                self.reason = Some(reason(refusal));
            }
            // Nothing had to be done.
            _ => {}
        }
    }

    fn told(&self) -> String {
        let to = plain::line(&self.to);
        match self.outcome {
            "done" => {
                format!("it continues in {to}: {} records, read back", self.records.unwrap_or_default())
            }
            "already" => format!("it was there already: {to}"),
            "would_be_done" if self.way == Some(Way::Copy) => {
                format!("its file would be copied, to be found in {to}")
            }
            "would_be_done" => format!("its file would be moved, to be found in {to}"),
            _ => format!("nothing is to be done: its agent finds it from {to}"),
        }
    }
}

fn reason(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Live { pid } => format!("its agent has it open (process {pid})"),
        Refusal::Growing => "somebody writes to it".to_owned(),
        Refusal::Busy => "a run of its mailbox is under way".to_owned(),
        Refusal::TargetDiffers { path } => format!("another file has its place: {}", path.display()),
        Refusal::Packed => "it is packed".to_owned(),
        Refusal::NotPlain => "its file is reached through a link, or has another name".to_owned(),
        Refusal::RecordUnreadable(why) => format!("the record of its mailbox cannot be read: {why}"),
        Refusal::Unsupported(why) => why.clone(),
        _ => "it cannot be".to_owned(),
    }
}
