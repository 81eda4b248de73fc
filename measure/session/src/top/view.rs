//! The picture: what is measured and lost on top, a line for each function, the keys at the bottom.
use super::by::By;
use super::keys::Keys;
use super::live::Snapshot;
use super::table::{Row, rows};
use crate::slowdown;
use hopscope_report::Scale;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table};
use std::collections::VecDeque;

/// Intervals of a function's sparkline.
pub const HISTORY: usize = 60;
const SPARK: u16 = 24;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub struct View<'a> {
    pub title: &'a str,
    pub scale: Scale,
    pub corrected: bool,
    pub snapshot: &'a Snapshot,
    /// Calls a second of each function, the latest last.
    pub history: &'a [VecDeque<f64>],
    pub keys: &'a Keys,
    pub message: &'a str,
}

impl View<'_> {
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let [top, table, bottom] = Layout::vertical([
            Constraint::Length(3),
            Constraint::Min(2),
            Constraint::Length(2),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), top);
        self.table(frame, table);
        frame.render_widget(Paragraph::new(self.foot()), bottom);
    }

    fn head(&self) -> Vec<Line<'_>> {
        let s = self.snapshot;
        let calls: u64 = s.now.iter().map(|n| n.calls).sum();
        let per_s = |n: u64| short(n as f64 / s.span_s.max(1e-9));
        let lost = format!("{} lost ({} since the start)", s.lost, s.lost_whole);
        let bad = |text: String, is: bool| {
            if is {
                Span::styled(
                    text,
                    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
                )
            } else {
                Span::raw(text)
            }
        };
        let slowdown = slowdown::text(s.slowdown_percent);
        let paused = if self.keys.paused { "  PAUSED" } else { "" };
        let times = if self.corrected { "corrected" } else { "raw" };
        let part = if self.keys.choice.whole {
            "since the start"
        } else {
            "last interval"
        };
        vec![
            Line::from(vec![
                Span::styled("hopscope top", Style::new().add_modifier(Modifier::BOLD)),
                Span::raw(format!("  {}  {:.0} s", self.title, s.since_start_s)),
                Span::styled(
                    paused,
                    Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
                ),
            ]),
            Line::from(vec![
                Span::raw(format!(
                    "{} calls/s, {} records/s, ",
                    per_s(calls),
                    per_s(s.records)
                )),
                bad(lost, s.lost_whole > 0),
                Span::raw(", "),
                bad(
                    format!("{} calls unmeasured", s.calls_unmeasured),
                    s.calls_unmeasured > 0,
                ),
                bad(s.moved_text(), true),
                Span::raw(format!(", {} threads, {slowdown}", s.threads)),
            ]),
            Line::styled(
                format!("{part}; times {times}; by {}", self.keys.choice.by.word()),
                Style::new().fg(Color::DarkGray),
            ),
        ]
    }

    fn table(&self, frame: &mut Frame<'_>, area: Rect) {
        let choice = &self.keys.choice;
        let all = rows(self.snapshot, choice);
        let first = self.keys.first_row.min(all.len().saturating_sub(1));
        let shown: Vec<TableRow<'_>> = all[first..].iter().map(|row| self.row(row)).collect();
        let title = |text: &'static str, by: By| {
            let style = if choice.by == by {
                Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
            } else {
                Style::new().add_modifier(Modifier::BOLD)
            };
            Cell::new(Line::from(text).right_aligned()).style(style)
        };
        let name = Style::new().add_modifier(match choice.by {
            By::Name => Modifier::BOLD | Modifier::UNDERLINED,
            _ => Modifier::BOLD,
        });
        let header = TableRow::new([
            Cell::new("function").style(name),
            title("calls/s", By::Calls),
            title("share", By::Share),
            title("p50", By::P50),
            title("p99", By::P99),
            title("max", By::Max),
            Cell::new("calls/s over time"),
        ]);
        let widths = [
            Constraint::Min(20),
            Constraint::Length(9),
            Constraint::Length(7),
            Constraint::Length(9),
            Constraint::Length(9),
            Constraint::Length(9),
            Constraint::Length(SPARK),
        ];
        frame.render_widget(Table::new(shown, widths).header(header), area);
    }

    fn row(&self, row: &Row) -> TableRow<'_> {
        let name = &self.snapshot.names[row.at];
        let right = |text: String| Cell::new(Line::from(text).right_aligned());
        let quantile = |q| right(self.scale.quantile(q));
        let n = row.numbers;
        let idle = match n.calls {
            0 => Style::new().fg(Color::DarkGray),
            _ => Style::new(),
        };
        TableRow::new([
            Cell::new(Line::from(vec![
                Span::raw(name.function.as_str()),
                Span::styled(
                    format!(" {}", name.module),
                    Style::new().fg(Color::DarkGray),
                ),
            ])),
            right(short(row.calls_per_s)),
            right(format!("{:.1} %", row.share * 100.0)),
            quantile(n.p50),
            quantile(n.p99),
            quantile(n.max),
            Cell::new(spark(self.history.get(row.at), SPARK as usize))
                .style(Style::new().fg(Color::Blue)),
        ])
        .style(idle)
    }

    fn foot(&self) -> Vec<Line<'_>> {
        let filter = &self.keys.choice.filter;
        let line = match (self.keys.typing, filter.is_empty()) {
            (true, _) => format!("filter: {filter}_   (Enter keeps it, Esc clears it)"),
            (false, false) => format!("only names with {filter:?} (Esc: all)   {}", self.message),
            (false, true) => self.message.to_owned(),
        };
        vec![
            Line::styled(line, Style::new().fg(Color::Yellow)),
            Line::styled(
                "q quit+detach  space pause  s save  / filter  < > order  a since start  ↑ ↓ scroll",
                Style::new().fg(Color::DarkGray),
            ),
        ]
    }
}

