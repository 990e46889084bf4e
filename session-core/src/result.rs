//! What a run came to.

use std::fmt;

use crate::decide::Why;
use crate::error::StoreError;
use crate::{
    AttemptNote, AuditSeq, CheckpointId, Evidence, FigureSource, Mend, NativeId, Recipe, RunId, Totals, Usage,
};

/// How the run found its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// It continued the bound conversation.
    Resumed,
    /// It began as a copy of another conversation, as asked.
    Forked,
    /// It began a new one, as there was none or none was wanted.
    Fresh(Why),
    /// It began a new one, because the bound one could not be had.
    FellBack(Why),
}

impl Route {
    pub(crate) const fn of(why: Option<Why>, forked: bool) -> Self {
        match why {
            None if forked => Self::Forked,
            None => Self::Resumed,
            Some(why @ (Why::NoPriorSession | Why::ResumeDisabled | Why::RecipeRerun)) => Self::Fresh(why),
            Some(why) => Self::FellBack(why),
        }
    }

    /// The stable word: `resumed`, `forked`, `fresh`, `fell_back`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::Forked => "forked",
            Self::Fresh(_) => "fresh",
            Self::FellBack(_) => "fell_back",
        }
    }

    /// The reason, for everything but plain success.
    #[must_use]
    pub const fn why(self) -> Option<Why> {
        match self {
            Self::Resumed | Self::Forked => None,
            Self::Fresh(why) | Self::FellBack(why) => Some(why),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why() {
            None => f.write_str(self.code()),
            Some(why) => write!(f, "{} ({why})", self.code()),
        }
    }
}

/// Whether what was learned is in the store.
#[derive(Debug)]
#[must_use]
pub enum Recorded {
    /// It is.
    Saved,
    /// It is not, and must not be: the record is newer, or could not be read from the store.
    Withheld(Why),
    /// It is not: somebody else wrote the record meanwhile.
    LostRace,
    /// It is not: the lease was lost meanwhile, and another runner has been granted the key. The attempt that was under way
    /// went on to its end, and none followed.
    LostLease,
    /// It is not: writing failed.
    Failed(StoreError),
}

impl Recorded {
    /// Whether it is in the store.
    #[must_use]
    pub const fn is_saved(&self) -> bool {
        matches!(self, Self::Saved)
    }
}

/// Something that did not spoil the run, and that an operator may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The turn was carried out, but the agent did not keep it: a later resume will not know it.
    NotPersisted,
    /// The turn was carried out, but the process ended badly afterwards.
    ExitedBadly(String),
    /// The process went on after its final event and was ended.
    Lingered,
    /// So many processes of the run were left at its end, and were ended.
    LeftoversEnded(u32),
    /// An earlier runner died; so many of its processes were still there, and were ended.
    Reclaimed(u32),
    /// The last line of the session's file was cut off; the agent leaves that line out.
    TornTail,
    /// The session's file was mended before the run, without losing anything of it.
    Mended(Mend),
    /// So many lines or records of the session's file are lost to the agent, which leaves them out in silence.
    Holes(u64),
    /// The record could not be read; its bytes lie at the place named.
    RecordSetAside(String),
    /// The version was not verified; the rules of the nearest known one are used.
    UnverifiedVersion(String),
    /// The audit log could not be written.
    AuditFailed(String),
    /// The session's file could not be looked at.
    NotInspected(String),
    /// No checkpoint was taken, before the run or after it, for this reason.
    NotCheckpointed(String),
    /// Putting files back was cut off earlier; it was finished now, for so many paths.
    RewindRecovered(usize),
    /// An earlier rewind of files and conversation was cut off before the conversation went back: that still tells of what its
    /// prompts did, while the files may be as before them. To go back to this checkpoint undoes it; the same rewind again ends it.
    RewindUnended(CheckpointId),
    /// A text that waits to go before a prompt was held back: with it, the prompt would be larger than the agent takes. It
    /// waits for the next one.
    PreambleHeldBack,
    /// A text of this code had gone before a prompt that was taken back, and does not wait again: another one has its place.
    PreambleLost(String),
    /// The session that was put in force was found, for the reason with this code, not to be continued: the next run begins anew.
    BeginsAnew(String),
    /// A copy that was made to ask the agent for a summary is still there; the next summary of the key, or a sweep, removes it.
    CopyLeft(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPersisted => f.write_str("the agent did not keep the turn"),
            Self::ExitedBadly(exit) => write!(f, "the process ended badly after its result: {exit}"),
            Self::Lingered => f.write_str("the process did not end after its result, and was ended"),
            Self::LeftoversEnded(1) => f.write_str("1 process was left at the end of the run, and was ended"),
            Self::LeftoversEnded(n) => {
                write!(f, "{n} processes were left at the end of the run, and were ended")
            }
            Self::Reclaimed(1) => f.write_str("an earlier runner died; 1 of its processes was ended"),
            Self::Reclaimed(n) => write!(f, "an earlier runner died; {n} of its processes were ended"),
            Self::TornTail => f.write_str("the last line of the session's file was cut off"),
            Self::Mended(Mend::EndLastLine) => {
                f.write_str("the last line of the session's file had no end, and was given one")
            }
            Self::Mended(Mend::NumberRecords) => f.write_str(
                "records of an older version in the session's file had no numbers, and were given them",
            ),
            Self::Mended(Mend::Unpack) => f.write_str(
                "the session's file was packed, which this version of the agent does not read, and was unpacked",
            ),
            Self::Mended(Mend::Unarchive) => f.write_str("the session was archived, and was put back"),
            Self::Mended(Mend::SetAside) => {
                f.write_str("a damaged file was in the way of a new session, and was set aside")
            }
            Self::Mended(Mend::PutInPlace) => {
                f.write_str("the session's file was put where this version of the agent looks for it")
            }
            Self::Holes(1) => {
                f.write_str("1 line or record of the session's file is lost, and the agent leaves it out")
            }
            Self::Holes(n) => {
                write!(
                    f,
                    "{n} lines or records of the session's file are lost, and the agent leaves them out"
                )
            }
            Self::RecordSetAside(place) => write!(f, "the unreadable record was set aside: {place}"),
            Self::UnverifiedVersion(version) => write!(f, "version {version} was not verified"),
            Self::AuditFailed(error) => write!(f, "the audit log could not be written: {error}"),
            Self::NotInspected(error) => write!(f, "the session's file could not be looked at: {error}"),
            Self::NotCheckpointed(error) => write!(f, "no checkpoint was taken: {error}"),
            Self::RewindRecovered(paths) => {
                write!(f, "an earlier rewind was cut off, and was finished; paths: {paths}")
            }
            Self::RewindUnended(undo) => {
                write!(f, "an earlier rewind was cut off before the conversation went back; its files may have: checkpoint {undo} undoes that")
            }
            Self::PreambleHeldBack => {
                f.write_str("what was to go before the prompt was held back, as both are larger than the agent takes")
            }
            Self::PreambleLost(why) => {
                write!(f, "what was {why} went before a prompt that was taken back, and does not wait again, as another text does")
            }
            Self::BeginsAnew(code) => {
                write!(f, "the session was found not to be continued any more ({code}): the next run begins a new one")
            }
            Self::CopyLeft(error) => write!(f, "the copy made for a summary is still there: {error}"),
        }
    }
}

