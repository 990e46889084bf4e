//! A second conversation, under another key or none, that begins as a copy of the first one.

use crate::decide::{Holds, Workdir};
use crate::error::RewindError;
use crate::{
    AuditEvent, Binding, BranchOrder, ForkRequest, Forked, Label, Moment, RunId, SessionKey, SessionName,
};

use super::Lifecycle;
use super::kept::Kept;
use super::rewind::{counters_at, holds};

impl Lifecycle {
    /// Makes a copy of a key's conversation, whole or up to a checkpoint, and binds it to another key of the same agent, which
    /// has none, or to no key at all. The original stays as it is, in force in its own key. Nothing is run but the agent's version
    /// probe.
    ///
    /// # Errors
    /// [`RewindError`]: a run of one of the keys is under way or unsettled, the new one has a session, the conversation cannot be
    /// branched, or a record cannot be read or written. Nothing was changed.
    ///
    /// # Cancel safety
    /// A dropped future may leave a session in the new key's state dir, or the agent's own place, that nothing leads to.
    #[tracing::instrument(skip_all, fields(from = %request.from, to = request.to.as_ref().map(tracing::field::display)))]
    pub async fn fork(&self, request: &ForkRequest) -> Result<Forked, RewindError> {
        let ForkRequest { from, to, at, cwd, name, enter_project } = request;
        if let Some(to) = to.as_ref().filter(|to| from == *to || from.agent != to.agent) {
            return Err(RewindError::NotAForkOf { from: from.clone(), to: to.clone() });
        }
        let nothing = || RewindError::NoSession { key: from.clone() };
        // A name that was mistyped leaves nothing behind.
        if self.store.load(from).await.is_ok_and(|stored| stored.is_none()) {
            return Err(nothing());
        }
        let (original, mut heir) = self.keep_both(from, to.as_ref()).await?;
        // What a dead runner left may still run.
        let left =
            [Some(&original), heir.as_ref()].into_iter().flatten().find(|of| of.record.in_flight.is_some());
        // Until a run looked, nobody knows which session the original goes on with.
        if let Some(left) = left.or_else(|| original.rival().map(|_| &original)) {
            return Err(RewindError::Unsettled { key: left.record.key.clone() });
        }
        let grounds = self.grounds(from, cwd).await?;
        let mut into = None;
        if let Some(heir) = &heir {
            let key = &heir.record.key;
            let new_grounds = self.grounds(key, cwd).await?;
            let begun = heir.record.binding.is_some();
            if begun || self.present_spot(&new_grounds, &heir.record).await.is_some() {
                return Err(RewindError::Taken { key: key.clone() });
            }
            into = Some(new_grounds);
        }
        let (of, label) = match at {
            None => {
                let of = original.present().cloned().ok_or_else(nothing)?;
                let spot = self.present_spot(&grounds, &original.record).await;
                let step = RunId::new(self.host.random_id());
                (Some(of), Label { spot, ..Label::new(from.clone(), step, Moment::Asked) })
            }
            Some(id) => {
                let checkpoints = self.checkpoints(from).await?;
                let checkpoint = checkpoints.into_iter().find(|checkpoint| checkpoint.id == *id);
                let no_such = || RewindError::NoSuchCheckpoint { key: from.clone(), checkpoint: *id };
                (None, checkpoint.ok_or_else(no_such)?.label)
            }
        };
        let keep = label.spot.clone().ok_or_else(nothing)?;
        let of = of.unwrap_or_else(|| self.session_of(&grounds, &original.record, &keep).1);
        if keep.turns == 0 {
            let why = "nobody can tell what its session held".to_owned();
            return Err(RewindError::Unsupported { why });
        }
        let began = of.folder();
        let is_there = match began.path.as_path() {
            Some(path) => self.host.folder(path).await.is_ok(),
            None => false,
        };
        if grounds.folder.relation_to(began, is_there) == Workdir::OtherProject && !enter_project {
            let (began, here) = (began.path.to_string(), grounds.folder.path.to_string());
            return Err(RewindError::OtherProject { began, here });
        }
        let look = grounds.look(&of).await;
        let counters = counters_at(&original.record, &label, (&of, &keep), look.as_ref());
        let order = BranchOrder {
            query: grounds.query(&of.native_id, grounds.folder_path()),
            keep: &keep,
            into: into.as_ref().and_then(|into| into.state_dir.as_deref()),
            seed: self.host.random_id(),
            now: self.host.now(),
        };
        let branch = self.branch(&grounds, order).await?;
        let mut warnings = Vec::new();
        if let (Some(heir), Some(into)) = (&mut heir, &into) {
            // A copy of all that it holds cannot be continued either; one of less may.
            let poisoned = of.poisoned.clone().filter(|_| holds(&keep, look.as_ref()) == Holds::Same);
            let lives_elsewhere = of.folder().path != grounds.folder.path;
            let lives_in = if lives_elsewhere { Some(grounds.folder.clone()) } else { of.lives_in.clone() };
            let binding = self.branch_binding(into, &of, (&branch, counters));
            heir.put_in_force(Some(Binding { lives_in, poisoned, ..binding }), "forked", self.host.now());
            warnings.extend(heir.begins_anew());
            if heir.record.name.is_none() {
                heir.record.name = name.as_ref().map(SessionName::as_str).map(str::to_owned);
            }
            if let Err(error) = self.must_write(heir).await {
                // A record that may lead to it is right or wrong with it.
                if !heir.in_doubt {
                    self.prune(&grounds, order, &branch).await;
                }
                return Err(error);
            }
        }
        let mut event = AuditEvent::new(self.host.now(), RunId::new(self.host.random_id()), "forked");
        event.detail = Some(match to {
            Some(_) => format!("from {} of {from}, {} prompts", of.native_id, branch.turns),
            None => format!("{} prompts, into {}, which has no key", branch.turns, branch.id),
        });
        event.after = Some(if to.is_some() { branch.id.clone() } else { of.native_id.clone() });
        event.before = to.is_none().then(|| of.native_id.clone());
        let audit_seq = self.append_or_warn(to.as_ref().unwrap_or(from), &event, &mut warnings).await;
        Ok(Forked { session: branch.id, of: of.native_id, kept: branch.turns, audit_seq, warnings })
    }

    /// Both records, held in the same order by everybody.
    async fn keep_both(
        &self,
        from: &SessionKey,
        to: Option<&SessionKey>,
    ) -> Result<(Kept, Option<Kept>), RewindError> {
        match to {
            None => Ok((self.keep(from).await?, None)),
            Some(to) if from < to => {
                let first = self.keep(from).await?;
                Ok((first, Some(self.keep(to).await?)))
            }
            Some(to) => {
                let first = self.keep(to).await?;
                Ok((self.keep(from).await?, Some(first)))
            }
        }
    }
}
