//! The call tree for the page's flame graph: what is too narrow to be seen is added up, and said.
use super::text;
use crate::recording::Names;
use hopscope_analyze::tree::Parent;
use hopscope_analyze::{AnalysisResult, NodeIx};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Parts of the whole below which a node is not drawn.
const NARROWEST: i128 = 4_000;
const NODES_MAX: usize = 4_000;

/// Nodes in an order in which each comes after its parent; `parent` is a place in the list or −1.
pub(crate) fn json(names: &Names<'_>, outcome: &AnalysisResult) -> Value {
    let tree = &outcome.tree;
    let mut children: BTreeMap<Parent, Vec<NodeIx>> = BTreeMap::new();
    for (ix, node) in (0..).map(NodeIx).zip(tree.nodes()) {
        children.entry(node.parent).or_default().push(ix);
    }
    let roots = [Parent::Root, Parent::AfterGap, Parent::Beyond];
    let list = |of: Parent| children.get(&of).into_iter().flatten().copied();
    // Totals of calls beyond the bounds are in those of their callers, too.
    let width = |ix: NodeIx| match tree.node(ix) {
        node if node.parent == Parent::Beyond => node.self_ticks,
        node => node.ticks,
    };
    let whole: i128 = roots.into_iter().flat_map(list).map(width).sum();
    let mut nodes = Vec::new();
    let (mut hidden, mut hidden_ticks) = (0u64, 0i128);
    let mut open: Vec<(NodeIx, i64)> = roots
        .into_iter()
        .flat_map(list)
        .map(|ix| (ix, -1))
        .collect();
    while let Some((ix, parent)) = open.pop() {
        let node = tree.node(ix);
        if width(ix) * NARROWEST < whole || nodes.len() >= NODES_MAX {
            hidden += 1;
            hidden_ticks += node.self_ticks;
            // What lies above a hidden node is narrower still.
            let mut above: Vec<NodeIx> = list(Parent::Node(ix)).collect();
            while let Some(ix) = above.pop() {
                hidden += 1;
                hidden_ticks += tree.node(ix).self_ticks;
                above.extend(list(Parent::Node(ix)));
            }
            continue;
        }
        let place = nodes.len() as i64;
        nodes.push(json!({
            "parent": parent,
            "name": text::name(&names.function(node.function)),
            "module": names.function_entry(node.function).map(|f| f.module.0),
            "calls": node.calls,
            "ticks": width(ix) as f64,
            "self": node.self_ticks as f64,
            "max": node.max_ticks,
            "callers": match node.parent {
                Parent::AfterGap => "unknown after a loss of records",
                Parent::Beyond => "not kept: the tree is full",
                Parent::Root | Parent::Node(_) => "",
            },
        }));
        open.extend(list(Parent::Node(ix)).map(|ix| (ix, place)));
    }
    json!({"nodes": nodes, "whole": whole as f64, "hidden": hidden, "hidden_ticks": hidden_ticks as f64})
}
