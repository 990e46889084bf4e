//! `Why`: every reason that a caller can be told.

use std::fmt;

macro_rules! whys {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// A reason, as a stable code ([`code`](Why::code)) and a sentence (`Display`).
        ///
        /// Everything but plain success carries one. New reasons may be added in a minor version.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Why { $($(#[$doc])* $name,)* }

        impl Why {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable code, as in records, audit events and results.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

whys! {
    /// The resume setting or the request says `Never`.
    ResumeDisabled = "resume_disabled", "resuming is switched off";
    /// The conversation was begun anew by its recipe, as asked.
    RecipeRerun = "recipe_rerun", "it was begun anew by its recipe";
    /// Nothing is bound to the key.
    NoPriorSession = "no_prior_session", "this mailbox has no session to continue";
    /// An earlier run was started but died before the agent kept a turn.
    SessionNotStarted = "session_not_started", "the earlier run ended before the agent kept anything of it";
    /// The agent has no resumable sessions.
    AgentCannotResume = "agent_cannot_resume", "this agent has no resumable sessions";
    /// The installed version cannot resume.
    VersionCannotResume = "version_cannot_resume", "the installed version of the agent cannot resume";
    /// The record could not be read; its bytes were set aside.
    RecordCorrupt = "record_corrupt", "the record could not be read and was set aside";
    /// The record was written by a newer version of this library, and is left as it is.
    RecordNewer = "record_newer", "the record was written by a newer version and is left as it is";
    /// The store could not be asked.
    StoreUnavailable = "store_unavailable", "the store could not be reached";
    /// The agent does not have the session any more.
    SessionMissing = "session_missing", "the agent no longer has the session";
    /// The session's file holds no turn.
    SessionEmpty = "session_empty", "the session's file holds no turn";
    /// The session's file cannot be read as a conversation.
    SessionDamaged = "session_damaged", "the session's file is damaged";
    /// The session's file cannot be read, as it is; that may change.
    SessionUnreadable = "session_unreadable", "the session's file cannot be read";
    /// The agent or its provider refuses what the session holds.
    SessionIncompatible = "session_incompatible", "the agent refuses what the session holds";
    /// The agent says that another process uses the session.
    SessionBusy = "session_busy", "another process of the agent uses the session";
    /// The session is archived.
    SessionArchived = "session_archived", "the session is archived";
    /// The agent's index does not lead to the session.
    SessionUnindexed = "session_unindexed", "the agent's index does not lead to the session";
    /// The session began with another provider than the agent is now set to.
    ProviderDiffers = "provider_differs", "the session began with another provider";
    /// The agent answered from another conversation than the one asked for.
    SessionReplaced = "session_replaced", "the agent continued another conversation than the one asked for";
    /// The recorded id is not an id of this agent.
    IdMalformed = "id_malformed", "the recorded id is not an id of this agent";
    /// The session belongs to another project.
    ProjectDiffers = "project_differs", "the session belongs to another project";
    /// The session began in another folder, and this version resumes only there.
    WorkdirDiffers = "workdir_differs", "this version of the agent resumes only in the folder where the session began";
    /// The work tree of the session is gone, and this version resumes only there.
    WorktreeGone = "worktree_gone", "the session's work tree is gone";
    /// The session lies in another home of the agent than the one that it is now set to.
    HomeDiffers = "home_differs", "the session lies in another home of the agent than the one it is now set to";
    /// Moving the session to the new folder failed.
    RelocationFailed = "relocation_failed", "the session could not be moved to the new folder";
    /// The session is older than the limit set.
    Expired = "expired", "the session is older than the limit that is set";
    /// The session is larger than the limit set.
    TooLarge = "too_large", "the session is larger than the limit that is set";
    /// The last run found that the session cannot be continued.
    LastRunPoisoned = "last_run_poisoned", "the last run found that the session cannot be continued";
    /// Three resumes in a row failed.
    ResumeKeepsFailing = "resume_keeps_failing", "three resumes in a row failed";
    /// The resume failed in a way that is not known.
    ResumeUnrecognisedFailure = "resume_unrecognised_failure", "the resume failed in a way that is not known";
    /// The agent is not logged in, or its credentials are refused.
    Unauthenticated = "unauthenticated", "the agent is not logged in";
    /// A usage or rate limit ended the run.
    RateLimited = "rate_limited", "a usage limit ended the run";
    /// Overload, network or server trouble ended the run.
    TransientFailure = "transient_failure", "the model's service or the network failed";
    /// The conversation does not fit the model any more.
    ContextOverflow = "context_overflow", "the conversation does not fit the model any more";
    /// The agent refused its configuration or its arguments.
    AgentMisconfigured = "agent_misconfigured", "the agent refused its configuration";
    /// The agent's process ended in an unexpected way.
    AgentCrashed = "agent_crashed", "the agent's process crashed";
    /// The agent ended without a result.
    NoResult = "no_result", "the agent ended without a result";
    /// A time limit ended the run.
    TimedOut = "timed_out", "a time limit ended the run";
    /// The caller ended the run.
    Cancelled = "cancelled", "the caller ended the run";
    /// The run ended at a limit that the caller set for the agent, such as a number of turns.
    LimitReached = "limit_reached", "the run ended at a limit set for the agent";
    /// The run failed in a way that is not known.
    UnrecognisedFailure = "unrecognised_failure", "the run failed in a way that is not known";
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Why {
    /// The reason with this code, if this version knows it.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|why| why.code() == code)
    }
}

impl serde::Serialize for Why {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}
