//! Copies that must outlive their recording: their probes are jumped over for good, so that they
//! need no gs base and no ring, and the process can be recorded again.
//!
//! A probe that stores starts with `mov rcx, fs:[0]; cmp rcx, gs:[0]; jne cold` (codegen::probe),
//! and no other instruction of a copy touches gs. Its out-of-line part ends with the jump to where
//! the probe is done, and that is where the first instruction is led.
use super::error::LiveError;
use super::install::write_table;
use super::maps;
use super::table::{Area, PatchTable, State};
use crate::attach::memory::TargetMemory;
use nix::fcntl::{FallocateFlags, fallocate};
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;

const START: [u8; 20] = [
    0x64, 0x48, 0x8b, 0x0c, 0x25, 0, 0, 0, 0, 0x65, 0x48, 0x3b, 0x0c, 0x25, 0, 0, 0, 0, 0x0f, 0x85,
];
/// call slow; test rcx, rcx; jne: what the out-of-line part has before its last jump.
const BEFORE_LAST_JUMP: u64 = 5 + 3 + 6;
const JUMP_BYTES: u64 = 5;

/// The probes in the copies of a recording.
pub(super) struct Probes {
    /// First instruction, and where the probe is done.
    sites: Vec<(u64, u64)>,
    /// Sorted; a thread whose instruction pointer or return address lies in one is in a probe.
    busy: Vec<Range<u64>>,
}

impl Probes {
    pub(super) fn find(
        pid: i32,
        memory: &TargetMemory,
        table: &PatchTable,
    ) -> Result<Probes, LiveError> {
        let mut probes = Probes {
            sites: Vec::new(),
            busy: Vec::new(),
        };
        for segment in &table.segments {
            let mut code = vec![0; segment.len as usize];
            memory
                .read(segment.at, &mut code)
                .map_err(LiveError::io(pid, "reading the copies"))?;
            for (at, _) in code
                .windows(START.len())
                .enumerate()
                .filter(|(_, w)| *w == START)
            {
                if let Some((cold, done)) = ends(&code, at as u64) {
                    probes
                        .sites
                        .push((segment.at + at as u64, segment.at + done));
                    probes
                        .busy
                        .push(segment.at + at as u64 + 1..segment.at + done);
                    let cold_end = cold + BEFORE_LAST_JUMP + JUMP_BYTES;
                    probes.busy.push(segment.at + cold..segment.at + cold_end);
                }
            }
        }
        probes.busy.sort_by_key(|r| r.start);
        Ok(probes)
    }

    /// Whether `word` points into the middle of a probe.
    pub(super) fn is_busy(&self, word: u64) -> bool {
        let after = self.busy.partition_point(|r| r.start <= word);
        after > 0 && self.busy[after - 1].contains(&word)
    }

    /// Leads every probe past itself. All threads stand still, none of them in a probe.
    pub(super) fn disarm(&self, pid: i32, table: &PatchTable) -> Result<(), LiveError> {
        for (segment, file, offset) in writable(pid, table)? {
            for &(at, done) in self.sites.iter().filter(|(at, _)| segment.contains(*at)) {
                let distance = (done as i64 - (at + JUMP_BYTES) as i64) as i32;
                let mut jump = [0xe9, 0, 0, 0, 0];
                jump[1..].copy_from_slice(&distance.to_le_bytes());
                file.write_all_at(&jump, offset + (at - segment.at))
                    .map_err(LiveError::io(pid, "disarming the copies"))?;
            }
        }
        Ok(())
    }
}

/// Where the out-of-line part begins and where the probe is done, as offsets into `code`.
fn ends(code: &[u8], at: u64) -> Option<(u64, u64)> {
    let displaced = |at: u64| {
        let bytes = code.get(at as usize..)?.first_chunk::<4>()?;
        (at + 4).checked_add_signed(i32::from_le_bytes(*bytes) as i64)
    };
    let cold = displaced(at + START.len() as u64)?;
    let last_jump = cold + BEFORE_LAST_JUMP;
    (code.get(last_jump as usize) == Some(&0xe9)).then_some(())?;
    let done = displaced(last_jump + 1)?;
    (done > at && done < code.len() as u64).then_some((cold, done))
}

