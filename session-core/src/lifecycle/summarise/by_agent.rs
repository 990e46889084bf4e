//! Asks the agent for a summary, in a copy of the conversation that is gone afterwards.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::conversation::free_tag;
use crate::error::{Chain, RunError};
use crate::summary::{Told, framed};
use crate::{
    Binding, BranchOrder, BranchRefusal, Branched, CloseError, Closing, Counters, LlmRequest, LlmResult,
    NoSink, NotByAgent, Phase, RecipePart, RecipeSeed, ResumePolicy, SessionKey, SessionRef, Spot,
    SummaryRequest, SummarySource, Warning,
};

use super::super::Lifecycle;
use super::super::hold::Hold;
use super::super::tell::Subject;
use crate::summary::Rendered;

type Asked = Result<(Rendered, SummarySource), NotByAgent>;

impl Lifecycle {
    /// Asks the agent. Whatever comes of it, the copy is removed; where that fails, a warning says so.
    pub(super) async fn by_agent(
        &self,
        request: &SummaryRequest,
        subject: &Subject<'_>,
        told: Told<'_>,
        held: bool,
    ) -> (Asked, Vec<Warning>) {
        // A copy of a conversation that goes on meanwhile would be one of half a turn.
        let _quiet = match held {
            true => None,
            false => match self.hold(&request.key, Duration::ZERO, &mut |_| {}).await {
                Ok(Hold::Held(lease)) => Some(lease),
                Ok(Hold::Unavailable(error)) => {
                    return (Err(NotByAgent::NotAsked(Chain(&error).to_string())), Vec::new());
                }
                Ok(Hold::Told) | Err(_) => return (Err(NotByAgent::Busy), Vec::new()),
            },
        };
        let copy = request.key.for_a_copy();
        // What a crash left of the last one.
        if let Err(error) = self.close(&copy, Closing::Cancelled).await {
            return (Err(not_closed(&error)), Vec::new());
        }
        let asked = self.ask_in(&copy, request, subject, told).await;
        let mut warnings = Vec::new();
        if let Err(error) = self.close(&copy, Closing::Done).await {
            warnings.push(Warning::CopyLeft(Chain(&error).to_string()));
        }
        let made = asked.and_then(|result| {
            let rendered = framed(&result.text, told, request.bytes);
            if result.text.trim().is_empty() {
                return Err(NotByAgent::Silent);
            }
            let used_tools = result.attempts.iter().any(|attempt| attempt.activity == "acted");
            let without_tools =
                result.recipe.is_some_and(|recipe| recipe.restored.contains(&RecipePart::Tools));
            let (usage, cost_usd) = (result.usage, result.cost_usd);
            let source = SummarySource::Agent { usage, cost_usd, without_tools, used_tools };
            warnings.extend(result.warnings);
            Ok((rendered, source))
        });
        (made, warnings)
    }

    async fn ask_in(
        &self,
        copy: &SessionKey,
        request: &SummaryRequest,
        subject: &Subject<'_>,
        told: Told<'_>,
    ) -> Result<LlmResult, NotByAgent> {
        let folder = subject.binding.folder().path.as_path();
        let cwd = request.cwd.as_deref().or(folder);
        let cwd = cwd.ok_or_else(|| NotByAgent::NotAsked("its folder has no name here".to_owned()))?;
        let dir = self.store.state_dir(copy).await;
        let dir = dir.map_err(|error| NotByAgent::NotAsked(Chain(&error).to_string()))?;
        let dir = dir.ok_or(NotByAgent::NoStateDir)?;
        let mut ask = LlmRequest::new(question(request, told))
            .cwd(cwd)
            .session(SessionRef::new(copy.mailbox.as_str(), copy.agent.as_str()))
            .limits(request.limits.clone())
            .cancel(request.cancel.clone());
        ask.model.clone_from(&request.model);
        ask.scratch = true;
        ask.seed = Some(Box::new(RecipeSeed {
            tools: Some(Vec::new()),
            ..RecipeSeed::new("summary", env!("CARGO_PKG_VERSION"))
        }));
        let ask = if self.branch_into(copy, &dir, subject, told).await? {
            ask.resume(ResumePolicy::Require)
        } else {
            let key = &request.key;
            ask.fork_of(SessionRef::new(key.mailbox.as_str(), key.agent.as_str()))
        };
        Box::pin(self.run_with(ask, &mut NoSink)).await.map_err(|error| match error {
            RunError::Failed { why, .. } | RunError::Refused { why } => NotByAgent::Failed(why),
            RunError::Cancelled => NotByAgent::Failed(crate::decide::Why::Cancelled),
            RunError::Busy { .. } => NotByAgent::Busy,
            error => NotByAgent::NotAsked(Chain(&error).to_string()),
        })
    }

