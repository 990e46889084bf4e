//! Entries of a transcript as text for people.

use rejoin::history::{Block, Entry, EntryKind};

use crate::output::Style;
use crate::plain;

/// How much of an entry is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What was said, tools by name, the beginning of what they returned.
    Brief,
    /// Everything.
    Full,
}

/// Lines that brief text of a tool takes.
const BRIEF: usize = 4;

/// A line, and how it looks.
pub(crate) type Line = (Option<Style>, String);

/// What a person sees of an entry: nothing of what is no part of the talk.
pub(crate) fn lines(entry: &Entry, detail: Detail) -> Vec<Line> {
    if entry.meta && detail == Detail::Brief {
        return Vec::new();
    }
    let mut out = Vec::new();
    match &entry.kind {
        EntryKind::Prompt(blocks) => said(&mut out, "› ", blocks, detail, Some(Style::Bold)),
        EntryKind::Reply(blocks) | EntryKind::Returned(blocks) => said(&mut out, "  ", blocks, detail, None),
        EntryKind::Boundary => out.push((Some(Style::Dim), "── compacted ──".to_owned())),
        EntryKind::CompactSummary(text) if detail == Detail::Full => {
            block(&mut out, "  ", text, usize::MAX, Some(Style::Dim));
        }
        EntryKind::CompactSummary(text) => block(&mut out, "  ", text, BRIEF, Some(Style::Dim)),
        EntryKind::Unknown { name, .. } if detail == Detail::Full => {
            out.push((Some(Style::Dim), format!("  ({})", plain::line(name))));
        }
        _ => {}
    }
    out
}

fn said(out: &mut Vec<Line>, mark: &str, blocks: &[Block], detail: Detail, style: Option<Style>) {
    let full = detail == Detail::Full;
    let most = if full { usize::MAX } else { BRIEF };
    for part in blocks {
        match part {
            Block::Text(text) => block(out, mark, text, usize::MAX, style),
            Block::Thinking(text) if full => block(out, "  ~ ", text, usize::MAX, Some(Style::Dim)),
            Block::ToolCall { name, input, .. } => {
                let input = plain::line(&input.to_string());
                let input = if full { input } else { plain::cut(&input, 80) };
                out.push((Some(Style::Dim), format!("  ⚙ {} {input}", plain::line(name))));
            }
            Block::ToolResult { text, failed, .. } => {
                let style = if *failed { Style::Warn } else { Style::Dim };
                block(out, "    ", text, most, Some(style));
            }
            Block::Attachment { media } => {
                out.push((Some(Style::Dim), format!("{mark}[{}]", plain::line(media))));
            }
            _ => {}
        }
    }
}

/// Text with a mark before its first line, and blanks before the others.
fn block(out: &mut Vec<Line>, mark: &str, text: &str, most: usize, style: Option<Style>) {
    let text = plain::lines(text.trim_matches('\n').trim_end());
    let blanks = " ".repeat(plain::width(mark));
    let mut rest = 0_usize;
    for (number, line) in text.split('\n').enumerate() {
        if number < most {
            out.push((style, format!("{}{line}", if number == 0 { mark } else { &blanks })));
        } else {
            rest += 1;
        }
    }
    if rest > 0 {
        out.push((style, format!("{blanks}… {rest} more lines")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(kind: EntryKind, detail: Detail) -> Vec<String> {
        lines(&Entry::new(kind), detail).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_prompt_is_marked_and_its_lines_stand_below_each_other() {
        let prompt = EntryKind::Prompt(vec![Block::Text("Fix\nthe \u{1b}[2J bug\n".into())]);
        assert_eq!(texts(prompt, Detail::Brief), ["› Fix", "  the \\u{1b}[2J bug"]);
    }

    #[test]
    fn what_tools_returned_is_cut_but_not_in_full() {
        let text = (1..=10).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        let result = Block::ToolResult { id: "1".into(), text, failed: false };
        let brief = texts(EntryKind::Returned(vec![result.clone()]), Detail::Brief);
        assert_eq!(brief.last().unwrap(), "    … 6 more lines");
        assert_eq!(texts(EntryKind::Returned(vec![result]), Detail::Full).len(), 10);
    }
}
