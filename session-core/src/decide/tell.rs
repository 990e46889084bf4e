//! Whether a conversation holds a text that it was given before a crash.

fact! {
    /// How a session got the text.
    Telling {
        /// It did not.
        Never,
        /// With its first prompt.
        AtItsBeginning,
        /// With a later one, or nobody knows which.
        Later,
    }
}

fact! {
    /// Whether the session's own file shows a prompt more than before.
    Grown {
        /// It does.
        Yes,
        /// It does not.
        No,
        /// Nobody can look.
        Unknown,
    }
}

/// Whether a session that is to be continued holds the text. What it began with, it holds wherever it can be continued at
/// all. Where nobody can tell, it counts as not told: a text that is told twice is better than one that is lost.
#[must_use]
pub const fn holds(telling: Telling, grown: Grown) -> bool {
    match (telling, grown) {
        (Telling::Never, _) | (_, Grown::No) | (Telling::Later, Grown::Unknown) => false,
        (Telling::AtItsBeginning, Grown::Yes | Grown::Unknown) | (Telling::Later, Grown::Yes) => true,
    }
}
