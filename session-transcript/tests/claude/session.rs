//! A session that is made up at random, and the truth about it.

use serde_json::{Value, json};
use session_core::Usage;

/// Numbers that look random, the same ones every time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub(crate) const fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn uuid(&mut self) -> String {
        let (high, low) = (self.below(1 << 53), self.below(1 << 53));
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 21,
            high & 0xFFFF,
            low >> 41,
            low & 0xFFF,
            high ^ low
        )
    }

    fn words(&mut self) -> String {
        const WORDS: &[&str] = &[
            "fix",
            "the",
            "日本語",
            "\"quoted\"",
            "back\\slash",
            "line\u{2028}sep",
            "🚀",
            "retry",
            "\tcache",
            "{\"type\":",
        ];
        let count = 2 + self.below(9);
        (0..count).map(|_| WORDS[self.below(WORDS.len() as u64) as usize]).collect::<Vec<_>>().join(" ")
    }
}

/// What a reader should say.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Truth {
    pub(crate) listed: bool,
    pub(crate) first_prompt: Option<String>,
    pub(crate) given: Option<String>,
    pub(crate) made_up: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) last_noted: Option<String>,
    pub(crate) cwds: Option<(String, String)>,
    pub(crate) branch: Option<String>,
    /// Lines, bytes, prompts, messages, queued, all messages, replies, compactions.
    pub(crate) counts: [u64; 8],
    pub(crate) usage: Usage,
    pub(crate) usage_new: Usage,
    pub(crate) usage_of_sidechains: Usage,
    pub(crate) torn: bool,
}

/// A session that is being written.
pub(crate) struct Writer {
    pub(crate) dice: Dice,
    pub(crate) text: Vec<u8>,
    pub(crate) truth: Truth,
    pub(crate) sidechain: bool,
    pub(crate) cwd: String,
    pub(crate) branch: String,
    /// The records on the way: id, message, queued; those since the last compaction.
    pub(crate) way: Vec<(String, bool, bool)>,
    /// Messages before it.
    before: u64,
    last: Option<String>,
    command: Option<String>,
    clock: u64,
    /// Replies for copies: the line, and its id.
    pub(crate) copyable: Vec<Value>,
    new_shape: bool,
}

impl Writer {
    pub(crate) fn new(mut dice: Dice) -> Self {
        let new_shape = dice.one_in(3);
        let number = dice.below(9);
        let clock = dice.below(1 << 20) * 1000;
        Self {
            dice,
            text: Vec::new(),
            truth: Truth::default(),
            sidechain: false,
            cwd: format!("/w/{number}"),
            branch: "main".into(),
            way: Vec::new(),
            before: 0,
            last: None,
            command: None,
            clock,
            copyable: Vec::new(),
            new_shape,
        }
    }

    pub(crate) fn line(&mut self, line: &Value) {
        self.raw(&line.to_string());
    }

    pub(crate) fn raw(&mut self, line: &str) {
        self.text.extend_from_slice(line.as_bytes());
        self.text.push(b'\n');
        self.truth.counts[0] += 1;
    }

    /// A record of the chain. Keys come in another order each time; `Value` sorts them, so they are put together here.
    pub(crate) fn record(&mut self, kind: &str, parent: Option<&str>, more: &Value, message: bool) -> String {
        let id = self.dice.uuid();
        self.clock += 1 + self.dice.below(5000);
        let time = format!(
            "2026-02-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            1 + self.clock / 86_400_000 % 28,
            self.clock / 3_600_000 % 24,
            self.clock / 60_000 % 60,
            self.clock / 1000 % 60,
            self.clock % 1000
        );
        let mut line = json!({
            "parentUuid": parent, "isSidechain": self.sidechain, "type": kind, "uuid": id, "timestamp": time,
            "cwd": self.cwd, "gitBranch": self.branch, "sessionId": "s", "userType": "external",
        });
        more.as_object().unwrap().iter().for_each(|(key, value)| line[key] = value.clone());
        let mut keys: Vec<String> = line.as_object().unwrap().keys().cloned().collect();
        let turn = self.dice.below(keys.len() as u64) as usize;
        keys.rotate_left(turn);
        let fields: Vec<String> = keys.iter().map(|key| format!("{}:{}", json!(key), line[key])).collect();
        self.raw(&format!("{{{}}}", fields.join(",")));
        let first = self.truth.cwds.take().map_or_else(|| self.cwd.clone(), |(first, _)| first);
        self.truth.cwds = Some((first, self.cwd.clone()));
        self.truth.branch = Some(self.branch.clone());
        self.way.push((id.clone(), message, false));
        self.last = Some(id.clone());
        if message && (kind == "user" || kind == "assistant") {
            self.copyable.push(line);
        }
        id
    }

