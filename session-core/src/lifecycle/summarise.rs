//! Summaries: read the transcript, or have the agent asked in a copy of the conversation.

mod by_agent;
mod place;

use crate::error::{CatalogError, HandOverError, SummaryError};
use crate::history::{PageQuery, SessionSource, TranscriptPage};
use crate::summary::{Digest, PAGE_TURNS, Told, tell};
use crate::{
    AuditEvent, AuditSeq, RunId, SessionKey, Summary, SummaryBy, SummaryRequest, SummarySource, TurnSpan,
    Warning,
};

use super::Lifecycle;
use super::tell::Subject;

impl Lifecycle {
    /// Summarises the conversation in force for a key, or a part of it, as a bounded text. The conversation is not touched;
    /// what was done is told in the key's audit log.
    ///
    /// # Errors
    /// [`SummaryError`]: the request asks for what cannot be, nothing is bound to the key, or it cannot be read.
    ///
    /// # Cancel safety
    /// A dropped future ends the agent that it asked, and may leave the copy that this one was asked in: no list shows it, and
    /// the next summary of the key by its agent, or a sweep, removes it.
    pub async fn summarise(&self, request: &SummaryRequest) -> Result<Summary, SummaryError> {
        request.check()?;
        let mut summary = self.summary(request, false).await?;
        let told = self.told("summarised", &request.key, &summary, None).await;
        summary.warnings.extend(told.err());
        Ok(summary)
    }

    /// Makes a summary. `held`: the lease of the key is the caller's.
    async fn summary(&self, request: &SummaryRequest, held: bool) -> Result<Summary, SummaryError> {
        let unread = |source| SummaryError::Read { key: request.key.clone(), source };
        let subject = self.subject(&request.key).await.map_err(unread)?;
        let (digest, turns) = self.digest(request, &subject).await?;
        let no_turns = || SummaryError::Span { key: request.key.clone(), span: request.span, turns };
        let span = request.span.of(turns).ok_or_else(no_turns)?;
        let told = Told { from: &request.key.agent, turns, span, steering: request.steering.as_deref() };
        let (rendered, source, warnings) = match request.by {
            SummaryBy::Text => (tell(&digest, told, request.bytes), SummarySource::Text, Vec::new()),
            SummaryBy::Agent => {
                let (asked, warnings) = self.by_agent(request, &subject, told, held).await;
                match asked {
                    Ok((rendered, source)) => (rendered, source, warnings),
                    Err(why) => {
                        tracing::warn!(key = %request.key, %why, "no agent made the summary; it is put together");
                        (tell(&digest, told, request.bytes), SummarySource::TextInstead(why), warnings)
                    }
                }
            }
        };
        Ok(Summary {
            text: rendered.text,
            source,
            key: request.key.clone(),
            session: subject.binding.native_id,
            turns,
            span,
            left_out: rendered.left_out,
            cut: rendered.cut,
            warnings,
        })
    }

    /// What a summary is put together from, and how many turns there are.
    async fn digest(
        &self,
        request: &SummaryRequest,
        subject: &Subject<'_>,
    ) -> Result<(Digest, u64), SummaryError> {
        let unread = |source| SummaryError::Read { key: request.key.clone(), source };
        let failed = |error| unread(HandOverError::Catalog(error));
        let (id, catalog) = (&subject.binding.native_id, subject.catalog);
        let look = catalog.inspect(subject.query()).await.map_err(failed)?;
        let path = look.path.unwrap_or_default();
        let source = SessionSource { path, state_dir: subject.state_dir.clone() };
        let window = match request.span {
            TurnSpan::Whole => None,
            span => {
                let mut turns = 0;
                let mut count = |page: &TranscriptPage| {
                    let begins = page.entries.iter().filter(|located| located.entry.begins_turn());
                    turns += begins.count() as u64;
                    true
                };
                pages(subject, &source, &mut count).await.map_err(failed)?;
                let no_turns = || SummaryError::Span { key: request.key.clone(), span, turns };
                let (first, last) = span.of(turns).ok_or_else(no_turns)?;
                Some((first, last, turns))
            }
        };
        let mut digest = Digest::new(request.bytes, window);
        match pages(subject, &source, &mut |page| digest.page(&page.entries)).await {
            Ok(()) => {}
            Err(error) if error.is_unsupported() && window.is_none() => {
                let said = catalog.last_said(subject.query(), request.bytes).await.map_err(failed)?;
                digest.said(&said);
            }
            Err(error) => return Err(failed(error)),
        }
        let restored = match catalog.restore(id, &source).await {
            Ok(restored) => Some(restored),
            Err(error) if error.is_unsupported() => None,
            Err(error) => return Err(failed(error)),
        };
        let turns = digest.finish(restored.as_ref());
        Ok((digest, turns))
    }

    /// Tells the audit log of a key what was made of a summary.
    async fn told(
        &self,
        kind: &str,
        key: &SessionKey,
        summary: &Summary,
        other: Option<&SessionKey>,
    ) -> Result<AuditSeq, Warning> {
        let mut event = AuditEvent::new(self.host.now(), RunId::new(self.host.random_id()), kind);
        event.before = (*key == summary.key).then(|| summary.session.clone());
        event.after.clone_from(&event.before);
        if kind == super::ledger::COMPACTED {
            event.after = None;
        }
        let by = match &summary.source {
            SummarySource::Text => "from its transcript".to_owned(),
            SummarySource::Agent { .. } => "by the agent".to_owned(),
            SummarySource::TextInstead(why) => format!("from its transcript, as {why}"),
        };
        let ((first, last), bytes) = (summary.span, summary.text.len());
        let mut detail = format!("turns {first} to {last} of {}, in {bytes} bytes, {by}", summary.turns);
        if let Some(other) = other {
            let word = if *key == summary.key { "to" } else { "from" };
            detail = format!("{word} {other}: {detail}");
        }
        event.detail = Some(detail);
        self.append(key, &event).await
    }
}

/// Reads a transcript from its end, page by page, as long as more is wanted.
async fn pages(
    subject: &Subject<'_>,
    source: &SessionSource,
    wants_more: &mut (dyn FnMut(&TranscriptPage) -> bool + Send),
) -> Result<(), CatalogError> {
    let mut query = PageQuery::Last { turns: PAGE_TURNS };
    loop {
        let page = subject.catalog.page(&subject.binding.native_id, source, &query).await?;
        let more = wants_more(&page);
        match page.before.filter(|_| more) {
            None => return Ok(()),
            Some(cursor) => query = PageQuery::Before { cursor, turns: PAGE_TURNS },
        }
    }
}
