//! Call paths, each below its caller with its share of the caller's time.
use crate::order::Sort;
use crate::recording::Names;
use crate::units::{Scale, grouped, share};
use hopscope_analyze::{Correction, Node, NodeIx, Outcome, tree::Parent};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Callees of each place, in order.
pub(crate) type Children = BTreeMap<Parent, Vec<NodeIx>>;

pub(crate) fn total(node: &Node, correction: Option<&Correction>) -> i128 {
    let raw = node.ticks;
    correction.map_or(raw, |c| {
        c.inclusive_sum(raw, node.calls, node.descendants).median
    })
}

pub(crate) fn own(node: &Node, correction: Option<&Correction>) -> i128 {
    let raw = node.self_ticks;
    correction.map_or(raw, |c| c.own_sum(raw, node.calls, node.callees).median)
}

pub(crate) fn children(names: &Names<'_>, outcome: &Outcome, sort: Sort) -> Children {
    let correction = outcome.correction.as_ref();
    let mut children = Children::new();
    for (ix, node) in outcome.tree.nodes().iter().enumerate() {
        children
            .entry(node.parent)
            .or_default()
            .push(NodeIx(ix as u32));
    }
    let size = |node: &Node| match sort {
        Sort::Total => total(node, correction),
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
                std::cmp::Reverse(size(node)),
                names.qualified(node.function),
                *ix,
            )
        });
    }
    children
}

pub(crate) fn write(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &Outcome,
    scale: &Scale,
    sort: Sort,
) -> io::Result<()> {
    let correction = outcome.correction.as_ref();
    let children = children(names, outcome, sort);
    let shown = |node: &Node| node.entries > 0 || node.calls > 0;
    if !outcome.tree.nodes().iter().any(shown) {
        return writeln!(out, "no calls");
    }
    match correction {
        Some(_) => writeln!(out, "times are corrected for the median probe cost")?,
        None => writeln!(out, "times are not corrected")?,
    }
    writeln!(
        out,
        "{:>13} {:>8} {:>13} {:>11} {:>13}  call path",
        "total", "share", "self", "calls", "max raw"
    )?;
    for (place, title) in [
        (Parent::Root, ""),
        (
            Parent::AfterGap,
            "callers unknown, records before were lost:",
        ),
        (
            Parent::Beyond,
            "too deep or too many paths, by function only:",
        ),
    ] {
        let Some(list) = children.get(&place) else {
            continue;
        };
        if !title.is_empty() {
            writeln!(out, "{title}")?;
        }
        let whole = list
            .iter()
            .map(|ix| total(outcome.tree.node(*ix), correction))
            .sum();
        // A stack of our own: paths may be deeper than ours.
        let mut open: Vec<_> = list.iter().rev().map(|ix| (*ix, 0usize, whole)).collect();
        while let Some((ix, depth, parent_total)) = open.pop() {
            let node = outcome.tree.node(ix);
            let all = total(node, correction);
            if let Some(list) = children.get(&Parent::Node(ix)) {
                open.extend(list.iter().rev().map(|ix| (*ix, depth + 1, all)));
            }
            let max = match node.calls {
                0 => "-".to_owned(),
                _ => scale.text(i128::from(node.max_ticks)),
            };
            writeln!(
                out,
                "{:>13} {:>8} {:>13} {:>11} {:>13}  {:indent$}{}{}",
                scale.text(all),
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

fn tail(names: &Names<'_>, node: &Node) -> String {
    let Some(from) = node.tail_from else {
        return String::new();
    };
    let from = match node.tail_from_several() {
        true => "several functions".to_owned(),
        false => names.function(from),
    };
    format!("  ({} by a jump from {from})", grouped(node.tail_called))
}
