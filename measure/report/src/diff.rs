//! Two recordings side by side, for people and for programs.
use crate::json_line::line;
use crate::printable_text::printable;
use crate::units::{grouped, ns_text};
use hopscope_analyze::diff::{Compared, Estimate, Settings, Shift, Verdict};
use serde_json::{Value, json};
use std::io::{self, Write};

/// A row of both.
#[derive(Debug, Clone)]
pub struct DiffRow {
    pub name: String,
    pub compared: Compared,
}

/// Everything but the rows.
#[derive(Debug, Clone)]
pub struct DiffHead {
    pub files: [String; 2],
    /// What of each recording is missing or doubtful, in words.
    pub doubts: [Vec<String>; 2],
    /// Rows that only one of them has.
    pub only: [Vec<String>; 2],
    /// Whose times, and why these: `own time of a call, as measured (…)`.
    pub times: String,
    /// What rows count: calls, packets.
    pub of: &'static str,
    pub settings: Settings,
    pub fail_above: Option<f64>,
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::Both => "both",
        Verdict::TooFew => "too few",
    }
}

fn differs(row: &DiffRow) -> bool {
    matches!(
        row.compared.verdict,
        Verdict::Slower | Verdict::Faster | Verdict::Both
    )
}

/// Largest shift that differs, as a part of A; the sign is lost.
fn largest(row: &DiffRow, settings: Settings) -> f64 {
    let shifts = row.compared.beyond(settings).map(|(_, s)| s.part().abs());
    shifts.fold(0.0, f64::max)
}

impl DiffHead {
    /// Rows with a figure that is slower beyond noise and by more than was asked for.
    pub fn failing<'a>(&self, rows: &'a [DiffRow]) -> Vec<&'a DiffRow> {
        let Some(limit) = self.fail_above else {
            return Vec::new();
        };
        let fails = |row: &&DiffRow| {
            let mut beyond = row.compared.beyond(self.settings);
            beyond.any(|(_, s)| s.part() > limit)
        };
        rows.iter().filter(fails).collect()
    }
}

/// What differs first, by size; then by name.
pub fn sort_diff(rows: &mut [DiffRow], settings: Settings) {
    rows.sort_by(|x, y| {
        let key = |row: &DiffRow| (differs(row), largest(row, settings));
        let ((dx, sx), (dy, sy)) = (key(x), key(y));
        dy.cmp(&dx)
            .then(sy.total_cmp(&sx))
            .then_with(|| x.name.cmp(&y.name))
    });
}

fn percent(part: f64) -> String {
    match part {
        p if p.is_nan() => "-".to_owned(),
        p if p == f64::INFINITY => "+∞".to_owned(),
        p => format!("{:+.1} %", p * 100.0),
    }
}

fn shift_text(shift: &Shift) -> String {
    let Estimate { low, high, .. } = shift.ratio;
    format!(
        "{:>9} -> {:<9} {:>9} ({} .. {})",
        ns_text(shift.a.value / 10.0),
        ns_text(shift.b.value / 10.0),
        percent(shift.part()),
        percent(low - 1.0),
        percent(high - 1.0)
    )
}

/// A line a row; `is_verbose`: with every figure's interval.
///
/// # Errors
/// Those of `out`.
pub fn write_diff(
    out: &mut impl Write,
    head: &DiffHead,
    rows: &[DiffRow],
    is_verbose: bool,
) -> io::Result<()> {
    for (letter, (file, doubts)) in ["A", "B"].iter().zip(head.files.iter().zip(&head.doubts)) {
        writeln!(out, "{letter}          {}", printable(file))?;
        for doubt in doubts {
            writeln!(out, "           {}", printable(doubt))?;
        }
    }
    let confidence = 100.0 * (1.0 - head.settings.alpha);
    writeln!(out, "times      {}", printable(&head.times))?;
    writeln!(
        out,
        "noise      shifts below {:.1} % are noise; the intervals hold all together at {confidence:.0} %; * beyond noise, ~ the same but not judged\n",
        head.settings.floor * 100.0
    )?;
    if !is_verbose && !rows.is_empty() {
        heading(out, head)?;
    }
    for row in rows {
        if is_verbose {
            details(out, head, row)?
        } else {
            in_a_line(out, head, row)?
        }
    }
    for (letter, only) in ["A", "B"].iter().zip(&head.only) {
        for name in only {
            writeln!(out, "only {letter}   {}", printable(name))?;
        }
    }
    closing(out, head, rows)
}

