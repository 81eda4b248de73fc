//! Copies that must outlive their recording: their probes are jumped over for good, so that they
//! need no gs base and no ring, and the process can be recorded again.
//!
//! A probe that stores starts with `mov rcx, fs:[0]; cmp rcx, gs:[0]; jne cold` (codegen::probe),
//! and no other instruction of a copy touches gs but the test below. Its out-of-line part ends with the jump to where
//! the probe is done, and that is where the first instruction is led. What tests whether
//! probes are switched off (codegen::switch) is led past itself likewise.
//!
//! Both begin with an instruction longer than the jump, so that no thread is amid what is changed. Who is further into a
//! probe still needs gs and a ring; nobody else comes into one any more.
use super::arena_table::write_table;
use super::error::LiveError;
use super::table::{ARENA_NAME, Area, LedLoop, PatchTable, State};
use crate::instrument::emit::switch;
use hopscope_process::maps;
use hopscope_process::{memfd, procfs};
use nix::fcntl::{FallocateFlags, fallocate};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::rc::Rc;

const START: [u8; 20] = [
    0x64, 0x48, 0x8b, 0x0c, 0x25, 0, 0, 0, 0, 0x65, 0x48, 0x3b, 0x0c, 0x25, 0, 0, 0, 0, 0x0f, 0x85,
];
/// call slow; test rcx, rcx; jne: what the out-of-line part has before its last jump.
const BEFORE_LAST_JUMP: u64 = 5 + 3 + 6;
const JUMP_BYTES: u64 = 5;

/// How the memfd behind copies is come by.
#[derive(Debug, Clone, Copy)]
pub enum Arena<'a> {
    /// This process created it and has it open, whatever user the target runs as by now.
    Held(&'a File),
    /// Through the mapping of a process that has it, if its user made it.
    Mapped,
}

/// The probes in the copies of a recording, and what takes them out.
pub(super) struct Probes {
    segments: Vec<Area>,
    /// Sorted; a thread whose instruction pointer lies in one is in a probe.
    busy: Vec<Range<u64>>,
    /// What probes call: of each segment at the beginning of what lies out of line.
    routines: Vec<Range<u64>>,
    /// What disarming writes where: few long writes, for which alone the target is stopped.
    writes: Vec<(Rc<File>, u64, Vec<u8>)>,
    /// What leads loops out of the copies.
    ways_out: Vec<(Rc<File>, u64, [u8; 5])>,
}

/// Sites closer than this are written together: an own write costs more than the bytes between.
const TOGETHER: usize = 4096;

