//! `docs/verified.md`: what was seen on the real CLIs, as one table an agent, scenario by version.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// In place of a cell that is equal to the one on its left.
const SAME: &str = "←";
/// In place of a cell that a version does not have.
const NONE: &str = "–";

/// The document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// What stands before the tables.
    head: String,
    /// The cells by agent, scenario and version.
    agents: BTreeMap<String, BTreeMap<String, BTreeMap<Column, String>>>,
}

/// A version in the order of columns: the newest comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Column(Reverse<Vec<u64>>, String);

impl Column {
    fn new(version: &str) -> Self {
        let numbers = version.split('.').map(|part| part.parse().unwrap_or(0)).collect();
        Self(Reverse(numbers), version.to_owned())
    }
}

impl Verified {
    /// Reads the document.
    ///
    /// # Errors
    /// The first line that is not as [`render`](Self::render) writes it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut sections = text.split("\n## ");
        let mut found = Self { head: sections.next().unwrap_or_default().to_owned(), ..Self::default() };
        for section in sections {
            let (agent, table) = section.split_once('\n').unwrap_or((section, ""));
            let mut lines = table.lines().filter(|line| !line.is_empty());
            let head = lines.next().and_then(cells).filter(|cells| cells[0] == "scenario");
            let versions = head.ok_or_else(|| format!("{agent}: there is no table"))?.split_off(1);
            let rule = lines.next();
            if rule != Some(rule_of(versions.len()).as_str()) {
                return Err(format!("{agent}: {rule:?} is no line below the head"));
            }
            for line in lines {
                let row = cells(line).filter(|row| row.len() == versions.len() + 1);
                let row = row.ok_or_else(|| format!("{agent}: {line:?} is no row"))?;
                let mut left = NONE;
                for (version, cell) in versions.iter().zip(&row[1..]) {
                    left = if *cell == SAME { left } else { cell };
                    if left != NONE {
                        found.set(agent, version, row[0], left);
                    }
                }
            }
        }
        let again = found.render();
        let differs = text.lines().zip(again.lines()).find(|(told, rendered)| told != rendered);
        match differs {
            Some((told, rendered)) => Err(format!("{told:?} should be {rendered:?}")),
            None if text != again => Err("the end is missing, or is there twice".to_owned()),
            None => Ok(found),
        }
    }

    /// The document as text.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = self.head.clone();
        for (agent, rows) in &self.agents {
            let columns: BTreeSet<&Column> = rows.values().flat_map(BTreeMap::keys).collect();
            let versions = columns.iter().map(|column| format!(" {} |", column.1)).collect::<String>();
            text.push_str(&format!("\n## {agent}\n\n| scenario |{versions}\n{}\n", rule_of(columns.len())));
            for (scenario, cells) in rows {
                text.push_str(&format!("| {scenario} |"));
                let mut left = NONE;
                for column in &columns {
                    let cell = cells.get(*column).map_or(NONE, String::as_str);
                    text.push_str(&format!(" {} |", if cell == left && cell != NONE { SAME } else { cell }));
                    left = cell;
                }
                text.push('\n');
            }
        }
        text
    }

    /// What was seen.
    #[must_use]
    pub fn cell(&self, agent: &str, version: &str, scenario: &str) -> Option<&str> {
        self.agents.get(agent)?.get(scenario)?.get(&Column::new(version)).map(String::as_str)
    }

    /// Agent, version and scenario of every cell.
    pub fn cells(&self) -> impl Iterator<Item = [&str; 3]> {
        self.agents.iter().flat_map(|(agent, rows)| {
            rows.iter().flat_map(move |(scenario, cells)| {
                cells.keys().map(move |column| [agent.as_str(), column.1.as_str(), scenario.as_str()])
            })
        })
    }

    /// The agents that there is a table of.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }

    /// The versions in an agent's table, the newest first.
    #[must_use]
    pub fn versions(&self, agent: &str) -> Vec<&str> {
        let rows = self.agents.get(agent).into_iter().flat_map(BTreeMap::values);
        let columns: BTreeSet<&Column> = rows.flat_map(BTreeMap::keys).collect();
        columns.into_iter().map(|column| column.1.as_str()).collect()
    }

    /// Puts a cell in.
    pub fn set(&mut self, agent: &str, version: &str, scenario: &str, cell: &str) {
        let rows = self.agents.entry(agent.to_owned()).or_default();
        rows.entry(scenario.to_owned()).or_default().insert(Column::new(version), cell.to_owned());
    }

    /// Takes a cell out.
    pub fn remove(&mut self, agent: &str, version: &str, scenario: &str) {
        let Some(rows) = self.agents.get_mut(agent) else { return };
        if let Some(cells) = rows.get_mut(scenario) {
            cells.remove(&Column::new(version));
        }
        rows.retain(|_, cells| !cells.is_empty());
        self.agents.retain(|_, rows| !rows.is_empty());
    }
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    Some(inner.split(" | ").collect())
}

fn rule_of(versions: usize) -> String {
    format!("|{}", "---|".repeat(versions + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Head\n\nwords\n\
        \n## a\n\n| scenario | 10.0.0 | 9.0.0 | 1.0.0 |\n|---|---|---|---|\n\
        | one | x → y, 1 turn | ← | z |\n\
        | two | – | x | – |\n\
        \n## b\n\n| scenario | 1.0.0 |\n|---|---|\n| one | x |\n";

    #[test]
    fn the_document_is_read_as_it_is_written() {
        let document = Verified::parse(TEXT).unwrap();
        assert_eq!(document.render(), TEXT);
        assert_eq!(document.cell("a", "9.0.0", "one"), Some("x → y, 1 turn"));
        assert_eq!(document.cell("a", "10.0.0", "two"), None);
        assert_eq!(document.versions("a"), ["10.0.0", "9.0.0", "1.0.0"]);
        assert_eq!(document.agents().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(document.cells().count(), 5);
    }

    #[test]
    fn cells_come_and_go_with_their_rows_and_columns() {
        let mut document = Verified::parse(TEXT).unwrap();
        document.set("a", "9.0.0", "one", "other");
        assert_eq!(document.cell("a", "9.0.0", "one"), Some("other"));
        assert_eq!(document.cell("a", "10.0.0", "one"), Some("x → y, 1 turn"));
        document.remove("a", "9.0.0", "two");
        document.remove("b", "1.0.0", "one");
        assert_eq!(Verified::parse(&document.render()), Ok(document.clone()));
        assert_eq!(document.agents().collect::<Vec<_>>(), ["a"]);
        assert!(!document.render().contains("| two |"));
    }

    #[test]
    fn what_is_not_as_it_is_written_is_told() {
        for (from, to) in [
            ("| ← |", "| x → y, 1 turn |"),
            ("| scenario |", "| scene |"),
            ("|---|---|---|---|", "|---|---|---|"),
            ("| 10.0.0 | 9.0.0 |", "| 9.0.0 | 10.0.0 |"),
            ("| z |", "| z"),
            ("| two |", "| a first |"),
            ("| – | x | – |", "| – | x |"),
            ("| one | x |\n", "| one | x |\n\n"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT);
            assert!(Verified::parse(&text).is_err(), "{from}");
        }
    }
}
