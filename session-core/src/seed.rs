//! Recipe seeds: what a conversation was begun from, and how it can be begun again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::CheckpointId;

/// What a conversation was begun from: a recipe by its name and version, and what it was filled in with. It is kept in the
/// record of the key, as it was at the last run that gave one.
///
/// No secrets belong here: it lies in the record in plain words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecipeSeed {
    /// The recipe, as its owner names it: a path, an address, a name.
    pub reference: String,
    /// Its version, as its owner counts.
    pub version: String,
    /// What it was filled in with. A text named `model` is the model to ask for, where the request names none; of the
    /// others, the recipe's owner knows what to do.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// What is said to the model before everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The tools that the model may call; `None`: the recipe says nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The last checkpoint that was taken of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<CheckpointId>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A seed as it lies in a record: one of a later form stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KeptSeed {
    /// One that this version can read.
    Known(Box<RecipeSeed>),
    /// One of a later form.
    Later(Value),
}

/// A seed that is too large to be kept in a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} of the recipe has {found}, {limit} are allowed")]
pub struct SeedError {
    /// Which part, in words.
    pub part: &'static str,
    /// What it has: bytes, or names of tools.
    pub found: usize,
    /// The limit.
    pub limit: usize,
}

impl RecipeSeed {
    /// Bytes of a reference, and of a version.
    pub const NAME_BYTES: usize = 1024;
    /// Bytes of all parameters as JSON.
    pub const PARAMETERS_BYTES: usize = 64 * 1024;
    /// Bytes of a system prompt.
    pub const SYSTEM_PROMPT_BYTES: usize = 64 * 1024;
    /// How many tools.
    pub const TOOLS: usize = 256;

    /// A seed of a recipe in some version, filled in with nothing.
    pub fn new(reference: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            reference: reference.into(),
            version: version.into(),
            parameters: Map::new(),
            system_prompt: None,
            tools: None,
            last_checkpoint: None,
            extra: Map::new(),
        }
    }

    /// Whether it is small enough for a record.
    ///
    /// # Errors
    /// [`SeedError`] names the first part that is not.
    pub fn check(&self) -> Result<(), SeedError> {
        let parameters = serde_json::to_string(&self.parameters).map_or(usize::MAX, |text| text.len());
        let tools = self.tools.as_deref().unwrap_or_default();
        let longest = tools.iter().map(String::len).max().unwrap_or(0);
        let sizes = [
            ("the reference", self.reference.len(), Self::NAME_BYTES),
            ("the version", self.version.len(), Self::NAME_BYTES),
            ("all that the parameters say", parameters, Self::PARAMETERS_BYTES),
            (
                "the system prompt",
                self.system_prompt.as_ref().map_or(0, String::len),
                Self::SYSTEM_PROMPT_BYTES,
            ),
            ("the list of tools", tools.len(), Self::TOOLS),
            ("the name of a tool", longest, Self::NAME_BYTES),
        ];
        let too_large = sizes.into_iter().find(|(_, found, limit)| found > limit);
        too_large.map_or(Ok(()), |(part, found, limit)| Err(SeedError { part, found, limit }))
    }

    /// The model that it asks for, where that is one word.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.parameters.get(MODEL).and_then(Value::as_str).filter(|model| is_model(model))
    }
}

pub(crate) const MODEL: &str = "model";

/// How a conversation with a seed goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeMode {
    /// By its transcript: it is resumed as any other.
    #[default]
    ReplayTranscript,
    /// By its recipe: a new conversation begins, with what the seed says, and the one before moves to the past as
    /// `recipe_rerun`.
    ///
    /// The run does not touch the work tree. To begin from the seed's last checkpoint, rewind the files to it first.
    RerunRecipe,
}

/// A part of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecipePart {
    /// What is said to the model before everything else.
    SystemPrompt,
    /// The tools that the model may call.
    Tools,
    /// A parameter, by its name.
    Parameter(String),
    /// The files of its last checkpoint.
    Files,
}

/// Why a part of a recipe is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotRestoredWhy {
    /// This version of the agent, or its adapter, cannot be given it for one run.
    AgentCannot,
    /// Nobody here knows what it means: the recipe's owner does.
    NotOurs,
    /// The request says otherwise.
    RequestDiffers,
    /// A run leaves files as they are: whoever wants them back rewinds to the checkpoint first.
    NotRewound,
}

/// A part of a recipe that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct NotRestored {
    /// The part.
    pub part: RecipePart,
    /// Why.
    pub why: NotRestoredWhy,
}

/// What a run took of the recipe of its key.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Recipe {
    /// The seed that it ran with.
    pub seed: RecipeSeed,
    /// How it went on.
    pub mode: ResumeMode,
    /// What the agent was given.
    pub restored: Vec<RecipePart>,
    /// What it was not given.
    pub not_restored: Vec<NotRestored>,
}