/// Three digits and a unit.
fn short(n: f64) -> String {
    match n {
        n if n >= 999.5e6 => format!("{:.2} G", n / 1e9),
        n if n >= 99.95e6 => format!("{:.0} M", n / 1e6),
        n if n >= 999.5e3 => format!("{:.2} M", n / 1e6),
        n if n >= 9.995e3 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// The last `width` values, from 0 to their own maximum.
fn spark(values: Option<&VecDeque<f64>>, width: usize) -> String {
    let Some(values) = values else {
        return String::new();
    };
    let shown = values.iter().skip(values.len().saturating_sub(width));
    let most = shown.clone().copied().fold(0.0, f64::max);
    let bar = |v: &f64| {
        if *v > 0.0 {
            BARS[((v / most * 7.0).round() as usize).min(7)]
        } else {
            ' '
        }
    };
    shown.map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::super::names::Name;
    use super::*;
    use crate::top::live::Numbers;
    use hopscope_analyze::Quantile;
    use hopscope_event::TscFrequency;
    use hopscope_report::TimeUnit;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(keys: &Keys) -> String {
        let numbers = |calls, own, max| Numbers {
            calls,
            own_ticks: own,
            p50: Quantile::Ticks(800),
            p99: Quantile::Ticks(4_000),
            max: Quantile::Ticks(max),
        };
        let now = vec![numbers(12_345, 9_000, 90_000), numbers(20, 1_000, 5_000)];
        let name = |function: &str| Name {
            function: function.into(),
            module: "nf".into(),
        };
        let snapshot = Snapshot {
            names: vec![name("acl_match"), name("nat_out")].into(),
            whole: now.clone(),
            now,
            span_s: 1.0,
            since_start_s: 12.0,
            lost: 3,
            lost_whole: 40,
            threads: 2,
            ..Snapshot::default()
        };
        let history = [
            VecDeque::from([1.0, 4.0, 8.0]),
            VecDeque::from([0.0, 0.0, 5.0]),
        ];
        let view = View {
            title: "nf, pid 41",
            scale: Scale::new(TimeUnit::Ns, TscFrequency(2_000_000_000)),
            corrected: true,
            snapshot: &snapshot,
            history: &history,
            keys,
            message: "",
        };
        let mut terminal = Terminal::new(TestBackend::new(110, 10)).expect("in memory");
        terminal.draw(|frame| view.draw(frame)).expect("in memory");
        terminal.backend().to_string()
    }

    #[test]
    fn each_function_has_its_line() {
        let text = screen(&Keys::new(By::Share));
        let line = |name: &str| {
            text.lines()
                .find(|l| l.contains(name))
                .unwrap_or_default()
                .to_owned()
        };
        for part in ["12.3 k", "90.0 %", "400 ns", "2.00 µs", "45.0 µs", "▂▅█"] {
            assert!(line("acl_match").contains(part), "{part} in\n{text}");
        }
        assert!(line("nat_out").contains("10.0 %"), "{text}");
        assert!(text.contains("3 lost (40 since the start)"), "{text}");
    }

    #[test]
    fn a_filter_hides_the_others() {
        let mut keys = Keys::new(By::Share);
        keys.choice.filter = "nat".into();
        let text = screen(&keys);
        assert!(
            !text.contains("acl_match") && text.contains("nat_out"),
            "{text}"
        );
    }
}
