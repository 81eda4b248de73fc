//! Pieces of a function that lie elsewhere (`.cold`): whose are they?
use super::eh_frame::Fde;
use super::functions::Function;
use super::names::fragment_of;
use std::collections::HashMap;
use std::ops::Range;

/// Gives each piece, by its own name, to the function whose name it carries. Static functions of
/// several source files may share a name; pieces of such are returned.
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
    for (name, range) in pieces {
        let parent = fragment_of(&name).unwrap_or_default();
        match by_name.get(parent).map(Vec::as_slice) {
            Some([owner]) => owned.push((*owner, range)),
            _ => orphans.push(range),
        }
    }
    for (owner, range) in owned {
        give(&mut functions[owner], range, fdes);
    }
    orphans
}

/// More pieces than any compiler makes of one function.
const MOST_PIECES: usize = 1_000;

pub fn give(function: &mut Function, range: Range<u64>, fdes: &HashMap<u64, &Fde>) {
    // Landing pads of the hot part often lie in the cold one.
    function.has_lsda |= fdes.get(&range.start).is_some_and(|f| f.has_lsda);
    let entry = function.svma..function.svma.saturating_add(function.size);
    let overlaps = |r: &Range<u64>| r.start < range.end && range.start < r.end;
    let has_room = function.fragments.len() < MOST_PIECES;
    if has_room && !overlaps(&entry) && !function.fragments.iter().any(overlaps) {
        function.fragments.push(range);
    }
}
