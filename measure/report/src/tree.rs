//! Call paths, each below its caller with its share of the caller's time.
mod limits;

pub use limits::PathLimits;
pub(crate) use limits::{Hidden, Shown};

use crate::order::Sort;
use crate::recording::Names;
use crate::units::{Scale, grouped, share};
use hopscope_analyze::{AnalysisResult, Correction, Node, NodeIx, tree::Parent};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Callees of each place, in order.
pub(crate) type Children = BTreeMap<Parent, Vec<NodeIx>>;

pub(crate) fn total(node: &Node, correction: Option<&Correction>) -> i128 {
    let raw = node.ticks;
    correction.map_or(raw, |c| node.corrected_total(c).median)
}

pub(crate) fn own(node: &Node, correction: Option<&Correction>) -> i128 {
    let raw = node.self_ticks;
    correction.map_or(raw, |c| node.corrected_own(c).median)
}

pub(crate) fn children(names: &Names<'_>, outcome: &AnalysisResult, sort: Sort) -> Children {
    let correction = outcome.correction.as_ref();
    let mut children = Children::new();
    for (ix, node) in outcome.tree.nodes().iter().enumerate() {
        children
            .entry(node.parent)
            .or_default()
            .push(NodeIx(ix as u32));
    }
    let totals = limits::totals(outcome, &children);
    let size = |ix: NodeIx, node: &Node| match sort {
        Sort::Total => totals[ix.0 as usize],
        Sort::SelfTime => own(node, correction),
        Sort::Calls => i128::from(node.entries),
        // Paths keep no distribution; the mean orders as well as anything.
        Sort::P50 | Sort::P99 => total(node, correction) / i128::from(node.calls.max(1)),
        Sort::Max => i128::from(node.max_ticks),
        Sort::Name => 0,
    };
    for list in children.values_mut() {
        list.sort_by_cached_key(|ix| {
            let node = outcome.tree.node(*ix);
            (
                std::cmp::Reverse(size(*ix, node)),
                names.qualified(node.function),
                *ix,
            )
        });
    }
    children
}

/// Rows for people, if they do not say.
const LISTED: usize = 1000;

const TITLES: [(Parent, &str); 3] = [
    (Parent::Root, ""),
    (
        Parent::AfterGap,
        "callers unknown, records before were lost:",
    ),
    (
        Parent::Beyond,
        "too deep, or dropped for lack of room, by function only:",
    ),
];

pub(crate) fn write(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &AnalysisResult,
    scale: &Scale,
    sort: Sort,
    limits: PathLimits,
) -> io::Result<()> {
    let correction = outcome.correction.as_ref();
    let children = children(names, outcome, sort);
    let shown = |node: &Node| node.entries > 0 || node.calls > 0;
    if !outcome.tree.nodes().iter().any(shown) {
        return writeln!(out, "no calls");
    }
    let limits = PathLimits {
        number: limits.number.or(Some(LISTED)),
        ..limits
    };
    let shown = Shown::of(outcome, &children, limits);
    missing(out, outcome, &children, &shown)?;
    match correction {
        Some(_) => writeln!(out, "times are corrected for the median probe cost")?,
        None => writeln!(out, "times are not corrected")?,
    }
    writeln!(
        out,
        "{:>13} {:>8} {:>13} {:>11} {:>13}  call path",
        "total", "share", "self", "calls", "max raw"
    )?;
    for (place, title) in TITLES {
        let Some(list) = children.get(&place) else {
            continue;
        };
        if !title.is_empty() {
            writeln!(out, "{title}")?;
        }
        let whole = match place {
            // Such calls may lie in one another: only own times add up.
            Parent::Beyond => {
                let own = list
                    .iter()
                    .map(|ix| own(outcome.tree.node(*ix), correction));
                own.sum()
            }
            _ => list.iter().map(|ix| shown.total(*ix)).sum(),
        };
        let rest = |place: Parent, depth: usize, whole: i128| {
            let hidden = shown.hidden(outcome, &children, place, correction);
            hidden.map(|hidden| (Line::Rest(hidden), depth, whole))
        };
        // A stack of our own: paths may be deeper than ours. What is added up comes last.
        let lines = |list: &[NodeIx], depth: usize, whole: i128| -> Vec<_> {
            let paths = list.iter().rev().filter(|ix| shown.is(**ix));
            paths.map(|ix| (Line::Path(*ix), depth, whole)).collect()
        };
        let mut open: Vec<_> = rest(place, 0, whole).into_iter().collect();
        open.extend(lines(list, 0, whole));
        while let Some((line, depth, parent_total)) = open.pop() {
            let ix = match line {
                Line::Path(ix) => ix,
                Line::Rest(hidden) => {
                    added_up(out, scale, &hidden, depth, parent_total)?;
                    continue;
                }
            };
            let node = outcome.tree.node(ix);
            let all = shown.total(ix);
            open.extend(rest(Parent::Node(ix), depth + 1, all));
            if let Some(list) = children.get(&Parent::Node(ix)) {
                open.extend(lines(list, depth + 1, all));
            }
            let max = match node.calls {
                0 => "-".to_owned(),
                _ => scale.text(i128::from(node.max_ticks)),
            };
            let at_least = if shown.at_least(node) {
                format!(">= {}", scale.text(all))
            } else {
                scale.text(all)
            };
            writeln!(
                out,
                "{at_least:>13} {:>8} {:>13} {:>11} {:>13}  {:indent$}{}{}",
                share(all, parent_total),
                scale.text(own(node, correction)),
                grouped(node.calls),
                max,
                "",
                names.qualified(node.function),
                tail(names, node),
                indent = depth * 2,
            )?;
        }
    }
    Ok(())
}