/// Names come last: they may be long.
fn heading(out: &mut impl Write, head: &DiffHead) -> io::Result<()> {
    let of = head.of;
    writeln!(
        out,
        "{:<8} {:>9}    {:<9} {:>11} {:>21} {:>11} {:>11} {:>11} {:>11}  name",
        "verdict",
        "p50 of A",
        "of B",
        "p50",
        "interval",
        "p99",
        "mean",
        format!("{of} A"),
        format!("{of} B")
    )
}

fn in_a_line(out: &mut impl Write, head: &DiffHead, row: &DiffRow) -> io::Result<()> {
    let c = &row.compared;
    let [a, b] = c.n.map(grouped);
    let name = printable(&row.name);
    let verdict = word(c.verdict);
    if c.verdict == Verdict::TooFew {
        return writeln!(out, "{verdict:<8} {a:>91} {b:>11}  {name}");
    }
    let figures = c.figures();
    let [p50, p99, mean] = [0, 1, 2].map(|at| {
        let (_, shift) = &figures[at];
        format!("{} {}", mark(shift, head, at), percent(shift.part()))
    });
    let (_, shift) = &figures[0];
    let Estimate { low, high, .. } = shift.ratio;
    let interval = format!("({} .. {})", percent(low - 1.0), percent(high - 1.0));
    writeln!(
        out,
        "{verdict:<8} {:>9} -> {:<9} {p50:>11} {interval:>21} {p99:>11} {mean:>11} {a:>11} {b:>11}  {name}",
        ns_text(shift.a.value / 10.0),
        ns_text(shift.b.value / 10.0),
    )
}

fn mark(shift: &Shift, head: &DiffHead, figure: usize) -> &'static str {
    match (
        shift.is_beyond(head.settings.floor),
        head.settings.judged[figure],
    ) {
        (true, true) => "*",
        (true, false) => "~",
        (false, _) => " ",
    }
}

fn details(out: &mut impl Write, head: &DiffHead, row: &DiffRow) -> io::Result<()> {
    let c = &row.compared;
    writeln!(
        out,
        "{:<8} {}: {} and {} {}",
        word(c.verdict),
        printable(&row.name),
        grouped(c.n[0]),
        grouped(c.n[1]),
        head.of
    )?;
    if c.verdict == Verdict::TooFew {
        return Ok(());
    }
    for (at, (name, shift)) in c.figures().into_iter().enumerate() {
        let mark = mark(shift, head, at);
        writeln!(out, "       {mark} {name:<5} {}", shift_text(shift))?;
    }
    let s = c.superiority;
    let one = head.of.trim_end_matches('s');
    writeln!(
        out,
        "         of one {one} of each, B's is the longer in {:.1} % ({:.1} .. {:.1})",
        s.value * 100.0,
        s.low * 100.0,
        s.high * 100.0
    )?;
    if c.negative != [0, 0] {
        let [a, b] = c.negative.map(grouped);
        writeln!(
            out,
            "         below zero, taken for 0: {a} and {b} {}",
            head.of
        )?;
    }
    Ok(())
}

