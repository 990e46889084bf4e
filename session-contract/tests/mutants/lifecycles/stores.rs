//! Stores that do to records what a broken lifecycle would.

use std::path::{Path, PathBuf};

use session_core::decide::{Why, condemns};
use session_core::error::StoreError;
use session_core::*;

type Answer<T> = std::result::Result<T, StoreError>;

/// What is done to what goes in and out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bend {
    record: fn(&mut SessionRecord),
    save: fn(&SessionKey, &Document) -> Option<Document>,
    load: fn(&SessionKey, Document) -> Option<Document>,
    event: fn(&AuditEvent) -> Option<AuditEvent>,
    leases: bool,
    guards: bool,
    removes: bool,
    /// Where a key looks.
    place: fn(&SessionKey) -> SessionKey,
}

const SOUND: Bend = Bend {
    record: |_| {},
    save: |_, document| Some(document.clone()),
    load: |_, document| Some(document),
    event: |event| Some(event.clone()),
    leases: true,
    guards: true,
    removes: true,
    place: Clone::clone,
};

#[derive(Debug)]
pub(crate) struct Bent {
    inner: MemoryStore,
    bend: Bend,
}

impl Bent {
    pub(crate) fn new(bend: Bend) -> Self {
        Self { inner: MemoryStore::new(), bend }
    }
}

#[async_trait]
impl SessionStore for Bent {
    fn capabilities(&self) -> StoreCapabilities {
        self.inner.capabilities()
    }
    async fn load(&self, key: &SessionKey) -> Answer<Option<Stored>> {
        let stored = self.inner.load(&(self.bend.place)(key)).await?;
        Ok(stored.and_then(|Stored { document, revision }| {
            Some(Stored { document: (self.bend.load)(key, document)?, revision })
        }))
    }
    async fn save(
        &self,
        key: &SessionKey,
        document: &Document,
        guard: &Guard,
        lease: Option<&Lease>,
    ) -> Answer<Saved> {
        let bent = match codec::decode(document, key) {
            codec::Decoded::Record(mut record) => {
                (self.bend.record)(&mut record);
                codec::encode(&record)
            }
            _ => document.clone(),
        };
        let Some(document) = (self.bend.save)(key, &bent) else {
            return Ok(Saved::Done(Revision::new("lost")));
        };
        let guard = if self.bend.guards { guard } else { &Guard::Any };
        self.inner.save(&(self.bend.place)(key), &document, guard, lease).await
    }
    async fn remove(&self, key: &SessionKey, guard: &Guard) -> Answer<Removed> {
        if !self.bend.removes {
            return Ok(Removed::Done);
        }
        self.inner.remove(&(self.bend.place)(key), guard).await
    }
    async fn set_aside(&self, key: &SessionKey, guard: &Guard) -> Answer<Option<String>> {
        self.inner.set_aside(&(self.bend.place)(key), guard).await
    }
    async fn list(&self, options: &ListOptions) -> Answer<Page<SessionKey>> {
        self.inner.list(options).await
    }
    async fn append_audit(&self, key: &SessionKey, event: &AuditEvent) -> Answer<AuditSeq> {
        match (self.bend.event)(event) {
            Some(event) => self.inner.append_audit(key, &event).await,
            None => Ok(AuditSeq(1)),
        }
    }
    async fn audit(&self, key: &SessionKey, after: Option<AuditSeq>) -> Answer<Vec<AuditEntry>> {
        self.inner.audit(key, after).await
    }
    async fn lease(&self, key: &SessionKey, holder: &Holder) -> Answer<LeaseOutcome> {
        if self.bend.leases {
            return self.inner.lease(key, holder).await;
        }
        Ok(LeaseOutcome::Held(Lease::new(1, ())))
    }
    async fn state_dir(&self, key: &SessionKey) -> Answer<Option<PathBuf>> {
        self.inner.state_dir(key).await
    }
    async fn remove_state(&self, key: &SessionKey, lease: &Lease) -> Answer<bool> {
        self.inner.remove_state(key, lease).await
    }
    async fn state_size(&self, key: &SessionKey) -> Answer<Option<StateSize>> {
        self.inner.state_size(key).await
    }
    async fn leftovers(&self, options: &LeftoverOptions) -> Answer<Vec<Leftover>> {
        self.inner.leftovers(options).await
    }
    async fn remove_leftover(&self, leftover: &Leftover, tombstone: &Tombstone) -> Answer<Disposed> {
        self.inner.remove_leftover(leftover, tombstone).await
    }
}

fn is_newer(document: &Document) -> bool {
    document.as_bytes().starts_with(b"{\"format\":{\"major\":900")
}

fn in_main(folder: &mut Folder) {
    folder.path = PathText::new(Path::new("/w/main"));
}