/// The result of a run that worked.
#[derive(Debug)]
#[non_exhaustive]
pub struct LlmResult {
    /// The answer.
    pub text: String,
    /// The native id of the conversation that the answer is in.
    pub session_id: Option<NativeId>,
    /// Whether the bound conversation was continued.
    pub resumed: bool,
    /// Why no conversation was continued, where one was or could have been: `None` for a resume, for a fork, and where
    /// there was none (`no_prior_session`).
    pub resume_fallback: Option<Why>,
    /// How the run found its conversation, with the reason in every case.
    pub route: Route,
    /// Tokens of this run, all of its attempts.
    pub usage: Usage,
    /// Where `usage` comes from.
    pub usage_source: FigureSource,
    /// Cost of this run in US dollars, as far as the agent says it.
    pub cost_usd: Option<f64>,
    /// What all runs of the key came to, this one included.
    pub totals: Totals,
    /// Whether the binding is in the store.
    pub recorded: Recorded,
    /// The number of the run's event in the audit log.
    pub audit_seq: Option<AuditSeq>,
    /// The run's id.
    pub run: RunId,
    /// The label of the session.
    pub name: Option<String>,
    /// What was taken of the recipe of the key, and what was not; `None`: it has none.
    pub recipe: Option<Recipe>,
    /// The code of the text that went before the prompt: `compacted` or `handed_over`.
    pub preamble: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The checkpoint before the run: going back to it takes the prompt back.
    pub checkpoint: Option<CheckpointId>,
    /// What was tried, in order.
    pub attempts: Vec<AttemptNote>,
    /// What did not spoil the run.
    pub warnings: Vec<Warning>,
}

/// What a failed run came to. Nothing that the agent did is lost.
#[derive(Debug)]
#[non_exhaustive]
pub struct FailedRun {
    /// What there is of an answer.
    pub partial_text: String,
    /// The native id that is bound after the run.
    pub session_id: Option<NativeId>,
    /// How the last attempt went about it: a resume that failed is `Resumed` here.
    pub route: Route,
    /// Tokens of this run, all of its attempts, as far as the agent said it.
    pub usage: Usage,
    /// Where `usage` comes from.
    pub usage_source: FigureSource,
    /// Cost of this run in US dollars, as far as the agent said it.
    pub cost_usd: Option<f64>,
    /// Whether what was learned is in the store.
    pub recorded: Recorded,
    /// The number of the run's event in the audit log.
    pub audit_seq: Option<AuditSeq>,
    /// The run's id.
    pub run: RunId,
    /// The checkpoint before the run: going back to it takes back what the run did.
    pub checkpoint: Option<CheckpointId>,
    /// What was tried, in order.
    pub attempts: Vec<AttemptNote>,
    /// The evidence of the last attempt.
    pub evidence: Evidence,
    /// What else there is to know.
    pub warnings: Vec<Warning>,
}
