//! On which edges of a unit something is recorded.
use super::flow::Body;
use super::places::Place;
use super::{Crossing, Crossings, Edge};
use crate::instrument::body::unit::Unit;
use crate::locate::{FrameAddress, FrameRules};
use hopscope_event::record::RecordKind;
use std::collections::HashSet;

pub(super) fn crossings(
    body: &Body,
    unit: &Unit,
    places: &[Place],
    rules: &FrameRules,
) -> Crossings<usize> {
    let mut within: Vec<Vec<usize>> = vec![Vec::new(); body.insns.len()];
    for (n, place) in places.iter().enumerate() {
        if place.refused.is_none() {
            let members = place.runs.iter().flat_map(Clone::clone);
            members.for_each(|at| within[at].push(n));
        }
    }
    let on_the_way: Vec<HashSet<usize>> = places.iter().map(|p| body.on_the_way(p)).collect();
    let goes_on = |from: &[usize], n: usize, at: Option<usize>| {
        let same = |m: &&usize| {
            let (one, other) = (&places[**m], &places[n]);
            one.function == other.function && one.level == other.level
        };
        let is_behind = at.is_some_and(|at| !on_the_way[n].contains(&at));
        let is_known = !places[n].begins.is_empty();
        let one = from.iter().find(same).filter(|_| is_behind && is_known);
        one.map(|one| (*one, n))
    };
    let mut crossings = Crossings::default();
    let mut add = |edge: Edge, from: &[usize], to: &[usize]| {
        let at = edge.1.or(edge.0).unwrap_or(0);
        let crossing = |n: usize, kind| {
            let position = shown(rules.at(at)?, places[n].level);
            Some(Crossing {
                function: n,
                kind,
                position,
            })
        };
        let there = edge.1.and_then(|svma| body.number(svma));
        // From one place to what it has in common with another one of the same function.
        let entered = to.iter().filter(|n| !from.contains(n));
        let same = entered.map_while(|n| goes_on(from, *n, there));
        let same: Vec<(usize, usize)> = same.collect();
        let left = from.iter().rev().filter(|n| !to.contains(n));
        let left = left.filter(|n| same.iter().all(|(left, _)| left != *n));
        let entered = to.iter().filter(|n| !from.contains(n));
        let entered = entered.filter(|n| same.iter().all(|(_, entered)| entered != *n));
        let left = left.filter_map(|n| crossing(*n, RecordKind::Exit));
        let all = left.chain(entered.filter_map(|n| crossing(*n, RecordKind::Entry)));
        let all: Vec<Crossing<usize>> = all.collect();
        if !all.is_empty() {
            crossings.edges.insert(edge, all);
        }
    };
    // What the caller comes into at once, and who is led here amid a call.
    let begins = std::iter::once(unit.entry).chain(unit.back_edges().map(|edge| edge.target));
    for begin in begins {
        if let Some(first) = body.number(begin) {
            add((None, Some(begin)), &[], &within[first]);
        }
    }
    for at in 0..body.insns.len() {
        for to in body.successors(at) {
            let there = to.and_then(|svma| body.number(svma));
            let there = there.map_or(&[][..], |at| &within[at]);
            add((Some(body.insns[at].svma), to), &within[at], there);
        }
    }
    for (call, pad) in &body.landed {
        if let (Some(from), Some(to)) = (body.number(*call), body.number(*pad)) {
            add((Some(*call), Some(*pad)), &within[from], &within[to]);
        }
    }
    crossings.landings = body.landed.clone();
    crossings
}

/// The word of a level: below the return address.
pub(super) fn shown(frame: FrameAddress, level: u32) -> FrameAddress {
    let below = 8 + 8 * level as i32;
    match frame {
        FrameAddress::Rsp(offset) => FrameAddress::Rsp(offset.wrapping_sub(below)),
        FrameAddress::Rbp(offset) => FrameAddress::Rbp(offset.wrapping_sub(below)),
    }
}