fn closing(out: &mut impl Write, head: &DiffHead, rows: &[DiffRow]) -> io::Result<()> {
    let differing = rows.iter().filter(|r| differs(r)).count();
    let few = rows
        .iter()
        .filter(|r| r.compared.verdict == Verdict::TooFew);
    let few = few.count();
    let judged = rows.len() - few;
    match (judged, differing) {
        (0, _) => writeln!(
            out,
            "\nnothing to judge: no row has enough {} in both",
            head.of
        )?,
        (_, 0) => writeln!(out, "\nno difference beyond noise in {judged} rows")?,
        (_, n) => writeln!(out, "\n{n} of {judged} rows differ beyond noise")?,
    }
    if few > 0 {
        writeln!(out, "{few} rows have too few {} for a verdict", head.of)?;
    }
    let Some(limit) = head.fail_above else {
        return Ok(());
    };
    let failing: Vec<_> = head
        .failing(rows)
        .iter()
        .map(|r| printable(&r.name))
        .collect();
    if failing.is_empty() {
        writeln!(out, "none is slower by more than {:.1} %", limit * 100.0)
    } else {
        writeln!(
            out,
            "slower by more than {:.1} %: {}",
            limit * 100.0,
            failing.join(", ")
        )
    }
}

fn number(value: f64) -> Value {
    // JSON has neither infinity nor NaN: absent.
    serde_json::Number::from_f64((value * 1e6).round() / 1e6).map_or(Value::Null, Value::Number)
}

fn figure(object: &mut Value, name: &str, shift: &Shift, floor: f64) {
    let mut put = |field: &str, value| object[format!("{name}_{field}")] = value;
    for (side, e) in [("a", shift.a), ("b", shift.b)] {
        put(&format!("{side}_ns"), number(e.value / 10.0));
        put(&format!("{side}_low_ns"), number(e.low / 10.0));
        put(&format!("{side}_high_ns"), number(e.high / 10.0));
    }
    put("shift_percent", number(shift.part() * 100.0));
    put("shift_low_percent", number((shift.ratio.low - 1.0) * 100.0));
    put(
        "shift_high_percent",
        number((shift.ratio.high - 1.0) * 100.0),
    );
    put("beyond_noise", shift.is_beyond(floor).into());
}

/// One object a line; bounds that nothing bounds are `null`.
///
/// # Errors
/// Those of `out`.
pub fn write_diff_json(out: &mut impl Write, head: &DiffHead, rows: &[DiffRow]) -> io::Result<()> {
    for row in rows {
        let c = &row.compared;
        let mut o = json!({
            "type": "row", "schema": 1, "name": row.name, "verdict": word(c.verdict).replace(' ', "_"),
            "calls_a": c.n[0], "calls_b": c.n[1],
            "negative_a": c.negative[0], "negative_b": c.negative[1],
        });
        if c.verdict != Verdict::TooFew {
            for ((name, shift), judged) in c.figures().into_iter().zip(head.settings.judged) {
                figure(&mut o, name, shift, head.settings.floor);
                o[format!("{name}_judged")] = judged.into();
            }
            o["superiority"] = number(c.superiority.value);
            o["superiority_low"] = number(c.superiority.low);
            o["superiority_high"] = number(c.superiority.high);
        }
        line(out, &o)?;
    }
    let failing: Vec<_> = head.failing(rows).iter().map(|r| r.name.as_str()).collect();
    let summary = json!({
        "type": "summary",
        "schema": 1,
        "a": head.files[0],
        "b": head.files[1],
        "a_missing_or_doubtful": head.doubts[0],
        "b_missing_or_doubtful": head.doubts[1],
        "only_a": head.only[0],
        "only_b": head.only[1],
        "times": head.times,
        "floor_percent": number(head.settings.floor * 100.0),
        "alpha": head.settings.alpha,
        "rows": rows.len(),
        "too_few": rows.iter().filter(|r| r.compared.verdict == Verdict::TooFew).count(),
        "differing": rows.iter().filter(|r| differs(r)).count(),
        "fail_above_percent": head.fail_above.map(|l| l * 100.0),
        "failing": failing,
    });
    line(out, &summary)
}
