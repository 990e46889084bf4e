//! Whole files in numbers, and what many files cost together.

use std::io::{self, Read};

use session_core::history::{Notice, SessionEntry, SessionFile, SessionSource};
use session_core::{TranscriptFormat, Usage};

use crate::fold::{Digest, Replies};

/// A session file in numbers. All of it was read.
#[derive(Debug, Clone)]
pub struct Summary {
    digest: Digest,
}

/// What [`Summary::counts`] counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Lines: empty ones too, and one that is cut off.
    pub lines: u64,
    /// Its size.
    pub bytes: u64,
    /// Prompts that were typed, commands among them, on any branch of the conversation.
    pub prompts: u64,
    /// Messages that the model still sees: those on the branch that is followed, since the last compaction.
    pub messages: u64,
    /// Prompts among them that were typed while the agent was at work, which not everybody counts as messages.
    pub queued: u64,
    /// Messages on that branch from its beginning, compactions bridged.
    pub all_messages: u64,
    /// Replies of the model, each once.
    pub replies: u64,
    /// Compactions.
    pub compactions: u64,
    /// Lines that are no records.
    pub skipped: u64,
    /// Tokens, each reply once.
    pub usage: Usage,
    /// Those of them that were not copied from another session by a fork.
    pub usage_new: Usage,
    /// Tokens of helpers.
    pub usage_of_sidechains: Usage,
}

impl Summary {
    /// Reads a whole file, on so many threads, in memory that does not grow with its lines.
    ///
    /// # Errors
    /// What reading the file ends with.
    pub fn read(format: &dyn TranscriptFormat, file: impl Read + Send, threads: usize) -> io::Result<Self> {
        let mut digest = Digest::default();
        // From the beginning, nothing is missing.
        digest.fold_on(threads, format, file)?;
        Ok(Self { digest })
    }

    /// Its numbers.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let digest = &self.digest;
        Counts {
            lines: digest.lines,
            bytes: digest.bytes,
            prompts: digest.turns,
            messages: digest.messages,
            queued: digest.queued,
            all_messages: digest.all_messages,
            replies: digest.replies,
            compactions: digest.compactions,
            skipped: digest.skipped,
            usage: digest.usage,
            usage_new: digest.usage_new,
            usage_of_sidechains: digest.usage_of_sidechains,
        }
    }

    /// What a list shows of it.
    #[must_use]
    pub fn entry(&self, file: &SessionFile, source: SessionSource) -> SessionEntry {
        self.digest.entry(file, source)
    }

    /// Titles as they were given last: by a user, by the agent, and as a summary.
    #[must_use]
    pub fn titles(&self) -> [Option<&str>; 3] {
        let notes = &self.digest.notes;
        [&notes.given, &notes.made_up, &notes.summary]
            .map(|title| title.as_deref().filter(|text| !text.is_empty()))
    }

    /// The last prompt, as the agent noted it, where it did.
    #[must_use]
    pub fn last_noted_prompt(&self) -> Option<&str> {
        self.digest.notes.last_noted.as_deref()
    }

    /// What was left out or put right, and how many more there were than those that are told.
    #[must_use]
    pub fn notices(&self, path: &std::path::Path) -> (Vec<Notice>, u64) {
        self.digest.notices(path)
    }
}

/// What many files cost together: a reply that a fork or a copy repeats counts once.
#[derive(Debug, Clone, Default)]
pub struct Bill {
    replies: Replies,
}

impl Bill {
    /// Adds a file.
    pub fn add(&mut self, file: &Summary) {
        self.replies.take_all(file.digest.spent());
    }

    /// Adds all files of another bill.
    pub fn add_all(&mut self, other: &Self) {
        self.replies.take_all(&other.replies);
    }

    /// Tokens of main conversations.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.replies.sum(|spent| !spent.sidechain)
    }

    /// Tokens of helpers.
    #[must_use]
    pub fn usage_of_sidechains(&self) -> Usage {
        self.replies.sum(|spent| spent.sidechain)
    }
}
