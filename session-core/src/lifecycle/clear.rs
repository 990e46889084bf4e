//! A new conversation in the place of one that can be rejoined, and the way back to it.

use crate::error::RewindError;
use crate::{AuditEvent, AuditSeq, Cleared, NativeId, Presence, Rejoined, RunId, SessionKey, Warning};

use super::Lifecycle;
use super::target::binding_of;

const CLEARED: &str = "cleared";
const SET_ASIDE: &str = "set_aside";

impl Lifecycle {
    /// Puts a key's conversation aside: its next run begins a new one. The old one stays as it is, can be
    /// [rejoined](Self::rejoin), and its checkpoints can be gone back to.
    ///
    /// # Errors
    /// [`RewindError`]: a run is under way, the record cannot be read or written. Nothing was changed.
    ///
    /// # Cancel safety
    /// A dropped future clears it wholly or not at all.
    #[tracing::instrument(skip_all, fields(%key))]
    pub async fn clear(&self, key: &SessionKey) -> Result<Cleared, RewindError> {
        let none = Cleared { session: None, audit_seq: None, warnings: Vec::new() };
        // A name that was mistyped leaves nothing behind.
        if self.store.load(key).await.is_ok_and(|stored| stored.is_none()) {
            return Ok(none);
        }
        let mut kept = self.keep(key).await?;
        let (step, mut warnings) = (RunId::new(self.host.random_id()), Vec::new());
        self.end_what_is_left(&mut kept, step, &mut warnings).await?;
        let Some(session) = kept.present().map(|binding| binding.native_id.clone()) else {
            kept.forget_summary();
            self.must_write(&mut kept).await?;
            return Ok(Cleared { warnings, ..none });
        };
        kept.put_in_force(None, CLEARED, self.host.now());
        self.must_write(&mut kept).await?;
        let event =
            AuditEvent { before: Some(session.clone()), ..AuditEvent::new(self.host.now(), step, CLEARED) };
        let audit_seq = self.append_or_warn(key, &event, &mut warnings).await;
        Ok(Cleared { session: Some(session), audit_seq, warnings })
    }

    /// Puts a former session of a key in force again; the one in force moves to the past and can be rejoined, too.
    ///
    /// # Errors
    /// [`RewindError`]: a run is under way, the key has no such former session, it cannot be continued any more, or the record
    /// cannot be read or written. Nothing was changed.
    ///
    /// # Cancel safety
    /// A dropped future does it wholly or not at all.
    #[tracing::instrument(skip_all, fields(%key, %session))]
    pub async fn rejoin(&self, key: &SessionKey, session: &NativeId) -> Result<Rejoined, RewindError> {
        let unknown = || RewindError::NoSuchSession { key: key.clone(), session: session.clone() };
        if self.store.load(key).await.is_ok_and(|stored| stored.is_none()) {
            return Err(unknown());
        }
        let mut kept = self.keep(key).await?;
        let former = kept.record.past.iter().rev().find(|former| former.native_id == *session);
        let former = former.cloned().ok_or_else(unknown)?;
        let refused =
            |why: String| RewindError::NotRejoinable { key: key.clone(), session: session.clone(), why };
        if !former.rejoinable {
            return Err(refused(former.why));
        }
        let binding = binding_of(&former).ok_or_else(|| refused("nobody knows where it began".to_owned()))?;
        // Its folder may be gone: then it is looked at from wherever we are.
        if let Some(folder) = binding.folder().path.as_path()
            && let Ok(grounds) = self.grounds(key, folder).await
        {
            match grounds.look(&binding).await.map(|look| look.presence) {
                Some(Presence::Missing) => return Err(refused("it is not there any more".to_owned())),
                Some(Presence::Empty | Presence::Damaged) => {
                    return Err(refused("its file holds no conversation".to_owned()));
                }
                Some(Presence::Present | Presence::Unreadable) | None => {}
            }
        }
        let (step, mut warnings) = (RunId::new(self.host.random_id()), Vec::new());
        self.end_what_is_left(&mut kept, step, &mut warnings).await?;
        let set_aside = kept.present().map(|binding| binding.native_id.clone());
        kept.put_in_force(Some(binding), SET_ASIDE, self.host.now());
        self.must_write(&mut kept).await?;
        warnings.extend(kept.begins_anew());
        let mut event = AuditEvent::new(self.host.now(), step, "rejoined");
        (event.before, event.after) = (set_aside.clone(), Some(session.clone()));
        let audit_seq = self.append_or_warn(key, &event, &mut warnings).await;
        Ok(Rejoined { session: session.clone(), set_aside, audit_seq, warnings })
    }

    pub(super) async fn append_or_warn(
        &self,
        key: &SessionKey,
        event: &AuditEvent,
        warnings: &mut Vec<Warning>,
    ) -> Option<AuditSeq> {
        self.append(key, event).await.map_err(|warning| warnings.push(warning)).ok()
    }
}
