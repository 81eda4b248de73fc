//! Pieces of a function that lie elsewhere (`.cold`): whose are they?
use super::eh_frame::Fde;
use super::functions::Function;
use std::collections::HashMap;
use std::ops::Range;

/// Gives each piece to the function whose name it carries. Static functions of several source
/// files may share a name; pieces of such are returned.
pub fn attach_by_name(
    functions: &mut [Function],
    pieces: Vec<(String, Range<u64>)>,
    fdes: &HashMap<u64, &Fde>,
) -> Vec<Range<u64>> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, f) in functions.iter().enumerate() {
        for name in std::iter::once(&f.raw_name).chain(&f.aliases) {
            by_name.entry(name).or_default().push(i);
        }
    }
    let mut owned = Vec::new();
    let mut orphans = Vec::new();
    for (parent, range) in pieces.into_iter().filter(|(_, range)| !range.is_empty()) {
        match by_name.get(parent.as_str()).map(Vec::as_slice) {
            Some([owner]) => owned.push((*owner, range)),
            _ => orphans.push(range),
        }
    }
    for (owner, range) in owned {
        give(&mut functions[owner], range, fdes);
    }
    orphans
}

/// Gives each of `orphans` to the only function that jumps into it. A piece that several jump
/// into stays where it is: jumps to it then count as leaving the function, which they do.
pub fn attach_by_jumps(
    functions: &mut [Function],
    orphans: &[Range<u64>],
    jumps: &[(u64, u64)],
    fdes: &HashMap<u64, &Fde>,
) {
    let holder = |at: u64| {
        let i = functions.partition_point(|f| f.svma <= at).checked_sub(1)?;
        (at - functions[i].svma < functions[i].size).then_some(i)
    };
    let mut owners: Vec<Option<Owner>> = vec![None; orphans.len()];
    for (from, to) in jumps {
        let Some(n) = piece_at(orphans, *to) else {
            continue;
        };
        if orphans[n].contains(from) {
            continue;
        }
        let jumper = holder(*from).map_or(Owner::Unclear, Owner::Sole);
        owners[n] = match owners[n] {
            None => Some(jumper),
            Some(known) if known == jumper => Some(known),
            Some(_) => Some(Owner::Unclear),
        };
    }
    for (range, owner) in orphans.iter().zip(owners) {
        if let Some(Owner::Sole(i)) = owner {
            give(&mut functions[i], range.clone(), fdes);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Sole(usize),
    Unclear,
}

/// The one of ascending `pieces` that holds `at`.
pub fn piece_at(pieces: &[Range<u64>], at: u64) -> Option<usize> {
    let n = pieces.partition_point(|r| r.start <= at).checked_sub(1)?;
    pieces[n].contains(&at).then_some(n)
}

fn give(function: &mut Function, range: Range<u64>, fdes: &HashMap<u64, &Fde>) {
    // Landing pads of the hot part often lie in the cold one.
    function.has_lsda |= fdes.get(&range.start).is_some_and(|f| f.has_lsda);
    let entry = function.svma..function.svma.saturating_add(function.size);
    let overlaps = |r: &Range<u64>| r.start < range.end && range.start < r.end;
    if !overlaps(&entry) && !function.fragments.iter().any(overlaps) {
        function.fragments.push(range);
    }
}