    fn after(&mut self, kind: &str, more: &Value, message: bool) -> String {
        let parent = self.last.clone();
        self.record(kind, parent.as_deref(), more, message)
    }

    pub(crate) fn prompt(&mut self) {
        let text = self.dice.words();
        let text = if self.dice.one_in(20) { text + &"paste\n".repeat(20_000) } else { text };
        let content = match self.dice.below(4) {
            0 => json!([{"type": "text", "text": text}]),
            1 => {
                json!([{"type": "text", "text": text}, {"type": "image", "source": {"data": "A".repeat(70_000)}}])
            }
            _ => json!(text),
        };
        self.after("user", &json!({"message": {"role": "user", "content": content}}), true);
        self.truth.first_prompt.get_or_insert(text.clone());
        self.truth.counts[2] += 1;
        if self.dice.one_in(3) {
            let noted: String = text.chars().take(200).collect();
            self.line(&json!({"type": "last-prompt", "lastPrompt": noted, "leafUuid": "x"}));
            self.truth.last_noted = Some(noted);
        }
    }

    pub(crate) fn noise(&mut self) {
        let said = |text: &str| json!({"message": {"role": "user", "content": text}});
        let mut caveat = said("<local-command-caveat>Caveat</local-command-caveat>");
        caveat["isMeta"] = json!(true);
        self.after("user", &caveat, false);
        self.after(
            "user",
            &said("<command-name>/init</command-name>\n<command-message>init</command-message>"),
            true,
        );
        self.truth.counts[2] += 1;
        self.command.get_or_insert("/init".into());
        self.after("user", &said("<local-command-stdout>ok</local-command-stdout>"), true);
        self.after("user", &said("[Request interrupted by user]"), true);
    }

    /// A reply of several lines, some of them calls, and their results.
    pub(crate) fn reply(&mut self) {
        let (message, request) = (format!("msg_{}", self.dice.uuid()), format!("req_{}", self.dice.uuid()));
        let (blocks, output) = (1 + self.dice.below(4), 20 + self.dice.below(900));
        let decoy = json!({"summary": "no", "customTitle": "no", "cwd": "/no", "gitBranch": "no", "uuid": "no", "isSidechain": true});
        let mut calls = Vec::new();
        for block in 0..blocks {
            let last = block + 1 == blocks;
            let usage = json!({"input_tokens": 2, "output_tokens": if last { output } else { 1 }, "cache_read_input_tokens": 50});
            let content = json!([{"type": "tool_use", "id": "t", "name": "n", "input": decoy}]);
            let mut more = json!({"requestId": request, "message": {"id": message, "role": "assistant", "model": "m", "content": content, "usage": usage}});
            if self.new_shape {
                more.as_object_mut().unwrap().remove("requestId");
                more["requestRef"] = json!("ref");
            }
            calls.push(self.after("assistant", &more, true));
        }
        for call in calls {
            let text = self.dice.words();
            let content = json!([{"type": "tool_result", "tool_use_id": "t", "content": text.repeat(1 + self.dice.below(60) as usize)}]);
            let more = json!({"message": {"role": "user", "content": content}, "toolUseResult": {"cwd": "/no", "type": "text"}});
            self.record("user", Some(&call), &more, true);
        }
        self.spend(output);
        if self.dice.one_in(4) {
            self.queue();
        }
    }

    fn spend(&mut self, output: u64) {
        let spent =
            Usage { input_tokens: 2, output_tokens: output, cache_read_tokens: 50, cache_write_tokens: 0 };
        if self.sidechain {
            self.truth.usage_of_sidechains += spent;
        } else {
            self.truth.usage += spent;
            self.truth.usage_new += spent;
            self.truth.counts[6] += 1;
        }
    }

    fn queue(&mut self) {
        let text = self.dice.words();
        self.after(
            "attachment",
            &json!({"attachment": {"type": "queued_command", "prompt": text, "commandMode": "prompt"}}),
            false,
        );
        self.way.last_mut().unwrap().2 = true;
    }

