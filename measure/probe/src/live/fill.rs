//! What is mapped filled: copies linked, and the table of what is to lead there.
use super::arena_table::write_table;
use super::build::{self, Linked};
use super::error::LiveError;
use super::led_slot::GotPatch;
use super::place::Places;
use super::site::{self, Patch};
use super::standing::{self, LateRefusals, Loads};
use super::table::{LedLoop, PatchTable, State};
use crate::instrument::body::Refusal;
use hopscope_event::FunctionId;
use hopscope_process::maps::Mapping;
use hopscope_process::memory::TargetMemory;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Links the segments, writes them and the patch table into the arena. What is no longer there to
/// be patched is left out.
pub(super) fn fill(
    pid: i32,
    memory: &TargetMemory,
    segments: Vec<build::Segment>,
    (places, arena, mappings): (&Places, &File, &[Mapping]),
    moved: &HashSet<FunctionId>,
    table: &mut PatchTable,
) -> Result<(Vec<Linked>, LateRefusals), LiveError> {
    let (mut linked, mut gone) = (Vec::new(), Vec::new());
    let mut offset = places.header.len;
    for (segment, area) in segments.into_iter().zip(&places.segments) {
        let mut l = segment.link(area.at)?;
        drop(segment);
        gone.extend(l.refused.iter().map(|(id, why)| (*id, why.to_string())));
        assert!(
            l.code.len() as u64 <= area.len,
            "as long as it was when its place was chosen"
        );
        arena
            .write_all_at(&l.code, offset)
            .map_err(LiveError::io(pid, "writing the copies"))?;
        offset += area.len;
        standing::arrived(pid, memory, l.at, &l.code)?;
        l.code = Vec::new();
        linked.push(l);
    }
    let (mut patches, mut loops, mut slots) = (Vec::new(), Vec::new(), Vec::new());
    let mut loads = Loads::new(pid, mappings);
    for entry in linked.iter().flat_map(|l: &Linked| &l.entries) {
        let mut original = [0u8; 5];
        let is_gone = moved.contains(&entry.id);
        if is_gone || memory.read(entry.patch_at, &mut original).is_err() {
            gone.push((entry.id, standing::GONE.to_owned()));
            continue;
        }
        if let Some(led) = &entry.slots {
            let there = led.iter().filter(|slot| loads.has(slot.load));
            let before = slots.len();
            slots.extend(there.map(|slot| GotPatch {
                at: slot.at,
                function: entry.pieces[0].start,
                found: slot.found,
                replaced: entry.copy_at,
            }));
            if slots.len() == before {
                gone.push((entry.id, standing::GONE.to_owned()));
            }
            continue;
        }
        let Some(replaced) = entry.jump() else {
            continue;
        };
        patches.push(Patch {
            at: entry.patch_at,
            original,
            replaced,
        });
        for one in &entry.loops {
            let mut original = [0u8; 5];
            if memory.read(one.at, &mut original).is_err() {
                continue;
            }
            let Some(replaced) = site::jump(original[0], one.at, one.copy_at) else {
                continue;
            };
            patches.push(Patch {
                at: one.at,
                original,
                replaced,
            });
            loops.push(LedLoop {
                at: one.at,
                back: one.back,
            });
        }
    }
    let not_linked = linked.iter().flat_map(|l| &l.refused).next();
    let is_nothing = patches.is_empty() && slots.is_empty();
    if let (true, Some((_, Refusal::NotLinked(why)))) = (is_nothing, not_linked) {
        return Err(build::BuildError::from(why.clone()).into());
    }
    patches.sort_by_key(|p| p.at);
    loops.sort_by_key(|l| l.at);
    leave_out_overlapping(&mut patches, &mut loops);
    slots.sort_unstable();
    (table.patches, table.loops, table.slots) = (patches, loops, slots);
    table.fused = linked.iter().flat_map(|l| &l.fused).copied().collect();
    table.fused.sort_unstable();
    // Whoever detaches reads no other table.
    table.check()?;
    write_table(pid, arena, table, State::Prepared)?;
    Ok((linked, gone))
}

/// Two functions may have a piece in common, or an entry in each other's: of whose call a loop is there, is not known.
fn leave_out_overlapping(patches: &mut Vec<Patch>, loops: &mut Vec<LedLoop>) {
    let overlap = |w: &&[Patch]| w[1].at - w[0].at < 5;
    let overlapping = patches.windows(2).filter(overlap);
    let out: HashSet<u64> = overlapping.flatten().map(|p| p.at).collect();
    if !out.is_empty() {
        let is_loop = |at: u64| loops.binary_search_by_key(&at, |l| l.at).is_ok();
        patches.retain(|p| !out.contains(&p.at) || !is_loop(p.at));
        loops.retain(|l| !out.contains(&l.at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_two_functions_at_one_place_are_left_alone() {
        let patch = |at| Patch {
            at,
            original: [0; 5],
            replaced: [1; 5],
        };
        let mut patches = [10, 20, 23, 30, 30, 40, 45].map(patch).to_vec();
        let loops = [20, 30, 30, 45].map(|at| LedLoop {
            at,
            back: patch(at),
        });
        let mut loops = loops.to_vec();
        leave_out_overlapping(&mut patches, &mut loops);
        let at = |patches: &[Patch]| patches.iter().map(|p| p.at).collect::<Vec<_>>();
        assert_eq!(at(&patches), [10, 23, 40, 45]);
        assert_eq!(loops.iter().map(|l| l.at).collect::<Vec<_>>(), [45]);
    }
}
