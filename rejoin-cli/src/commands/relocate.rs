//! `rejoin relocate`.

use rejoin::{Answer, Foreseen, Refusal, Relocated, Relocation, Way};
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
        let message = format!("there is no folder {}", plain::path(&to, None));
        return Err(Failure::new(Exit::NotFound, message));
    }
    let to = to.canonicalize().unwrap_or(to);
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
        _ => {
            let wish = Relocation::new(found.session, &to);
            let refusal = if args.dry_run {
                let foreseen =
                    world.sessions.foresee(&wish).await.map_err(|error| Failure::history(&error))?;
                document.foresee(foreseen)
            } else {
                out.progress("relocating …");
                let done = world.sessions.relocate(&wish).await.map_err(|error| Failure::history(&error))?;
                document.note(done)
            };
            if let Some(refusal) = refusal {
                document.outcome = "refused";
                document.reason = Some(reason(&refusal));
                // Somebody is at work on it.
                is_busy = matches!(refusal, Refusal::Live { .. } | Refusal::Growing | Refusal::Busy);
            }
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
            let not = if args.dry_run { "would not be" } else { "was not" };
            Err(Failure::new(exit, format!("the session {not} relocated: {reason}")).told_in(out.json))
        }
    }
}

impl RelocateJson {
    /// Takes what was done; what was refused is handed back.
    fn note(&mut self, outcome: Relocated) -> Option<Refusal> {
        match outcome {
            Relocated::Noted => self.outcome = "noted",
            Relocated::Already { path } => {
                self.outcome = "already";
                self.to_path = Some(text(&path));
            }
            Relocated::Done { from, to, way, records, left, split } => {
                self.outcome = "done";
                self.way = Some(way);
                self.from_path = Some(text(&from));
                self.to_path = Some(text(&to));
                self.records = Some(records);
                self.left = left.iter().map(|path| text(path)).collect();
                self.split = split;
            }
            Relocated::Refused(refusal) => return Some(refusal),
            // Nothing had to be done.
            _ => {}
        }
        None
    }

    /// Takes what would be done; what would be refused is handed back.
    fn foresee(&mut self, foreseen: Foreseen) -> Option<Refusal> {
        match foreseen {
            Foreseen::Noted => self.outcome = "would_be_noted",
            Foreseen::Already { path } => return self.note(Relocated::Already { path }),
            Foreseen::Done { way } => {
                self.outcome = "would_be_done";
                self.way = Some(way);
            }
            Foreseen::Refused(refusal) => return Some(refusal),
            // Nothing would have to be done.
            _ => {}
        }
        None
    }

    fn told(&self) -> String {
        let to = plain::line(&self.to);
        match self.outcome {
            "done" => {
                format!("it continues in {to}: {} records, read back", self.records.unwrap_or_default())
            }
            "noted" => format!("later runs of its mailbox go on in {to}; its agent finds it from there"),
            "would_be_noted" => {
                format!("later runs of its mailbox would go on in {to}; its agent finds it from there")
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
        Refusal::TargetDiffers { path } => {
            format!("another file has its place: {}", plain::path(path, None))
        }
        Refusal::Packed => "it is packed".to_owned(),
        Refusal::NotPlain => "its file is reached through a link, or has another name".to_owned(),
        Refusal::RecordUnreadable(why) => format!("the record of its mailbox cannot be read: {why}"),
        Refusal::Unsupported(why) => why.clone(),
        _ => "it cannot be".to_owned(),
    }
}
