//! Checks a request before anything is touched.

use std::path::Path;

use crate::decide::Policy;
use crate::error::RequestError;
use crate::seed::is_model;
use crate::{
    Agent, AgentId, LlmRequest, ResumeMode, ResumePolicy, RunId, SessionKey, SessionName, SessionRef,
};

use super::Lifecycle;

/// A request that can be run.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) request: &'a LlmRequest,
    pub(super) run: RunId,
    pub(super) key: SessionKey,
    pub(super) name: Option<SessionName>,
    pub(super) agent: &'a Agent,
    pub(super) cwd: &'a Path,
    pub(super) policy: Policy,
    pub(super) fork_of: Option<SessionKey>,
}

impl Lifecycle {
    pub(super) fn admit<'a>(&'a self, request: &'a LlmRequest) -> Result<Job<'a>, RequestError> {
        if request.prompt.trim().is_empty() {
            return Err(RequestError::EmptyPrompt);
        }
        if let Some(at) = request.prompt.find('\0') {
            return Err(RequestError::PromptWithNul { at });
        }
        let session = request.session.as_ref().ok_or(RequestError::NoSession)?;
        let key = key_of(session)?;
        let name = session.name.as_ref().map(SessionName::new).transpose().map_err(RequestError::Name)?;
        if key.is_reserved() && !request.scratch {
            return Err(RequestError::Reserved { mailbox: key.mailbox.as_str().to_owned() });
        }
        let fork_of = request.fork_of.as_ref().map(key_of).transpose()?;
        request.seed.as_ref().map_or(Ok(()), |seed| seed.check()).map_err(RequestError::Seed)?;
        if request.mode == ResumeMode::RerunRecipe {
            let against = match (request.resume, &fork_of) {
                (ResumePolicy::Require, _) => Some("where a resume is required"),
                (_, Some(_)) => Some("as a copy of another conversation"),
                (ResumePolicy::Prefer | ResumePolicy::Never, None) => None,
            };
            against.map_or(Ok(()), |against| Err(RequestError::Rerun { against }))?;
        }
        if let Some(from) = fork_of.as_ref().filter(|from| from.agent != key.agent) {
            return Err(RequestError::ForkAcrossAgents { from: from.agent.clone(), to: key.agent });
        }
        if let Some(model) = request.model.as_ref().filter(|model| !is_model(model)) {
            return Err(RequestError::Model { model: model.clone() });
        }
        let agent = self.registered(&key.agent)?;
        Ok(Job {
            request,
            run: RunId::new(self.host.random_id()),
            name,
            agent,
            cwd: request.cwd.as_deref().ok_or(RequestError::NoFolder)?,
            policy: match request.mode {
                _ if !self.setting.is_on() => Policy::Never,
                ResumeMode::RerunRecipe => Policy::Rerun,
                ResumeMode::ReplayTranscript => request.resume.into(),
            },
            fork_of,
            key,
        })
    }

    /// The agent of this id.
    pub(super) fn registered(&self, agent: &AgentId) -> Result<&Agent, RequestError> {
        self.agents.get(agent).ok_or_else(|| RequestError::UnknownAgent {
            agent: agent.clone(),
            known: self.agents.keys().map(AgentId::as_str).collect::<Vec<_>>().join(", "),
        })
    }
}

fn key_of(session: &SessionRef) -> Result<SessionKey, RequestError> {
    SessionKey::new(&session.mailbox, &session.agent).map_err(RequestError::Name)
}
