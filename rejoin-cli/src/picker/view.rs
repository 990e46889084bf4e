//! A frame of the picker.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Wrap};

use super::keys::HELP;
use super::row::Row;
use super::state::{Picker, Preview};
use crate::args::ScopeChoice;
use crate::output;
use crate::{plain, when};

/// From so many columns on, the preview stands beside the list.
const BESIDE: u16 = 90;
/// From so many rows on, it stands below it, where it does not stand beside it.
const BELOW: u16 = 16;

/// How a frame looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) color: bool,
}

impl Theme {
    const fn accent(self) -> Style {
        if self.color { Style::new().fg(Color::Cyan) } else { Style::new().add_modifier(Modifier::BOLD) }
    }
}

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws a frame, and tells the picker how many rows it has room for.
pub(crate) fn draw(picker: &mut Picker, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    let [top, body, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]).areas(area);
    let (list, preview) = split(body);
    picker.set_page(usize::from(list.height));
    query(picker, theme, frame, top);
    rows(picker, theme, frame, list);
    if let (Some(area), Some(preview)) = (preview, &picker.preview) {
        show(preview, frame, area);
    }
    hints(picker, frame, bottom);
    if picker.help {
        help(frame, area);
    }
}

fn split(body: Rect) -> (Rect, Option<Rect>) {
    if body.width >= BESIDE {
        let [list, preview] =
            Layout::horizontal([Constraint::Percentage(52), Constraint::Percentage(48)]).areas(body);
        (list, Some(preview))
    } else if body.height >= BELOW {
        let [list, preview] =
            Layout::vertical([Constraint::Percentage(55), Constraint::Percentage(45)]).areas(body);
        (list, Some(preview))
    } else {
        (body, None)
    }
}

const fn scope(scope: ScopeChoice) -> &'static str {
    match scope {
        ScopeChoice::Here | ScopeChoice::Below => "here",
        ScopeChoice::Repository => "repository",
        ScopeChoice::All => "all",
    }
}

fn query(picker: &Picker, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let reading = if picker.complete { "" } else { " · reading …" };
    let count = format!(" {}/{} · {}{reading}", picker.shown.len(), picker.in_scope(), scope(picker.scope));
    let columns = usize::from(area.width);
    let room = columns.saturating_sub(plain::width(&count) + 3);
    // Of a long text, the end is where one types.
    let typed = plain::line(&picker.query);
    let ends_blank = picker.query.ends_with(' ') && !typed.is_empty();
    let mut text = if ends_blank { format!("{typed} ") } else { typed };
    while plain::width(&text) > room && !text.is_empty() {
        text.remove(0);
    }
    let gap = columns.saturating_sub(2 + plain::width(&text) + plain::width(&count));
    let end = area.x.saturating_add(u16::try_from(2 + plain::width(&text)).unwrap_or(u16::MAX));
    let spans = vec![
        Span::styled("> ", theme.accent()),
        Span::raw(text),
        Span::raw(" ".repeat(gap)),
        Span::styled(count, DIM),
    ];
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
    frame.set_cursor_position(Position::new(end.min(area.right().saturating_sub(1)), area.y));
}

fn rows(picker: &Picker, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    if picker.shown.is_empty() {
        let text = match (picker.complete, picker.in_scope(), picker.scope) {
            _ if picker.is_searching() => "searching …",
            (false, 0, _) => "looking for sessions …",
            (true, 0, ScopeChoice::All) => "There are no sessions.",
            (true, 0, _) => "There are none here. Tab looks further.",
            _ => "Nothing matches.",
        };
        frame.render_widget(Paragraph::new(format!("  {text}")).style(DIM), area);
        return;
    }
    let columns = usize::from(area.width);
    let on_screen = picker.shown.iter().enumerate().skip(picker.first).take(usize::from(area.height));
    let lines: Vec<_> =
        on_screen.map(|(at, row)| line(row, at == picker.selected, picker, theme, columns)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn line(row: &Row, selected: bool, picker: &Picker, theme: Theme, columns: usize) -> Line<'static> {
    let entry = &row.listed.entry;
    let age = entry.updated.map(|then| when::ago(then, picker.now)).unwrap_or_default();
    let head = format!("{} {} ", plain::fit(&age, 4), plain::fit(row.listed.agent.as_str(), 8));
    let left = columns.saturating_sub(2 + plain::width(&head) + 1);
    let folder = if picker.scope == ScopeChoice::Here || left < 40 { "" } else { &row.folder };
    let folder = plain::cut_left(folder, left / 3);
    let label = plain::fit(&row.label, left.saturating_sub(plain::width(&folder) + 1));
    let mark = Span::styled(if selected { "▌ " } else { "  " }, theme.accent());
    let line = Line::from(vec![
        mark,
        Span::styled(head, DIM),
        Span::styled(label, if selected { BOLD } else { Style::new() }),
        Span::raw(" "),
        Span::styled(folder, DIM),
    ]);
    if selected { line.style(Style::new().add_modifier(Modifier::REVERSED)) } else { line }
}

fn show(preview: &Preview, frame: &mut Frame<'_>, area: Rect) {
    let row = &preview.row;
    let entry = &row.listed.entry;
    let turns = entry.turns.map(plain::turns);
    let parts = [turns, entry.branch.as_deref().map(plain::line), Some(row.folder.clone())];
    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    let block = Block::new().borders(Borders::LEFT | Borders::TOP).border_style(DIM);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let columns = usize::from(inner.width);
    let mut lines = vec![
        Line::styled(plain::cut(&row.label, columns), BOLD),
        Line::styled(plain::cut(&parts.join(" · "), columns), DIM),
        Line::raw(""),
    ];
    let [head, body] = Layout::vertical([Constraint::Length(3), Constraint::Min(0)]).areas(inner);
    frame.render_widget(Paragraph::new(std::mem::take(&mut lines)), head);
    let Some(said) = &preview.lines else {
        frame.render_widget(Paragraph::new("…").style(DIM), body);
        return;
    };
    // The end of what was said is what tells a session from others.
    let mut text = Vec::new();
    let mut room = usize::from(body.height);
    for (style, said) in said.iter().rev() {
        let takes = plain::width(said).div_ceil(columns.max(1)).max(1);
        if takes > room {
            break;
        }
        room -= takes;
        let style = match style {
            Some(output::Style::Bold) => BOLD,
            Some(output::Style::Dim | output::Style::Warn) => DIM,
            None => Style::new(),
        };
        text.push(Line::styled(said.clone(), style));
    }
    text.reverse();
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), body);
}

fn hints(picker: &Picker, frame: &mut Frame<'_>, area: Rect) {
    const LEAVE: &str = " · esc leave";
    let columns = usize::from(area.width);
    let text = match &picker.trouble {
        Some(trouble) => {
            let room = columns.saturating_sub(plain::width(LEAVE));
            format!("{}{LEAVE}", plain::cut(&plain::line(trouble), room))
        }
        None => format!("enter take · tab scope · ? help{LEAVE}"),
    };
    let text = plain::cut(&text, columns);
    frame.render_widget(Paragraph::new(text).style(DIM), area);
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let keys = HELP.iter().map(|(keys, _)| plain::width(keys)).max().unwrap_or_default();
    let lines: Vec<_> = HELP
        .iter()
        .map(|(key, what)| Line::from(vec![Span::styled(plain::fit(key, keys + 2), BOLD), Span::raw(*what)]))
        .collect();
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let width = 68.min(area.width);
    let area =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), area);
}