    pub(crate) fn compact(&mut self) {
        let before = self.last.clone();
        self.before += self.way.iter().filter(|(_, message, _)| *message).count() as u64;
        self.way.clear();
        self.record(
            "system",
            None,
            &json!({"subtype": "compact_boundary", "logicalParentUuid": before}),
            false,
        );
        let summary = json!({"message": {"role": "user", "content": "This session is being continued"}, "isCompactSummary": true});
        self.after("user", &summary, true);
        self.truth.counts[7] += 1;
    }

    /// The user goes back to an earlier record, and on from there.
    pub(crate) fn rewind(&mut self) {
        let at = 1 + self.dice.below(self.way.len() as u64) as usize;
        // In the middle of a reply, what was called side by side hangs on what comes later.
        let whole = self.way[..at].iter().rposition(|(id, ..)| self.is_end(id));
        if let Some(end) = whole {
            self.way.truncate(end + 1);
            self.last = Some(self.way[end].0.clone());
        }
    }

    fn is_end(&self, id: &str) -> bool {
        let line = self.copyable.iter().find(|line| line["uuid"] == id);
        line.is_some_and(|line| self.is_prompt(line))
    }

    pub(crate) fn title(&mut self) {
        let text = self.dice.words();
        let (line, title) = match self.dice.below(3) {
            0 => (
                json!({"type": "custom-title", "customTitle": text, "sessionId": "s"}),
                &mut self.truth.given,
            ),
            1 => (json!({"type": "ai-title", "aiTitle": text, "sessionId": "s"}), &mut self.truth.made_up),
            _ => (json!({"type": "summary", "summary": text, "leafUuid": "x"}), &mut self.truth.summary),
        };
        *title = Some(text);
        self.line(&line);
    }

    /// Copies the beginning of another session.
    pub(crate) fn fork(&mut self, donor: &Self) {
        for line in donor.copyable.iter().take(9) {
            let mut line = line.clone();
            line["forkedFrom"] =
                json!({"sessionId": "44444444-1111-4111-8111-111111111111", "messageUuid": line["uuid"]});
            line["parentUuid"] = json!(self.last);
            self.line(&line);
            let id = line["uuid"].as_str().unwrap().to_owned();
            self.way.push((id.clone(), true, false));
            self.last = Some(id);
            let cwd = line["cwd"].as_str().unwrap().to_owned();
            self.truth.cwds =
                Some((self.truth.cwds.take().map_or_else(|| cwd.clone(), |(first, _)| first), cwd));
            self.truth.branch = Some(line["gitBranch"].as_str().unwrap().to_owned());
        }
    }

    /// A turn to be copied.
    pub(crate) fn turn(&mut self) {
        self.prompt();
        self.reply();
    }

    /// Takes over what copies of these lines count.
    pub(crate) fn adopt(&mut self, donor: &Self) {
        let copied = donor.copyable.len().min(9);
        let prompts = donor.copyable[..copied].iter().filter(|line| self.is_prompt(line)).count();
        self.truth.counts[2] += prompts as u64;
        let mut replies = std::collections::BTreeMap::new();
        for line in donor.copyable[..copied].iter().filter(|line| line["type"] == "assistant") {
            replies.insert(
                line["message"]["id"].to_string(),
                line["message"]["usage"]["output_tokens"].as_u64().unwrap(),
            );
        }
        for output in replies.values() {
            self.truth.usage += Usage {
                input_tokens: 2,
                output_tokens: *output,
                cache_read_tokens: 50,
                cache_write_tokens: 0,
            };
            self.truth.counts[6] += 1;
        }
    }

    fn is_prompt(&self, line: &Value) -> bool {
        line["type"] == "user" && line.get("toolUseResult").is_none()
    }

    pub(crate) fn finish(mut self, listed: bool, torn: bool) -> (Vec<u8>, Truth) {
        if torn {
            self.text.extend_from_slice(br#"{"parentUuid":null,"type":"user","message":{"content":"cut o"#);
            self.truth.counts[0] += 1;
        }
        let count =
            |of: &dyn Fn(&(String, bool, bool)) -> bool| self.way.iter().filter(|at| of(at)).count() as u64;
        let (messages, queued) = (count(&|at| at.1), count(&|at| at.2));
        let truth = &mut self.truth;
        truth.counts[1] = self.text.len() as u64;
        (truth.counts[3], truth.counts[4], truth.counts[5]) = (messages, queued, self.before + messages);
        if truth.first_prompt.is_none() {
            truth.first_prompt = self.command;
        }
        (truth.listed, truth.torn) = (listed, torn);
        (self.text, self.truth)
    }
}
