//! One answered turn: its lines on standard output and its records in the transcript.

use serde_json::{Value, json};

use super::args::{Args, Format};
use super::lines::{self, Answered, TURN_COST, new_uuid, now};
use super::transcript::Saved;
use super::{Opened, Player, Stop};
use crate::ContextReply;
use crate::fake_agent::script::{ClaudeStep, StopAfter, ToolUse};
use crate::fake_agent::template::expand;

/// The model of a session that nobody chose one for.
const DEFAULT_MODEL: &str = "claude-opus-5-5";

pub(super) struct Turn<'a> {
    player: &'a mut Player,
    args: &'a Args,
    step: &'a ClaudeStep,
    session: Opened,
    saved: Saved,
    model: String,
    /// The last record of the chain.
    leaf: Option<String>,
    /// The lines so far, for the formats that print them at the end.
    events: Vec<Value>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(player: &'a mut Player, args: &'a Args, step: &'a ClaudeStep, session: Opened) -> Self {
        let keeps = step.persist && !args.unsaved;
        Self {
            saved: Saved::to(keeps.then(|| session.transcript.clone())),
            // A resumed session keeps the model of its last turn.
            model: args.model.as_deref().or(session.history.model()).unwrap_or(DEFAULT_MODEL).to_owned(),
            leaf: session.history.leaf().map(str::to_owned),
            player,
            args,
            step,
            session,
            events: Vec::new(),
        }
    }

    pub(super) fn play(mut self) -> Result<(), Stop> {
        self.begin()?;
        if self.step.stop_after == Some(StopAfter::Init) {
            return Ok(());
        }
        self.save_prompt();
        if self.step.stop_after == Some(StopAfter::User) {
            return Ok(());
        }
        let mut model_calls = 1;
        if let Some(tool) = &self.step.tool {
            self.use_tool(tool)?;
            model_calls += 1;
        }
        let text = self.answer();
        self.assistant(&json!({"type": "text", "text": text}), "end_turn")?;
        if self.step.stop_after == Some(StopAfter::Assistant) {
            return Ok(());
        }
        self.end(&text, model_calls)
    }

    fn begin(&mut self) -> Result<(), Stop> {
        let title = self.args.name.as_deref().or(self.session.history.title());
        let title = title.map(|title| lines::title_changed(&self.session.id, title));
        let version = self.player.version.split(' ').next().unwrap_or_default().to_owned();
        let cwd = self.player.call.cwd.to_string_lossy().into_owned();
        let init = lines::init(&self.session.id, &cwd, &self.model, &version);
        title.into_iter().chain([init]).try_for_each(|line| self.print(line))
    }

    /// Saves what the session is, up to the prompt.
    fn save_prompt(&mut self) {
        if self.session.copies {
            self.saved.append(self.session.history.copied_to(&self.session.id));
        }
        let (id, prompt) = (&self.session.id, &self.player.call.prompt);
        self.saved.append([
            json!({"type": "queue-operation", "operation": "enqueue", "timestamp": now(), "sessionId": id, "content": prompt}),
            json!({"type": "queue-operation", "operation": "dequeue", "timestamp": now(), "sessionId": id}),
        ]);
        if let Some(title) = &self.args.name {
            self.saved.append([
                json!({"type": "custom-title", "customTitle": title, "sessionId": id}),
                json!({"type": "agent-name", "agentName": title, "sessionId": id}),
            ]);
        }
        let message = json!({"role": "user", "content": prompt});
        self.record("user", &new_uuid(), &message);
    }

    fn answer(&self) -> String {
        if let Some(say) = &self.step.say {
            return expand(say, self.player);
        }
        let mut texts = self.session.history.user_texts();
        texts.push(self.player.call.prompt.clone());
        ContextReply::of(&texts).to_text()
    }

    fn use_tool(&mut self, tool: &ToolUse) -> Result<(), Stop> {
        let use_id = format!("toolu_{}", uuid::Uuid::new_v4().simple());
        let block = json!({"type": "tool_use", "id": use_id, "name": tool.name, "input": tool.input});
        self.assistant(&block, "tool_use")?;
        let uuid = new_uuid();
        let message = json!({
            "role": "user",
            "content": [{"tool_use_id": use_id, "type": "tool_result", "content": "done"}],
        });
        self.print(lines::message_line("user", &self.session.id, &uuid, &message))?;
        self.record("user", &uuid, &message);
        Ok(())
    }

    /// Prints and saves one block of the assistant. Only the record knows why the message ended.
    fn assistant(&mut self, block: &Value, stop_reason: &str) -> Result<(), Stop> {
        let uuid = new_uuid();
        let mut message = lines::message(&self.model, block, None);
        self.print(lines::message_line("assistant", &self.session.id, &uuid, &message))?;
        message["stop_reason"] = json!(stop_reason);
        self.record("assistant", &uuid, &message);
        Ok(())
    }

    fn end(&mut self, text: &str, model_calls: u64) -> Result<(), Stop> {
        let history = &self.session.history;
        let total_cost = history.cost() + TURN_COST;
        let model_usage = lines::add_model_usage(history.model_usage(), &self.model, model_calls, TURN_COST);
        let id = self.session.id.clone();
        let answered = Answered { id: &id, text, model_calls, total_cost, model_usage: &model_usage };
        let result = answered.result();
        match self.args.format {
            Format::StreamJson => self.print(result)?,
            Format::Text => self.player.out.write(format!("{text}\n").as_bytes())?,
            Format::Json if self.args.verbose => {
                self.events.push(result);
                let all = Value::Array(std::mem::take(&mut self.events));
                self.player.out.write(format!("{all}\n").as_bytes())?;
            }
            Format::Json => self.player.out.write(format!("{result}\n").as_bytes())?,
        }
        // The real CLI also writes after its last line: whoever stops at that line loses these.
        self.saved.append([
            json!({"type": "last-prompt", "lastPrompt": self.player.call.prompt, "leafUuid": self.leaf, "sessionId": id}),
            lines::cost_state(&id, total_cost, &model_usage),
        ]);
        Ok(())
    }

    /// A line of the stream, or of the array printed at the end.
    fn print(&mut self, line: Value) -> Result<(), Stop> {
        if self.args.format == Format::StreamJson {
            return self.player.out.write(format!("{line}\n").as_bytes());
        }
        self.events.push(line);
        Ok(())
    }

    /// Saves a record at the end of the chain.
    fn record(&mut self, kind: &str, uuid: &str, message: &Value) {
        let version = self.player.version.split(' ').next().unwrap_or_default();
        self.saved.append([json!({
            "parentUuid": self.leaf,
            "isSidechain": false,
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": now(),
            "userType": "external",
            "entrypoint": "sdk-cli",
            "cwd": self.player.call.cwd.to_string_lossy(),
            "sessionId": self.session.id,
            "version": version,
            "gitBranch": "HEAD",
        })]);
        self.leaf = Some(uuid.to_owned());
    }
}