    /// Makes a branch up to the last turn that counts, and binds it to the copy's key. Answers whether it did; where the catalog
    /// makes none, the agent can copy all of the conversation by itself.
    async fn branch_into(
        &self,
        copy: &SessionKey,
        dir: &Path,
        subject: &Subject<'_>,
        told: Told<'_>,
    ) -> Result<bool, NotByAgent> {
        let binding = &subject.binding;
        let keep = Spot { native_id: binding.native_id.clone(), turns: told.span.1, bytes: None };
        let (seed, now) = (self.host.random_id(), self.host.now());
        let order = BranchOrder { query: subject.query(), keep: &keep, into: Some(dir), seed, now };
        let branch = match subject.catalog.branch(order).await {
            Ok(Branched::Done(branch)) => branch,
            Ok(Branched::Refused(BranchRefusal::Unsupported(_))) if told.span.1 == told.turns => {
                return Ok(false);
            }
            Ok(Branched::Refused(refusal)) => return Err(NotByAgent::NoCopy(refusal.to_string())),
            Err(error) => return Err(NotByAgent::NoCopy(Chain(&error).to_string())),
        };
        let not_noted = |error: String| NotByAgent::NotAsked(error);
        let mut kept = self.keep_settled(copy).await.map_err(|error| not_noted(Chain(&error).to_string()))?;
        kept.record.binding = Some(Binding {
            native_id: branch.id,
            phase: Phase::Confirmed,
            created_at: now,
            used_at: now,
            counters: Counters::default(),
            forked_from: Some(binding.native_id.clone()),
            poisoned: None,
            home: None,
            ..binding.clone()
        });
        self.write_down(&mut kept).await.map_err(|error| not_noted(Chain(&error).to_string()))?;
        Ok(true)
    }
}

fn not_closed(error: &CloseError) -> NotByAgent {
    match error {
        CloseError::Busy { .. } => NotByAgent::Busy,
        error => NotByAgent::NotAsked(Chain(error).to_string()),
    }
}

/// What the agent is asked.
fn question(request: &SummaryRequest, told: Told<'_>) -> String {
    let mut text = format!(
        "Summarise this conversation, so that somebody who has not seen it can go on with the work: what was asked for, what was \
         decided and why, what was done to which files, what was tried and did not work, how things stand now, and what is \
         still to do. Keep the names of files, commands and errors as they are. Use no tools, change nothing, and go on with \
         nothing. Answer with the summary alone, in at most {} bytes.",
        request.bytes.saturating_sub(SummaryRequest::MIN_BYTES / 2)
    );
    if told.span.0 > 1 {
        let before = told.span.0 - 1;
        write!(text, "\n\nLeave out the first {before} prompts of the user and what came of them: it is about what came after.")
            .expect("a string takes all");
    }
    if let Some(words) = told.steering {
        let tag = free_tag("what-matters", std::iter::once(words));
        write!(
            text,
            "\n\nWhat stands between the tags says what matters to whoever will read it. Heed it in what you write; it asks \
             for no other work.\n<{tag}>\n{}\n</{tag}>",
            words.replace('\0', " ")
        )
        .expect("a string takes all");
    }
    text
}
