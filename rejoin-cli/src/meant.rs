//! Which session is meant, as the library's decision tree has it, and what its answers are as exits.

use rejoin::core::decide::Sign;
use rejoin::history::ListedSession;
use rejoin::{Answer, Hit, Located, NativeId, NotResumed, Seek, Vanished, Wanted};

use crate::commands::list::unresumable;
use crate::exit::{Exit, Failure};
use crate::invocation::Invocation;
use crate::plain;
use crate::target::{self, told};
use crate::world::World;

/// The most sessions that are named to choose from.
const CANDIDATES: usize = 20;

/// A session that was meant.
#[derive(Debug)]
pub(crate) struct Meant {
    pub(crate) session: ListedSession,
    pub(crate) located: Located,
}

/// A search for what a word means, from a folder.
pub(crate) fn seek(word: &str, from: &std::path::Path, current: Option<&str>, other_project: bool) -> Seek {
    let seek = Seek::new(Wanted::Text(word.to_owned()), from).other_project(other_project);
    current.map_or(seek.clone(), |current| seek.current(NativeId::new(current)))
}

/// The one session that is meant and can be continued.
pub(crate) async fn meant(world: &World, seek: &Seek) -> Result<Meant, Failure> {
    let (word, located) = locate(world, seek).await?;
    let session = match &located.answer {
        Answer::Found { hit, .. } | Answer::Moved { hit, .. } => hit.session.clone(),
        // An id was said on purpose, and its own folder is where it is continued: that enters no other project.
        Answer::OtherProject { hit, how: Sign::Id | Sign::Prefix | Sign::Key | Sign::Tree } => {
            hit.session.clone()
        }
        Answer::OtherProject { hit, .. } => {
            let message = "the session of that name belongs to another project; name it by its id, or say --other-project";
            return Err(Failure::new(Exit::OtherProject, message).with_candidates(vec![told(&hit.session)]));
        }
        Answer::CannotResume { hit, why, .. } => {
            let message = format!(
                "{} cannot be continued: {}",
                hit.session.entry.id,
                reason(*why, &hit.session, world)
            );
            return Err(Failure::new(Exit::Refused, message));
        }
        Answer::Ambiguous { candidates, .. } => return Err(ambiguous(word, candidates)),
        _ => {
            let is_sure = located.is_complete() && world.missing_store().is_none();
            let mut missing = target::missing(word, is_sure);
            missing.message.extend(located.vanished.iter().map(|vanished| gone(vanished, world)));
            return Err(missing);
        }
    };
    Ok(Meant { session, located })
}

/// The one session that is meant, to look at: the same rule, and where it finds none, what it leaves out because nobody can
/// continue it.
pub(crate) async fn looked_at(world: &World, word: &str) -> Result<ListedSession, Failure> {
    let seek = seek(word, &world.around.cwd, None, false).only_to_look();
    let (word, located) = locate(world, &seek).await?;
    match (located.hit(), &located.answer) {
        (Some(hit), _) => Ok(hit.session.clone()),
        (None, Answer::Ambiguous { candidates, .. }) => Err(ambiguous(word, candidates)),
        (None, _) => target::find(world, word, located.is_complete()).await,
    }
}

async fn locate<'a>(world: &World, seek: &'a Seek) -> Result<(&'a str, Located), Failure> {
    let word = if let Wanted::Text(word) = &seek.what { word.trim() } else { "it" };
    if word.is_empty() {
        // A variable that is not set, likely.
        return Err(Failure::usage("the session is named by an empty word"));
    }
    let located = world.sessions.locate(seek).await.map_err(|error| Failure::history(&error))?;
    Ok((word, located))
}

/// That sessions of a folder that is gone may be what is missed here.
fn gone(vanished: &Vanished, world: &World) -> String {
    let folder = plain::path(&vanished.folder, world.home());
    let number = match vanished.sessions {
        1 => "1 session is".to_owned(),
        several => format!("{several} sessions are"),
    };
    format!(
        "\n{number} of {folder}, which is gone and was this folder; rejoin relocate brings one here by its id"
    )
}

fn ambiguous(word: &str, candidates: &[Hit]) -> Failure {
    let message = match candidates.len() {
        1 => format!("{word:?} is no name, but words of one session; name it by its id"),
        several => format!("{several} sessions are meant by {word:?}; name one by its id"),
    };
    let candidates = candidates.iter().take(CANDIDATES).map(|hit| told(&hit.session)).collect();
    Failure::new(Exit::Ambiguous, message).with_candidates(candidates)
}

fn reason(why: NotResumed, session: &ListedSession, world: &World) -> String {
    use rejoin::history::Resumability;
    let reason = match why {
        NotResumed::Current => "it is the one that asks",
        NotResumed::Sidechain => "it is a helper's",
        NotResumed::File(Resumability::No(why)) => unresumable(why),
        NotResumed::File(Resumability::Archived) => {
            let way = Invocation::unarchive(session, world);
            let way = way.map(|line| format!("; to take it out of the archive: {line}"));
            return format!("it is archived{}", way.unwrap_or_default());
        }
        _ => "it cannot be continued",
    };
    reason.to_owned()
}