/// What is still needed of a table when its copies stay: where they are.
fn without_data(table: &PatchTable) -> PatchTable {
    let nowhere = Area { at: 0, len: 0 };
    PatchTable {
        contexts: nowhere,
        pool: nowhere,
        pool_contexts: 0,
        patches: Vec::new(),
        modules: Vec::new(),
        functions: Vec::new(),
        ..table.clone()
    }
}

/// What a retired table leaves free of its place, in whole pages.
pub(super) fn behind_table(table: &PatchTable) -> Area {
    let kept = without_data(table).to_bytes(State::Restored).len() as u64;
    Area {
        at: table.header.at + kept,
        len: table.header.len.saturating_sub(kept),
    }
}

/// Writes the retired table over the one in the arena, and gives the rest of its memory back.
pub(super) fn rewrite_table(pid: i32, table: &PatchTable) -> Result<(), LiveError> {
    let (file, offset) = backing(pid, table.header)?;
    debug_assert_eq!(offset, 0, "the table is at the arena's start");
    let behind = behind_table(table);
    let mut retired = without_data(table);
    retired.header.len -= behind.len;
    write_table(pid, &file, &retired, State::Restored)?;
    let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let kept = retired.header.len as i64;
    if behind.len > 0
        && let Err(e) = fallocate(&file, hole, kept, behind.len as i64)
    {
        log::info!("process {pid} keeps the memory of a table: {e}");
    }
    Ok(())
}

/// Other processes that have these copies mapped: forked children, and a child's parent.
pub(super) fn sharers(pid: i32, table: &PatchTable) -> Option<Vec<i32>> {
    let own = super::found::in_process(pid);
    let own = own
        .iter()
        .find(|f| f.header.is_some_and(|h| h.at == table.header.at))?;
    let all = super::found::everywhere();
    let others = all.iter().filter(|f| f.inode == own.inode && f.pid != pid);
    Some(others.map(|f| f.pid).collect())
}

fn writable(pid: i32, table: &PatchTable) -> Result<Vec<(Area, File, u64)>, LiveError> {
    let segments = table.segments.iter();
    segments
        .map(|&s| backing(pid, s).map(|(file, offset)| (s, file, offset)))
        .collect()
}

/// The memfd behind an area, and the area's offset in it. The mapping itself cannot be written.
fn backing(pid: i32, area: Area) -> Result<(File, u64), LiveError> {
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let missing = || {
        let source = std::io::Error::other(format!("nothing is mapped at {:#x}", area.at));
        LiveError::io(pid, "finding the arena")(source)
    };
    let mapping = mappings
        .iter()
        .find(|m| m.range.contains(&area.at))
        .ok_or_else(missing)?;
    let path = format!(
        "/proc/{pid}/map_files/{:x}-{:x}",
        mapping.range.start, mapping.range.end
    );
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(LiveError::io(pid, "opening the arena"))?;
    Ok((file, mapping.offset + (area.at - mapping.range.start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::asm::{Asm, Zone};
    use crate::codegen::probe::{Live, ProbeConfig, Site, probe};
    use hopscope_event::record::{FunctionId, Kind};

    #[test]
    fn the_pattern_is_what_a_probe_starts_with() {
        let mut asm = Asm::new();
        let slow = asm.label();
        asm.bind(Zone::Cold, slow);
        asm.bytes(Zone::Cold, &[0xc3]);
        let config = ProbeConfig {
            ring_records_log2: 12,
            bmi2: true,
            empty: false,
        };
        let site = Site {
            function: FunctionId(1),
            kind: Kind::Exit,
            live: Live::ALL,
            red_zone: true,
        };
        for _ in 0..2 {
            probe(&mut asm, Zone::Hot, &config, slow, site);
            asm.bytes(Zone::Hot, &[0xc3]);
        }
        let code = asm.link(0x10000).expect("links");
        let found: Vec<_> = code
            .windows(START.len())
            .enumerate()
            .filter(|(_, w)| *w == START)
            .map(|(at, _)| ends(&code, at as u64).expect("a whole probe"))
            .collect();
        assert_eq!(found.len(), 2);
        for (cold, done) in found {
            assert_eq!(code[cold as usize], 0xe8);
            // pop rdx, the first of what a probe puts back
            assert_eq!(code[done as usize], 0x5a);
        }
    }
}