impl Recipe {
    /// What an agent is given of a seed, where it takes a system prompt and a list of tools, by a request for this model.
    pub(crate) fn of(
        seed: &RecipeSeed,
        mode: ResumeMode,
        (takes_system_prompt, takes_tools): (bool, bool),
        model: Option<&str>,
    ) -> Self {
        let (mut restored, mut not_restored) = (Vec::new(), Vec::new());
        let mut sort = |part, why: Option<NotRestoredWhy>| match why {
            None => restored.push(part),
            Some(why) => not_restored.push(NotRestored { part, why }),
        };
        let unless = |taken: bool| (!taken).then_some(NotRestoredWhy::AgentCannot);
        if seed.system_prompt.is_some() {
            sort(RecipePart::SystemPrompt, unless(takes_system_prompt));
        }
        if seed.tools.is_some() {
            sort(RecipePart::Tools, unless(takes_tools));
        }
        for (name, value) in &seed.parameters {
            let why = match (name.as_str(), value.as_str(), model) {
                (MODEL, Some(of_seed), Some(asked)) if of_seed != asked => {
                    Some(NotRestoredWhy::RequestDiffers)
                }
                (MODEL, Some(of_seed), _) if is_model(of_seed) => None,
                _ => Some(NotRestoredWhy::NotOurs),
            };
            sort(RecipePart::Parameter(name.clone()), why);
        }
        if seed.last_checkpoint.is_some() && mode == ResumeMode::RerunRecipe {
            sort(RecipePart::Files, Some(NotRestoredWhy::NotRewound));
        }
        Self { seed: seed.clone(), mode, restored, not_restored }
    }
}

/// Whether a text can be one argument that names a model.
pub(crate) fn is_model(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.contains(|c: char| c.is_control() || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed() -> RecipeSeed {
        let mut seed = RecipeSeed::new("recipes/fix.yaml", "3");
        seed.parameters.insert("model".to_owned(), "opus".into());
        seed.parameters.insert("issue".to_owned(), 42.into());
        seed.system_prompt = Some("Be brief.".to_owned());
        seed.tools = Some(vec!["Read".to_owned()]);
        seed.last_checkpoint = CheckpointId::parse("00000000-0000-0000-0000-000000000001");
        seed
    }

    #[test]
    fn what_is_not_restored_is_said_with_its_reason() {
        let none = Recipe::of(&seed(), ResumeMode::RerunRecipe, (false, false), Some("haiku"));
        let parts = |recipe: &Recipe| {
            recipe.not_restored.iter().map(|not| (not.part.clone(), not.why.clone())).collect::<Vec<_>>()
        };
        let model = || RecipePart::Parameter("model".to_owned());
        let issue = || (RecipePart::Parameter("issue".to_owned()), NotRestoredWhy::NotOurs);
        let files = || (RecipePart::Files, NotRestoredWhy::NotRewound);
        assert_eq!(none.restored, []);
        assert_eq!(
            parts(&none),
            [
                (RecipePart::SystemPrompt, NotRestoredWhy::AgentCannot),
                (RecipePart::Tools, NotRestoredWhy::AgentCannot),
                issue(),
                (model(), NotRestoredWhy::RequestDiffers),
                files(),
            ]
        );
        let all = Recipe::of(&seed(), ResumeMode::RerunRecipe, (true, true), None);
        assert_eq!(all.restored, [RecipePart::SystemPrompt, RecipePart::Tools, model()]);
        assert_eq!(parts(&all), [issue(), files()]);
        // A transcript that is replayed goes on in the files as they are.
        assert_eq!(parts(&Recipe::of(&seed(), ResumeMode::ReplayTranscript, (true, true), None)), [issue()]);
    }

    #[test]
    fn a_text_that_is_no_models_name_is_not_passed_on() {
        let mut odd = seed();
        odd.parameters.insert("model".to_owned(), "--resume x".into());
        let recipe = Recipe::of(&odd, ResumeMode::ReplayTranscript, (true, true), None);
        assert!(recipe.not_restored.iter().any(|not| not.part == RecipePart::Parameter("model".to_owned())));
    }

    #[test]
    fn a_seed_of_a_later_form_survives() {
        let later = r#"{"reference":"r","version":"1","parameters":{"a":[1]},"phase":{"of":"moon"}}"#;
        let read: RecipeSeed = serde_json::from_str(later).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::from_str::<Value>(later).unwrap());
        let written = serde_json::to_string(&seed()).unwrap();
        assert_eq!(serde_json::from_str::<RecipeSeed>(&written).unwrap(), seed());
    }

    #[test]
    fn what_is_too_large_is_named() {
        assert_eq!(seed().check(), Ok(()));
        let part = |change: fn(&mut RecipeSeed)| {
            let mut seed = seed();
            change(&mut seed);
            seed.check().unwrap_err().part
        };
        assert_eq!(part(|seed| seed.reference = "x".repeat(1025)), "the reference");
        assert_eq!(part(|seed| seed.version = "x".repeat(1025)), "the version");
        let big =
            |seed: &mut RecipeSeed| drop(seed.parameters.insert("a".to_owned(), "x".repeat(65_536).into()));
        assert_eq!(part(big), "all that the parameters say");
        assert_eq!(part(|seed| seed.system_prompt = Some("x".repeat(65_537))), "the system prompt");
        assert_eq!(part(|seed| seed.tools = Some(vec![String::new(); 257])), "the list of tools");
        assert_eq!(part(|seed| seed.tools = Some(vec!["x".repeat(1025)])), "the name of a tool");
    }
}
