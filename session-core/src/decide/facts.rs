//! The closed facts. Each has `ALL`, so that a test walks every combination.

macro_rules! fact {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The value's name, as the rendered table shows it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }
        }
    };
}

fact! {
    /// What the caller and the setting want.
    Policy {
        /// Resume where possible, else start fresh with a reason.
        Prefer,
        /// Resume or refuse: never lose context.
        Require,
        /// Always start fresh.
        Never,
        /// Begin anew by the recipe that the conversation was begun from.
        Rerun,
    }
}

fact! {
    /// What the store says about the key.
    RecordFact {
        /// A turn of the bound session was kept by the agent.
        Confirmed,
        /// A session was started, but it is not known that a turn was kept.
        Pending,
        /// No record, or one without a binding.
        Absent,
        /// The binding was closed.
        Closed,
        /// The record could not be read.
        Corrupt,
        /// The record was written by a newer version.
        Newer,
        /// The store could not be asked.
        Unavailable,
    }
}

fact! {
    /// Whether agent and version can resume at all.
    Support {
        /// They can.
        Able,
        /// The agent never can.
        AgentCannot,
        /// The installed version cannot.
        VersionCannot,
    }
}

fact! {
    /// Whether the recorded id is an id of this agent.
    IdShape {
        /// It is.
        WellFormed,
        /// It is not, and must not reach the agent.
        Malformed,
    }
}

fact! {
    /// How the folder of this run relates to the folder of the session.
    Workdir {
        /// The same folder.
        Same,
        /// Another work tree, or another folder, of the same repository.
        SameRepository,
        /// The same repository, but the session's folder is gone.
        Gone,
        /// The same folder under a new path.
        Moved,
        /// Anything else.
        OtherProject,
    }
}

fact! {
    /// From where the installed version finds a session.
    Reach {
        /// Only from the folder where the session began.
        SameFolder,
        /// From every folder and work tree of the repository.
        Repository,
        /// From anywhere.
        Anywhere,
    }
}

fact! {
    /// Whether the caller said yes to entering another project.
    Consent {
        /// Not said.
        No,
        /// Said.
        Yes,
    }
}

fact! {
    /// What the session's file says, before the run.
    Transcript {
        /// It holds at least one turn.
        Present,
        /// There is none.
        Missing,
        /// There is one without a turn.
        Empty,
        /// There is one that is no conversation.
        Damaged,
        /// There is one that cannot be read.
        Unreadable,
        /// There is one, of another project.
        Elsewhere,
        /// There is none in the home that the agent is now set to, and the session is in another one.
        OtherHome,
        /// Nobody can look.
        Unknown,
    }
}

fact! {
    /// Whether earlier runs speak against the session.
    History {
        /// They do not.
        Clean,
        /// The last run found that the session cannot be continued.
        Poisoned,
        /// Three resumes in a row failed.
        KeepsFailing,
        /// The session is older than the limit set.
        Expired,
        /// The session is larger than the limit set.
        TooLarge,
    }
}

/// All that [`plan`](super::plan) looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlanFacts {
    /// What the caller and the setting want.
    pub policy: Policy,
    /// What the store says.
    pub record: RecordFact,
    /// Whether agent and version can resume.
    pub support: Support,
    /// Whether the id is one of this agent.
    pub id: IdShape,
    /// How the folders relate.
    pub workdir: Workdir,
    /// From where the version finds a session.
    pub reach: Reach,
    /// Whether entering another project is allowed.
    pub consent: Consent,
    /// What the session's file says.
    pub transcript: Transcript,
    /// What earlier runs say.
    pub history: History,
}

fact! {
    /// Which attempt of the run it was.
    Attempt {
        /// Resumed (or forked) the bound session.
        Resume,
        /// Started fresh because the plan said so.
        Fresh,
        /// Started fresh after a failed resume.
        Fallback,
    }
}

fact! {
    /// What the agent's exit means.
    Verdict {
        /// The turn was carried out.
        Completed,
        /// The agent does not have the session.
        Missing,
        /// The agent, or its provider, refuses what the session holds.
        Incompatible,
        /// Another process of the agent uses the session.
        Busy,
        /// The session is archived, and the agent continues none that is.
        Archived,
        /// The session began with another provider, and the agent keeps a session to its provider.
        ProviderChanged,
        /// The agent's index does not lead to the session, whose file may be as good as ever.
        Unindexed,
        /// Not logged in, or refused.
        Unauthenticated,
        /// A usage or rate limit.
        RateLimited,
        /// Overload, network, server trouble.
        Transient,
        /// The conversation does not fit the model.
        ContextOverflow,
        /// The agent refused its configuration or arguments.
        Misconfigured,
        /// The process died.
        Crashed,
        /// The process ended in order, without a result.
        NoResult,
        /// One of our time limits ended it.
        TimedOut,
        /// The caller ended it.
        Cancelled,
        /// A limit that the caller set for the agent, such as a number of turns.
        LimitReached,
        /// None of these.
        Unknown,
    }
}

fact! {
    /// How far an attempt got.
    Activity {
        /// No model call, no tool.
        None,
        /// The model was called, or may have been.
        ModelCalled,
        /// A tool ran, or may have.
        Acted,
    }
}

fact! {
    /// Which conversation the attempt was in, compared with the one asked for.
    Continuity {
        /// The one asked for, under its id.
        Kept,
        /// The one asked for, under a new id, as this version does.
        Renamed,
        /// Another one.
        Replaced,
        /// Nothing told.
        Unknown,
    }
}

fact! {
    /// Whether waiting for a busy session may go on.
    Patience {
        /// It may.
        Left,
        /// The bound is reached.
        Spent,
    }
}

fact! {
    /// Whether the session's own file shows a turn of this run.
    Persisted {
        /// It does.
        Yes,
        /// It does not.
        No,
        /// Nobody can look.
        Unknown,
    }
}

fact! {
    /// Whether another session than the one in question is in force.
    Bound {
        /// There is one.
        Yes,
        /// There is none.
        No,
    }
}

fact! {
    /// What is left of a session whose run died.
    Leftover {
        /// At least one turn.
        Turn,
        /// No turn.
        Nothing,
        /// Nobody can look.
        Unknown,
    }
}

/// All that [`next`](super::next) looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptFacts {
    /// What the caller and the setting want.
    pub policy: Policy,
    /// Which attempt it was.
    pub attempt: Attempt,
    /// What the exit means.
    pub verdict: Verdict,
    /// How far it got.
    pub activity: Activity,
    /// In which conversation it was.
    pub continuity: Continuity,
    /// Whether waiting may go on.
    pub patience: Patience,
}

fact! {
    /// Whose something is that a sweep finds.
    Owner {
        /// A mailbox that is alive.
        Live,
        /// None that is.
        Nobody,
    }
}

fact! {
    /// How long it is out of use, beside a limit. Where that cannot be told, or the last use lies in the future, it is
    /// within.
    Unused {
        /// No limit is set.
        Unlimited,
        /// Not as long as the limit, or nobody can tell.
        Within,
        /// Longer than the limit.
        Past,
    }
}

fact! {
    /// What retention holds for.
    Extent {
        /// What belongs to no live mailbox.
        Orphans,
        /// Everything.
        LiveToo,
    }
}