impl Probes {
    /// The copies do not change while they are mapped: this needs no stop.
    pub(super) fn find(pid: i32, arena: Arena, table: &PatchTable) -> Result<Probes, LiveError> {
        let mut probes = Probes {
            segments: table.segments.clone(),
            busy: Vec::new(),
            routines: Vec::new(),
            writes: Vec::new(),
            ways_out: Vec::new(),
        };
        for (segment, file, offset) in writable(pid, arena, table)? {
            let file = Rc::new(file);
            // Not as the process sees them: its own view is private, and is none of what others run.
            let mut code = vec![0; segment.len as usize];
            file.read_exact_at(&mut code, offset)
                .map_err(LiveError::io(pid, "reading the copies"))?;
            let mut sites = Vec::new();
            let mut routines = code.len() as u64..code.len() as u64;
            for (at, cold, done) in probes_in(&code) {
                let called = displaced(&code, cold + 1).unwrap_or(0);
                routines = routines.start.min(called)..routines.end.min(cold);
                let cold_end = cold + BEFORE_LAST_JUMP + JUMP_BYTES;
                let hot = segment.at + at as u64 + 1..segment.at + done;
                probes.busy.push(hot);
                probes.busy.push(segment.at + cold..segment.at + cold_end);
                sites.push((at, done as usize));
            }
            let routines = segment.at + routines.start..segment.at + routines.end;
            probes.routines.push(routines);
            for (at, done) in switch_reads(&code) {
                let (from, to) = (segment.at + at as u64 + 1, segment.at + done as u64);
                probes.busy.push(from..to);
                sites.push((at, done));
            }
            sites.sort_unstable();
            for &(at, done) in &sites {
                let distance = (done as i64 - (at as i64 + JUMP_BYTES as i64)) as i32;
                code[at] = 0xe9;
                code[at + 1..at + JUMP_BYTES as usize].copy_from_slice(&distance.to_le_bytes());
            }
            let mut changed: Vec<usize> = sites.iter().map(|(at, _)| *at).collect();
            for (at, jump) in lead_back(&mut code, segment.at, &table.loops) {
                let way_out = (file.clone(), offset + at as u64, jump);
                probes.ways_out.push(way_out);
                changed.push(at);
            }
            changed.sort_unstable();
            for together in changed.chunk_by(|a, b| b - a < TOGETHER) {
                let from = together[0];
                let to = together[together.len() - 1] + JUMP_BYTES as usize;
                let bytes = code[from..to].to_vec();
                probes
                    .writes
                    .push((file.clone(), offset + from as u64, bytes));
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

    /// Whether `word` points into what probes call.
    pub(super) fn is_called(&self, word: u64) -> bool {
        self.routines.iter().any(|r| r.contains(&word))
    }

    /// Whether `word` points into the copies.
    pub(super) fn concerns(&self, word: u64) -> bool {
        self.segments.iter().any(|s| s.contains(word))
    }

    /// Leads loops out of the copies: who is in a probe leaves it first. All threads are stopped.
    pub(super) fn lead_out(&self, pid: i32) -> Result<(), LiveError> {
        self.ways_out.iter().try_for_each(|(file, offset, jump)| {
            file.write_all_at(jump, *offset)
                .map_err(LiveError::io(pid, "leading loops out of the copies"))
        })
    }

    /// Patches every probe to jump over itself. All threads are stopped; who is in a probe finds the rest of it.
    pub(super) fn disarm(&self, pid: i32) -> Result<(), LiveError> {
        self.writes.iter().try_for_each(|(file, offset, bytes)| {
            file.write_all_at(bytes, *offset)
                .map_err(LiveError::io(pid, "disarming the copies"))
        })
    }
}

/// Jumps of loops out of the copies, and where they lie in `code`, which a process has mapped at `at`.
fn lead_back(code: &mut [u8], at: u64, loops: &[LedLoop]) -> Vec<(usize, [u8; 5])> {
    let mut led = Vec::new();
    for one in loops.iter().map(|l| l.back) {
        let offset = one.at.wrapping_sub(at) as usize;
        let there = code
            .get_mut(offset..)
            .and_then(|c| c.first_chunk_mut::<5>());
        if let Some(there) = there.filter(|there| **there == one.original) {
            *there = one.replaced;
            led.push((offset, one.replaced));
        }
    }
    led
}

/// Probes, disarmed or not, as offsets into `code`: where one begins, its out-of-line part, and where it is done.
fn probes_in(code: &[u8]) -> impl Iterator<Item = (usize, u64, u64)> {
    code.windows(START.len()).enumerate().filter_map(|(at, w)| {
        let disarmed = led_past(w, &START);
        (disarmed.is_some() || w == START).then_some(())?;
        let (cold, done) = ends(code, at as u64)?;
        let leads_there = |to: u64| at as u64 + to == done;
        disarmed.is_none_or(leads_there).then_some((at, cold, done))
    })
}

/// How far the jump leads that `code`, which begins as `original` does, was changed into.
fn led_past(code: &[u8], original: &[u8]) -> Option<u64> {
    let jump = JUMP_BYTES as usize;
    let (first, rest) = code.split_first_chunk::<5>()?;
    let [0xe9, distance @ ..] = *first else {
        return None;
    };
    let past = JUMP_BYTES.checked_add_signed(i32::from_le_bytes(distance) as i64)?;
    rest.starts_with(&original[jump..]).then_some(past)
}

/// What reads a context to know whether probes are off, and where it is done, as offsets into `code`; led past itself or
/// not.
fn switch_reads(code: &[u8]) -> Vec<(usize, usize)> {
    let reads = switch::reads();
    let begins = |b: u8| b == switch::GS || b == 0xe9;
    let places = code.iter().enumerate().filter(|(_, b)| begins(**b));
    let found = places.filter_map(|(at, _)| {
        let code = &code[at..];
        let is_here = |read: &&(Vec<u8>, usize)| {
            code.starts_with(&read.0) || led_past(code, &read.0) == Some(read.1 as u64)
        };
        Some((at, at + reads.iter().find(is_here)?.1))
    });
    found.collect()
}

/// Where the out-of-line part begins and where the probe is done, as offsets into `code`.
fn ends(code: &[u8], at: u64) -> Option<(u64, u64)> {
    let cold = displaced(code, at + START.len() as u64)?;
    let last_jump = cold + BEFORE_LAST_JUMP;
    (code.get(last_jump as usize) == Some(&0xe9)).then_some(())?;
    let done = displaced(code, last_jump + 1)?;
    (done > at && done < code.len() as u64).then_some((cold, done))
}

/// Where a displacement leads, as an offset into `code`.
fn displaced(code: &[u8], at: u64) -> Option<u64> {
    let bytes = code.get(at as usize..)?.first_chunk::<4>()?;
    (at + 4).checked_add_signed(i32::from_le_bytes(*bytes) as i64)
}

/// What is still needed of a table when its copies stay: where they are.
fn without_data(table: &PatchTable) -> PatchTable {
    let nowhere = Area { at: 0, len: 0 };
    PatchTable {
        contexts: nowhere,
        pool: nowhere,
        counter_pages: nowhere,
        pool_contexts: 0,
        shares_rings: false,
        patches: Vec::new(),
        loops: Vec::new(),
        slots: Vec::new(),
        fused: Vec::new(),
        modules: Vec::new(),
        functions: Vec::new(),
        captures: Vec::new(),
        counters: Vec::new(),
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

/// Writes the retired table over the one in the arena.
pub(super) fn rewrite_table(pid: i32, arena: Arena, table: &PatchTable) -> Result<(), LiveError> {
    let (file, offset) = backing(pid, arena, table.header)?;
    debug_assert_eq!(offset, 0, "the table is at the arena's start");
    write_table(pid, &file, &retired(table), State::Restored)
}

/// What is left of a table in the arena.
pub(super) fn retired(table: &PatchTable) -> PatchTable {
    let mut retired = without_data(table);
    retired.header.len -= behind_table(table).len;
    retired
}

/// Frees the memory behind the retired table; needs no stop.
pub(super) fn free_behind_table(pid: i32, arena: Arena, table: &PatchTable) {
    let behind = behind_table(table);
    if behind.len == 0 {
        return;
    }
    let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let kept = (behind.at - table.header.at) as i64;
    let freed = backing(pid, arena, table.header).and_then(|(file, _)| {
        fallocate(&file, hole, kept, behind.len as i64)
            .map_err(|e| LiveError::io(pid, "freeing a table")(e.into()))
    });
    if let Err(e) = freed {
        log::info!("process {pid} keeps the memory of a table: {e}");
    }
}

fn writable(
    pid: i32,
    arena: Arena,
    table: &PatchTable,
) -> Result<Vec<(Area, File, u64)>, LiveError> {
    let segments = table.segments.iter();
    segments
        .map(|&s| backing(pid, arena, s).map(|(file, offset)| (s, file, offset)))
        .collect()
}

/// The memfd behind an area, and the area's offset in it. The mapping itself cannot be written.
fn backing(pid: i32, arena: Arena, area: Area) -> Result<(File, u64), LiveError> {
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let missing = || {
        let source = std::io::Error::other(format!("nothing is mapped at {:#x}", area.at));
        LiveError::io(pid, "finding the arena")(source)
    };
    let mapping = mappings
        .iter()
        .find(|m| m.range.contains(&area.at))
        .ok_or_else(missing)?;
    let offset = mapping.offset + (area.at - mapping.range.start);
    if let Arena::Held(file) = arena
        && let Ok(held) = file.metadata()
        && mapping.is_memfd()
        && held.ino() == mapping.inode
    {
        let file = file.try_clone();
        return Ok((
            file.map_err(LiveError::io(pid, "opening the arena"))?,
            offset,
        ));
    }
    let (start, end) = (mapping.range.start, mapping.range.end);
    let holder = procfs::memory_holder(pid);
    let path = format!("/proc/{holder}/map_files/{start:x}-{end:x}");
    let seen = memfd::look(&path, ARENA_NAME).map_err(LiveError::io(pid, "finding the arena"))?;
    // A child that gave up its rights must not have us write what its parent executes.
    let own = seen.filter(|s| s.inode == mapping.inode && Some(s.uid) == procfs::uid(pid));
    let Some(own) = own else {
        let source = std::io::Error::other("it was not made by the user that the process runs as");
        return Err(LiveError::io(pid, "opening the arena")(source));
    };
    let file = own
        .open()
        .map_err(LiveError::io(pid, "opening the arena"))?;
    Ok((file, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::asm::{Asm, Zone};
    use crate::instrument::emit::probe::{Live, ProbeConfig, RSP, Site, Stores, probe, switched};
    use crate::instrument::emit::slow::Slow;
    use crate::live::table::tests::table;
    use crate::memory::SharedWords;
    use hopscope_event::record::{FunctionId, RecordKind};
    use iced_x86::{Code, Decoder, DecoderOptions, Register};
    use nix::sys::memfd::{MFdFlags, memfd_create};

    /// Both forms of a probe that can be switched off.
    fn switchable() -> Vec<u8> {
        let mut asm = Asm::new();
        let slow = asm.label();
        asm.bind(Zone::Cold, slow);
        asm.bytes(Zone::Cold, &[0xc3]);
        let config = ProbeConfig {
            ring_records_log2: 12,
            bmi2: true,
            stores: Stores::Records,
            switchable: true,
            ordered_stamps: false,
        };
        let dead = Live {
            flags: false,
            ..Live::ALL
        };
        for (n, live) in [Live::ALL, dead].into_iter().enumerate() {
            let site = Site {
                function: FunctionId(n as u32),
                kind: RecordKind::Entry,
                live,
                red_zone: false,
                position: RSP,
            };
            switched(&mut asm, &config, Slow::both(slow), site);
            asm.bytes(Zone::Hot, &[0xc3]);
            asm.bytes(Zone::Stub, &[0xc3]);
        }
        asm.link(0x10000).expect("links")
    }

    /// Every read of gs is found in both forms of a probe that can be switched off.
    #[test]
    fn what_tests_the_switch_is_found() {
        let code = switchable();
        let mut decoder = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE);
        let mut reads: Vec<usize> = Vec::new();
        let mut starts = std::collections::BTreeSet::new();
        while decoder.can_decode() {
            let insn = decoder.decode();
            starts.insert(insn.ip() as usize);
            if insn.segment_prefix() == Register::GS {
                reads.push(insn.ip() as usize);
            }
        }
        let switches = switch_reads(&code);
        let owners = code.windows(START.len()).enumerate();
        let owners = owners.filter(|(_, w)| *w == START).map(|(at, _)| at + 9);
        // The owner is compared, and behind it the ring is loaded.
        let owners: Vec<usize> = owners.flat_map(|at| [at, at + 9 + 6]).collect();
        let mut found: Vec<usize> = switches.iter().map(|(at, _)| *at).collect();
        found.extend(owners);
        found.sort_unstable();
        assert_eq!(found, reads);
        assert_eq!(switches.len(), 4);
        assert!(switches.iter().all(|(_, done)| starts.contains(done)));
    }

    /// A process without a gs base goes through copies that stay. Here it is this test itself that has them mapped.
    #[test]
    fn what_tests_the_switch_is_led_past() {
        let code = switchable();
        let len = code.len().next_multiple_of(4096);
        let memfd = File::from(memfd_create(ARENA_NAME, MFdFlags::MFD_CLOEXEC).unwrap());
        memfd.set_len(len as u64).unwrap();
        memfd.write_all_at(&code, 0).unwrap();
        let words = SharedWords::map(&memfd, len).unwrap();
        let segment = Area {
            at: words.words().as_ptr() as u64,
            len: code.len() as u64,
        };
        let table = PatchTable {
            segments: vec![segment],
            ..table()
        };
        let pid = std::process::id() as i32;
        let probes = Probes::find(pid, Arena::Held(&memfd), &table).unwrap();
        probes.disarm(pid).unwrap();
        // Whoever was in a probe then is found there later, too, by a recorder that did not disarm them.
        let again = Probes::find(pid, Arena::Held(&memfd), &table).unwrap();
        assert!(!probes.busy.is_empty() && again.busy == probes.busy);
        // What they call, a return here, and nothing of what is measured.
        let called = probes.routines[0].start;
        assert!(probes.is_called(called) && code[(called - segment.at) as usize] == 0xc3);
        assert!(again.routines == probes.routines && !probes.is_called(segment.at));
        let mut disarmed = vec![0; code.len()];
        memfd.read_exact_at(&mut disarmed, 0).unwrap();
        for (at, done) in switch_reads(&code) {
            let left = &disarmed[at..];
            let jump = Decoder::with_ip(64, left, at as u64, DecoderOptions::NONE).decode();
            assert_eq!(jump.code(), Code::Jmp_rel32_64, "at {at:#x}");
            assert_eq!(jump.near_branch_target(), done as u64);
            // Nobody goes on in the middle of the jump.
            let first = Decoder::with_ip(64, &code[at..], 0, DecoderOptions::NONE).decode();
            assert!(first.len() >= JUMP_BYTES as usize);
            assert!(probes.is_busy(segment.at + at as u64 + 1));
        }
    }

    #[test]
    fn the_pattern_is_what_a_probe_starts_with() {
        let mut asm = Asm::new();
        let slow = asm.label();
        asm.bind(Zone::Cold, slow);
        let slow = Slow::both(slow);
        asm.bytes(Zone::Cold, &[0xc3]);
        let config = ProbeConfig {
            ring_records_log2: 12,
            bmi2: true,
            stores: Stores::Records,
            switchable: false,
            ordered_stamps: false,
        };
        let site = Site {
            function: FunctionId(1),
            kind: RecordKind::Exit,
            live: Live::ALL,
            red_zone: true,
            position: RSP,
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