/// A mutant: what is wrong with it, the case that is meant to catch it, and the change.
pub(crate) const MUTANTS: &[(&str, &str, Bend)] = &[
    (
        "keeps one record for all mailboxes",
        "no_session_of_another_mailbox",
        Bend {
            place: |key| SessionKey { mailbox: MailboxId::new("all").unwrap(), ..key.clone() },
            load: |key, document| {
                let text = String::from_utf8(document.as_bytes().to_vec()).unwrap();
                let own = format!("\"mailbox\": \"{}\"", key.mailbox);
                let text =
                    text.replace("\"mailbox\": \"issue-0\"", &own).replace("\"mailbox\": \"issue-1\"", &own);
                Some(Document::new(text.into_bytes()))
            },
            ..SOUND
        },
    ),
    (
        "takes all sessions for sessions of one folder",
        "no_other_project_without_a_yes",
        Bend {
            record: |record| {
                record.binding.iter_mut().for_each(|binding| in_main(&mut binding.began_in));
                record.past.iter_mut().filter_map(|former| former.began_in.as_mut()).for_each(in_main);
            },
            ..SOUND
        },
    ),
    (
        "writes over newer records",
        "a_newer_record_is_left_alone",
        Bend { load: |_, document| (!is_newer(&document)).then_some(document), guards: false, ..SOUND },
    ),
    (
        "sets newer records aside",
        "a_newer_record_is_left_alone",
        Bend {
            load: |_, document| {
                Some(if is_newer(&document) { Document::new(b"?".to_vec()) } else { document })
            },
            ..SOUND
        },
    ),
    ("says that it saved, and did not", "a_good_session_is_never_lost", Bend { save: |_, _| None, ..SOUND }),
    (
        "forgets the sessions before the binding",
        "a_good_session_is_never_lost",
        Bend { record: |record| record.past.clear(), ..SOUND },
    ),
    (
        "goes back to the oldest session of a folder",
        "a_good_session_is_never_lost",
        Bend { record: |record| record.past.reverse(), ..SOUND },
    ),
    (
        "binds what only stood aside",
        "a_good_session_is_never_lost",
        Bend {
            record: |record| {
                if record.in_flight.is_none()
                    && let Some(at) = record.past.iter().rposition(|former| former.why == "stood_aside")
                    && let Some(binding) = &mut record.binding
                {
                    binding.native_id = record.past.remove(at).native_id;
                }
            },
            ..SOUND
        },
    ),
    (
        "takes a session away for any failure",
        "a_good_session_is_never_lost",
        Bend {
            record: |record| {
                if record.last_run.as_ref().is_some_and(|last| !last.ok) {
                    record.binding = None;
                }
            },
            ..SOUND
        },
    ),
    (
        "lets whatever a dead run named take the binding's place",
        "a_good_session_is_never_lost",
        Bend {
            record: |record| {
                if let Some(candidate) = &mut record.candidate {
                    candidate.replaces = true;
                    candidate.instead_of = None;
                }
            },
            ..SOUND
        },
    ),
    (
        "forgets that a session is beyond continuing",
        "a_condemned_session_is_left",
        Bend {
            record: |record| record.binding.iter_mut().for_each(|binding| binding.poisoned = None),
            ..SOUND
        },
    ),
    (
        "goes back to sessions that were given up",
        "a_condemned_session_is_left",
        Bend {
            record: |record| {
                let given_up = |code: &str| Why::from_code(code).is_some_and(condemns);
                for former in record.past.iter_mut().filter(|former| given_up(&former.why)) {
                    "other_folder".clone_into(&mut former.why);
                    former.rejoinable = true;
                }
            },
            ..SOUND
        },
    ),
    (
        "counts no failed resumes",
        "three_failures_in_a_row_are_enough",
        Bend { record: |record| record.failed_resumes = 0, ..SOUND },
    ),
    (
        "gives up after one failed resume",
        "a_good_session_is_never_lost",
        Bend { record: |record| record.failed_resumes *= 3, ..SOUND },
    ),
    ("lets two runners in", "one_runner_at_a_time", Bend { leases: false, ..SOUND }),
    (
        "forgets that a run was under way",
        "what_a_dead_runner_left_is_ended",
        Bend { record: |record| record.in_flight = None, ..SOUND },
    ),
    (
        "writes half a record",
        "what_is_stored_can_be_read",
        Bend {
            save: |_, document| {
                Some(Document::new(document.as_bytes()[..document.as_bytes().len() / 2].to_vec()))
            },
            ..SOUND
        },
    ),
    ("says that it removed, and did not", "a_closed_mailbox_is_forgotten", Bend { removes: false, ..SOUND }),
    (
        "says nothing of the end of a mailbox",
        "a_closed_mailbox_is_forgotten",
        Bend { event: |event| (!event.kind.starts_with("mailbox_")).then(|| event.clone()), ..SOUND },
    ),
    ("writes no log", "the_log_says_the_same", Bend { event: |_| None, ..SOUND }),
    (
        "leaves the reason out of the log",
        "the_log_says_the_same",
        Bend { event: |event| Some(AuditEvent { why: None, ..event.clone() }), ..SOUND },
    ),
    (
        "does not note how a run ended",
        "the_log_says_the_same",
        Bend { record: |record| record.last_run = None, ..SOUND },
    ),
];