enum Line {
    Path(NodeIx),
    Rest(Hidden),
}

fn added_up(
    out: &mut impl Write,
    scale: &Scale,
    hidden: &Hidden,
    depth: usize,
    whole: i128,
) -> io::Result<()> {
    writeln!(
        out,
        "{:>13} {:>8} {:>13} {:>11} {:>13}  {:indent$}({} more paths)",
        scale.text(hidden.total),
        share(hidden.total, whole),
        scale.text(hidden.own),
        grouped(hidden.calls),
        "",
        "",
        grouped(hidden.paths),
        indent = depth * 2,
    )
}

/// What the tree below lacks.
fn missing(
    out: &mut impl Write,
    outcome: &AnalysisResult,
    children: &Children,
    shown: &Shown,
) -> io::Result<()> {
    let nodes = outcome.tree.nodes();
    let all: u64 = nodes.iter().map(|n| n.entries).sum();
    let of = |place: Parent| -> u64 {
        let mut open: Vec<NodeIx> = children.get(&place).cloned().unwrap_or_default();
        let mut entries = 0;
        while let Some(ix) = open.pop() {
            entries += outcome.tree.node(ix).entries;
            open.extend(children.get(&Parent::Node(ix)).into_iter().flatten());
        }
        entries
    };
    let unfinished: u64 = nodes
        .iter()
        .map(|n| n.entries.saturating_sub(n.calls))
        .sum();
    let beyond = match outcome.tree.dropped_paths() {
        0 => "calls lack their path, being too deep: by function, at the end".to_owned(),
        n => format!(
            "calls lack their path: the tree was full, and {} times the path with the least time was \
             dropped; by function, at the end",
            grouped(n)
        ),
    };
    let lines = [
        (
            of(Parent::AfterGap),
            "calls lack their callers: records before them were lost".to_owned(),
        ),
        (of(Parent::Beyond), beyond),
        (
            unfinished,
            "calls have no known exit; only their callees are counted: >=".to_owned(),
        ),
    ];
    for (calls, what) in lines.iter().filter(|(calls, _)| *calls > 0) {
        let share = share((*calls).into(), all.into());
        writeln!(
            out,
            "{:>14}  {what} ({share} of all calls)",
            grouped(*calls)
        )?;
    }
    let left_out = nodes.len() as u64 - shown.count();
    if left_out > 0 {
        writeln!(
            out,
            "{:>14}  paths of {} are shown, those with most time; the others are added up. -n, --depth and \
             --min-share choose",
            grouped(shown.count()),
            grouped(nodes.len() as u64)
        )?;
    }
    Ok(())
}

fn tail(names: &Names<'_>, node: &Node) -> String {
    let Some(from) = node.tail_from else {
        return String::new();
    };
    let from = if node.tail_from_several() {
        "several functions".to_owned()
    } else {
        names.function(from)
    };
    format!("  ({} by a jump from {from})", grouped(node.tail_called))
}
