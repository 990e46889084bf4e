//! Which session is meant: what is looked at, in which order, and what one look comes to.

use super::facts::{Consent, Reach, Workdir};

fact! {
    /// By what sign a session was found. Signs are tried in this order.
    Sign {
        /// Its exact id.
        Id,
        /// The key that it is bound to.
        Key,
        /// The roster of what runs in the background.
        Roster,
        /// Its whole name or title, in any letter case.
        Title,
        /// The beginning of its id.
        Prefix,
        /// Words of its title or of its first prompt.
        Words,
        /// It belongs to this project.
        Project,
        /// Its file, in a state dir that no record leads to it from.
        Tree,
    }
}

fact! {
    /// What the caller gave to find a session by.
    Given {
        /// An id.
        Id,
        /// A key.
        Key,
        /// A text that looks like an id of some agent.
        IdLike,
        /// Any other text.
        Text,
        /// Nothing.
        Nothing,
    }
}

fact! {
    /// How many sessions one look found.
    Hits {
        /// None.
        None,
        /// One.
        One,
        /// Several.
        Many,
    }
}

fact! {
    /// Whether a session is one to be continued.
    Standing {
        /// It is.
        Resumable,
        /// It cannot be continued, as it is.
        Unresumable,
        /// It is the caller's own session, or a helper's.
        Aside,
    }
}

/// All that [`judge`] looks at. Standing and folder are those of the one session, where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocateFacts {
    /// By what sign.
    pub sign: Sign,
    /// How many were found.
    pub hits: Hits,
    /// Whether it is one to be continued.
    pub standing: Standing,
    /// How the caller's folder relates to the session's.
    pub workdir: Workdir,
    /// From where the installed version finds a session.
    pub reach: Reach,
    /// Whether the caller said yes to a session of another project.
    pub consent: Consent,
}

/// What a look comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// Nothing; the next sign is tried.
    GoOn,
    /// This is the session.
    Found,
    /// This is the session, and its version finds it here only once it is relocated.
    Relocate,
    /// This is the session, and it belongs to another project: the caller has to say yes.
    AskProject,
    /// The caller has to choose.
    Offer,
    /// This is the session, and it cannot be continued.
    CannotResume,
}

/// Whether a sign is tried for what was asked.
#[must_use]
pub const fn tries(asked: Given, sign: Sign) -> bool {
    match asked {
        Given::Id => matches!(sign, Sign::Id | Sign::Tree),
        Given::Key => matches!(sign, Sign::Key),
        Given::IdLike => !matches!(sign, Sign::Project),
        Given::Text => !matches!(sign, Sign::Id | Sign::Tree | Sign::Project),
        Given::Nothing => matches!(sign, Sign::Project),
    }
}

/// Whether a sign names one session. The others only propose some: what cannot be continued is not among them.
#[must_use]
pub const fn names(sign: Sign) -> bool {
    matches!(sign, Sign::Id | Sign::Key | Sign::Tree)
}

/// From where a version finds a session that looks only where sessions of a folder are filed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FoundFrom {
    /// They are not filed so: it is found by how the folders relate.
    AsFolders,
    /// From the caller's folder.
    Here,
    /// From all of the caller's repository.
    Repository,
    /// Not from here.
    Elsewhere,
}

impl FoundFrom {
    /// By how the caller's folder relates to the one that a file is filed under.
    #[must_use]
    pub const fn folder(relation: Workdir) -> Self {
        match relation {
            Workdir::Same => Self::Here,
            Workdir::SameRepository => Self::Repository,
            Workdir::Gone | Workdir::Moved | Workdir::OtherProject => Self::Elsewhere,
        }
    }

    /// Whether a version finds the session from the caller's folder, which relates so to that of the session.
    #[must_use]
    pub const fn is_found(self, reach: Reach, workdir: Workdir) -> bool {
        match self {
            Self::AsFolders => reaches(reach, workdir),
            Self::Here => true,
            Self::Repository => !matches!(reach, Reach::SameFolder),
            Self::Elsewhere => matches!(reach, Reach::Anywhere),
        }
    }
}

/// How the folders relate for a version that looks only where sessions of its folder are filed, by whether the file lies in
/// the place of this one; `None`: nobody can tell. The place counts, such as where a relocation was killed before it was noted,
/// or was noted by a version that finds it from anywhere.
#[must_use]
pub const fn refiled(reach: Reach, workdir: Workdir, is_filed_here: Option<bool>) -> Workdir {
    match (reach, workdir, is_filed_here) {
        (Reach::SameFolder, Workdir::Same, Some(false)) => Workdir::SameRepository,
        (Reach::SameFolder, Workdir::SameRepository | Workdir::Gone | Workdir::Moved, Some(true)) => {
            Workdir::Same
        }
        _ => workdir,
    }
}

/// Whether of the one session that a sign led to it is told why it cannot be continued. The beginning of an id is typed for one
/// session, as the whole id is; a title or words may well mean another one.
#[must_use]
pub const fn tells_why_not(sign: Sign) -> bool {
    names(sign) || matches!(sign, Sign::Prefix)
}

/// Whether a session that such a sign led to may be proposed at all.
#[must_use]
pub const fn proposes(sign: Sign, standing: Standing, workdir: Workdir, consent: Consent) -> bool {
    if !matches!(standing, Standing::Resumable) {
        return false;
    }
    let elsewhere = matches!(workdir, Workdir::OtherProject) && matches!(consent, Consent::No);
    match sign {
        // Half-remembered words lead into no other project.
        Sign::Words => !elsewhere,
        // What moved is told apart.
        Sign::Project => matches!(workdir, Workdir::Same | Workdir::SameRepository),
        Sign::Id | Sign::Key | Sign::Roster | Sign::Title | Sign::Prefix | Sign::Tree => true,
    }
}

/// Decides what a look comes to. Total: every combination of facts has an answer.
#[must_use]
pub const fn judge(facts: LocateFacts) -> Judgement {
    match facts.hits {
        Hits::None => return Judgement::GoOn,
        Hits::Many => return Judgement::Offer,
        Hits::One => {}
    }
    if !proposes(facts.sign, facts.standing, facts.workdir, facts.consent) {
        return if tells_why_not(facts.sign) { Judgement::CannotResume } else { Judgement::GoOn };
    }
    // Half-remembered words, and being near, are no name: even one session is only proposed.
    if matches!(facts.sign, Sign::Words | Sign::Project) {
        return Judgement::Offer;
    }
    if matches!(facts.workdir, Workdir::OtherProject) && matches!(facts.consent, Consent::No) {
        return Judgement::AskProject;
    }
    if reaches(facts.reach, facts.workdir) { Judgement::Found } else { Judgement::Relocate }
}

/// Whether a version finds a session from a folder that relates so to the session's.
#[must_use]
pub const fn reaches(reach: Reach, workdir: Workdir) -> bool {
    matches!(
        (reach, workdir),
        (Reach::Anywhere, _) | (_, Workdir::Same) | (Reach::Repository, Workdir::SameRepository)
    )
}

/// What it comes to when no sign led to a session: whether something was named that is not there.
#[must_use]
pub const fn is_gone(asked: Given) -> bool {
    matches!(asked, Given::Id | Given::Key | Given::IdLike)
}
