//! Attaching: everything is computed first, mapped during one short stop of one thread, and
//! switched on in one batch stop of all threads.
use super::build::{self, Linked, Selected};
use super::error::LiveError;
use super::mapping::{self, Mapped};
use super::maps;
use super::patch::{self, Direction};
use super::place::{self, Places, Sizes};
use super::table::{Patch, PatchTable, STATE_AT, State};
use crate::attach::memory::TargetMemory;
use crate::attach::{self, StoppedProcess, fault};
use crate::codegen::probe::ProbeConfig;
use crate::codegen::slow::SlowConfig;
use crate::memory::SharedWords;
use crate::relocate::refusal::Refusal;
use hopscope_event::FunctionId;
use hopscope_event::layout::{
    Context, POOL_HEADER_BYTES, POOL_MAGIC, POOL_VERSION, PoolHeader, ring_bytes,
};
use hopscope_event::record::STRIDE;
use hopscope_event::ring::Pool;
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What the user chose, the same for all targets of a recording.
#[derive(Debug, Clone, Copy)]
pub struct InstallOptions {
    pub contexts: u32,
    pub ring_records_log2: u32,
    pub bmi2: bool,
    pub empty_probes: bool,
}

/// A target that is being measured.
pub struct Installed {
    pub pid: i32,
    pub table: PatchTable,
    pub arena: File,
    pub pool: SharedWords,
    pub memory: TargetMemory,
    /// Threads that got a context at attach: (tid, context).
    pub threads: Vec<(i32, u32)>,
    /// Accepted, and then not switched on after all.
    pub refused: Vec<(FunctionId, String)>,
    pub pause: Duration,
    /// Inode of the arena's memfd: how forked children are found.
    pub arena_inode: u64,
}

impl Installed {
    pub fn pool(&self) -> Pool<'_> {
        Pool::new(
            self.pool.words(),
            self.table.pool_contexts as usize,
            self.table.ring_records_log2,
        )
        .expect("mapped with these sizes")
    }

    pub fn set_state(&self, state: State) -> Result<(), LiveError> {
        set_state(self.pid, &self.arena, state)
    }
}

pub fn set_state(pid: i32, arena: &File, state: State) -> Result<(), LiveError> {
    arena
        .write_all_at(&(state as u32).to_le_bytes(), STATE_AT)
        .map_err(LiveError::io(pid, "writing the patch table"))
}

/// Offsets of the kernel thread id from the fs base: glibc (`struct pthread.tid`), musl.
const TID_OFFSETS: [u32; 2] = [0x2d0, 0x30];

/// Instruments `pid`. `table` holds everything but addresses and patches.
pub fn install(
    pid: i32,
    selected: &[Selected],
    options: &InstallOptions,
    mut table: PatchTable,
) -> Result<Installed, LiveError> {
    let memory = TargetMemory::open(pid)?;
    let config = ProbeConfig {
        ring_records_log2: options.ring_records_log2,
        bmi2: options.bmi2,
        empty: options.empty_probes,
    };
    let json_bytes = table.to_bytes(State::Prepared).len() + 200 * selected.len();
    let sizes = Sizes {
        contexts: options.contexts,
        ring_records_log2: options.ring_records_log2,
        header_bytes: (json_bytes + json_bytes / 4 + (64 << 10)) as u64,
    };
    let mut slow = SlowConfig {
        contexts_at: 0,
        contexts: options.contexts + 1,
        pool_at: 0,
        ring_records_log2: options.ring_records_log2,
        tid_at_fs: Some(TID_OFFSETS[0]),
    };
    verify_code(pid, &memory, selected)?;
    let (segments, _) = build::emit(selected, &config, &slow);
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let (mut places, mut taken) = place::choose(&mappings, &sizes)?;
    places.add_segments(&segments, &mappings, &mut taken)?;

    let mut one = attach::stop_one(pid)?;
    let tid = one.tids()[0];
    let fs_base = one.regs(tid).fs_base;
    slow.tid_at_fs = tid_offset(&memory, fs_base, tid);
    table.segments = places.segments.clone();
    (table.header, table.contexts, table.pool) = (places.header, places.contexts, places.pool);
    table.pool_contexts = options.contexts;
    table.ring_records_log2 = options.ring_records_log2;
    let mapped = mapping::map(&mut one, &table);
    one.resume()?;
    let Mapped { arena, pool } = mapped?;

    slow.contexts_at = places.contexts.at;
    slow.pool_at = places.pool.at;
    let (segments, refused) = build::emit(selected, &config, &slow);
    let mut refused: Vec<(FunctionId, String)> = refused
        .into_iter()
        .map(|(id, why): (_, Refusal)| (id, why.to_string()))
        .collect();
    let result = fill(pid, &memory, &segments, &places, &arena, &mut table);
    let prepared = result.and_then(|linked| {
        let words = SharedWords::map(&pool, places.pool.len as usize)
            .map_err(LiveError::io(pid, "mapping the rings"))?;
        prepare_pool(&words, options);
        patch::make_private(pid, &memory, &table.patches)?;
        fault::point(fault::PREPARED);
        let on = switch_on(pid, &memory, &linked, &arena, &words, &mut table, options)?;
        Ok((words, on))
    });
    let (words, on) = match prepared {
        Ok(done) => done,
        Err(e) => {
            if super::found::is_patched(&memory, &table) {
                log::error!("process {pid} could not be put back; run: hopscope detach -p {pid}");
                return Err(e);
            }
            // Never patched, or put back; a thread that was moved into a copy may still be there.
            match super::remove::reap(pid, &memory, &table, true) {
                Ok(super::remove::Reaped::Unmapped) => {}
                Ok(super::remove::Reaped::Kept(why) | super::remove::Reaped::Retired(why)) => {
                    log::warn!("process {pid} keeps unused mappings: {why}")
                }
                Err(e) => {
                    log::warn!("process {pid} keeps unused mappings after a failed attach: {e}")
                }
            }
            return Err(e);
        }
    };
    refused.extend(on.refused);
    let arena_inode = {
        use std::os::unix::fs::MetadataExt;
        arena
            .metadata()
            .map_err(LiveError::io(pid, "looking at the memfd"))?
            .ino()
    };
    Ok(Installed {
        pid,
        table,
        arena,
        pool: words,
        memory,
        threads: on.threads,
        refused,
        pause: on.pause,
        arena_inode,
    })
}

/// The copies are made from the file: what runs must be the same, byte for byte (no breakpoint, no
/// text relocation, no wrong load address).
fn verify_code(pid: i32, memory: &TargetMemory, selected: &[Selected]) -> Result<(), LiveError> {
    let mut running = Vec::new();
    for s in selected {
        for piece in &s.pieces {
            let at = piece.svma.wrapping_add(s.bias);
            running.resize(piece.bytes.len(), 0);
            memory
                .read(at, &mut running)
                .map_err(LiveError::io(pid, "reading its code"))?;
            if let Some(n) = running.iter().zip(piece.bytes).position(|(a, b)| a != b) {
                return Err(LiveError::CodeDiffers {
                    pid,
                    at: at + n as u64,
                });
            }
        }
    }
    Ok(())
}

fn tid_offset(memory: &TargetMemory, fs_base: u64, tid: i32) -> Option<u32> {
    TID_OFFSETS.into_iter().find(|offset| {
        let mut word = [0u8; 4];
        let at = fs_base.wrapping_add(*offset as u64);
        fs_base != 0 && memory.read(at, &mut word).is_ok() && i32::from_le_bytes(word) == tid
    })
}

/// Links the segments, writes them and the patch table into the arena.
fn fill(
    pid: i32,
    memory: &TargetMemory,
    segments: &[build::Segment],
    places: &Places,
    arena: &File,
    table: &mut PatchTable,
) -> Result<Vec<Linked>, LiveError> {
    let mut linked = Vec::new();
    let mut offset = places.header.len;
    for (segment, area) in segments.iter().zip(&places.segments) {
        let l = segment.link(area.at)?;
        assert!(
            l.code.len() as u64 <= area.len,
            "the slow path only gets shorter"
        );
        arena
            .write_all_at(&l.code, offset)
            .map_err(LiveError::io(pid, "writing the copies"))?;
        offset += area.len;
        arrived(pid, memory, &l)?;
        linked.push(l);
    }
    let mut patches = Vec::new();
    for entry in linked.iter().flat_map(|l| &l.entries) {
        let mut original = [0u8; 5];
        memory
            .read(entry.patch_at, &mut original)
            .map_err(LiveError::io(pid, "reading its code"))?;
        let replaced = entry
            .jump()
            .ok_or(crate::codegen::asm::LinkError::OutOfRange {
                target: entry.copy_at,
            });
        patches.push(Patch {
            at: entry.patch_at,
            original,
            replaced: replaced.map_err(build::BuildError::from)?,
        });
    }
    patches.sort_by_key(|p| p.at);
    table.patches = patches;
    write_table(pid, arena, table, State::Prepared)?;
    Ok(linked)
}

/// Entries will lead there: what the target has mapped must be what was written.
fn arrived(pid: i32, memory: &TargetMemory, linked: &Linked) -> Result<(), LiveError> {
    let mut there = vec![0u8; linked.code.len()];
    memory
        .read(linked.at, &mut there)
        .map_err(LiveError::io(pid, "reading the copies back"))?;
    if there != linked.code {
        let source = std::io::Error::other("the target does not see the copies that were written");
        return Err(LiveError::io(pid, "comparing the copies")(source));
    }
    Ok(())
}

pub(super) fn write_table(
    pid: i32,
    arena: &File,
    table: &PatchTable,
    state: State,
) -> Result<(), LiveError> {
    let bytes = table.to_bytes(state);
    if bytes.len() as u64 > table.header.len {
        let source = std::io::Error::other("the patch table is larger than its place");
        return Err(LiveError::io(pid, "writing the patch table")(source));
    }
    arena
        .write_all_at(&bytes, 0)
        .map_err(LiveError::io(pid, "writing the patch table"))
}

fn prepare_pool(words: &SharedWords, options: &InstallOptions) {
    let w = words.words();
    let put = |offset: usize, value: u64| w[offset / 8].store(value, Ordering::Relaxed);
    put(offset_of!(PoolHeader, magic), POOL_MAGIC);
    put(
        offset_of!(PoolHeader, version),
        POOL_VERSION as u64 | (STRIDE as u64) << 32,
    );
    let sizes = options.contexts as u64 | (options.ring_records_log2 as u64) << 32;
    put(offset_of!(PoolHeader, contexts), sizes);
}

struct SwitchedOn {
    threads: Vec<(i32, u32)>,
    refused: Vec<(FunctionId, String)>,
    pause: Duration,
}

/// The batch stop.
fn switch_on(
    pid: i32,
    memory: &TargetMemory,
    linked: &[Linked],
    arena: &File,
    words: &SharedWords,
    table: &mut PatchTable,
    options: &InstallOptions,
) -> Result<SwitchedOn, LiveError> {
    let mut stopped = attach::stop_all(pid)?;
    let result = patch_stopped(&mut stopped, memory, linked, arena, words, table, options);
    // After a failure gs stays as it is: an entry may still lead into a copy, a thread may have been
    // moved into one. The caller takes everything back once nothing needs it.
    let timing = stopped.resume()?;
    let (threads, refused) = result?;
    Ok(SwitchedOn {
        threads,
        refused,
        pause: timing.pause(),
    })
}

type Switched = (Vec<(i32, u32)>, LateRefusals);
/// Threads and the instruction in a copy where each goes on.
type Moves = Vec<(i32, u64)>;
type LateRefusals = Vec<(FunctionId, String)>;

fn patch_stopped(
    stopped: &mut StoppedProcess,
    memory: &TargetMemory,
    linked: &[Linked],
    arena: &File,
    words: &SharedWords,
    table: &mut PatchTable,
    options: &InstallOptions,
) -> Result<Switched, LiveError> {
    let pid = stopped.pid();
    let tids = stopped.tids();
    let mut owners = Vec::with_capacity(tids.len());
    for &tid in &tids {
        let regs = stopped.regs(tid);
        let (gs_base, fs_base) = (regs.gs_base, regs.fs_base);
        if gs_base != 0 {
            return Err(LiveError::GsInUse { pid, tid, gs_base });
        }
        let mut owner = [0u8; 8];
        let readable = fs_base != 0 && memory.read(fs_base, &mut owner).is_ok();
        if !readable || owner == [0; 8] {
            return Err(LiveError::NoThreadPointer { pid, tid });
        }
        owners.push(u64::from_le_bytes(owner));
    }
    let (moves, refused) = leave_out_busy_sites(stopped, memory, linked, table)?;

    let pool = Pool::new(
        words.words(),
        options.contexts as usize,
        options.ring_records_log2,
    )
    .expect("mapped with these sizes");
    let mut contexts = vec![Context::default(); options.contexts as usize + 1];
    let spare = options.contexts as usize;
    contexts[spare].pool = table.pool.at;
    let mut threads = Vec::new();
    for (i, (&tid, &owner)) in tids.iter().zip(&owners).enumerate() {
        let Some(ring) = pool.ring(i) else { break };
        ring.set_owner(owner, tid);
        let at = POOL_HEADER_BYTES + i * ring_bytes(options.ring_records_log2);
        let ring = table.pool.at + at as u64;
        contexts[i] = Context {
            owner,
            ring,
            pool: table.pool.at,
            ..Context::default()
        };
        threads.push((tid, i as u32));
    }
    for free in threads.len()..options.contexts as usize {
        pool.offer(free as u32);
    }
    let bytes: Vec<u8> = contexts
        .iter()
        .flat_map(|c| [c.owner, c.ring, c.pool, 0, 0, 0, 0, 0])
        .flat_map(u64::to_le_bytes)
        .collect();
    memory
        .write(table.contexts.at, &bytes)
        .map_err(LiveError::io(pid, "writing the contexts"))?;
    // Threads first: a patched entry with gs base 0 would fault. Contexts without patches are
    // harmless.
    for (i, &tid) in tids.iter().enumerate() {
        let context = i.min(spare);
        stopped.set_gs_base(
            tid,
            table.contexts.at + (context * size_of::<Context>()) as u64,
        )?;
        fault::point(fault::SET_GS);
    }
    // Into a copy only with gs set: its probes read through it.
    for (tid, rip) in moves {
        stopped.set_rip(tid, rip)?;
    }
    set_state(pid, arena, State::Patched)?;
    fault::point(fault::STATE_PATCHED);
    let result = patch::write(pid, memory, &table.patches, Direction::Replace);
    fault::point(fault::PATCHED);
    if let Err(e) = result {
        // Some runs may have been written.
        patch::write(pid, memory, &table.patches, Direction::Restore)?;
        set_state(pid, arena, State::Restored)?;
        return Err(e);
    }
    Ok((threads, refused))
}

/// Where threads that stand in bytes about to change must go. A site that a stack word points into (the
/// interrupted place of a running signal handler) is left out.
fn leave_out_busy_sites(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    linked: &[Linked],
    table: &mut PatchTable,
) -> Result<(Moves, LateRefusals), LiveError> {
    let mut moves: Vec<(i32, u64)> = Vec::new();
    let mappings = maps::read(stopped.pid())
        .map_err(LiveError::io(stopped.pid(), "reading its memory map"))?;
    let mut busy: Vec<u64> = Vec::new();
    for tid in stopped.tids() {
        let rip = stopped.regs(tid).rip;
        if let Some(site) = patch::site_around(&table.patches, rip) {
            let at = table.patches[site].at;
            let moved = linked
                .iter()
                .flat_map(|l| &l.entries)
                .find(|e| e.patch_at == at)
                .and_then(|e| e.moved.iter().find(|(from, _)| *from == rip));
            match moved {
                Some((_, to)) => moves.push((tid, *to)),
                None => busy.push(at),
            }
        }
        for word in stopped.stack_words(tid, &mappings, memory)? {
            if let Some(site) = patch::site_around(&table.patches, word) {
                busy.push(table.patches[site].at);
            }
        }
    }
    busy.sort_unstable();
    busy.dedup();
    if busy.is_empty() {
        return Ok((moves, Vec::new()));
    }
    table.patches.retain(|p| busy.binary_search(&p.at).is_err());
    let entries = linked.iter().flat_map(|l| &l.entries);
    let refused = entries
        .filter(|e| busy.binary_search(&e.patch_at).is_ok())
        .map(|e| {
            (
                e.id,
                "a thread stood in the bytes the jump replaces; try again".to_owned(),
            )
        })
        .collect();
    Ok((moves, refused))
}

/// CPU features of this machine that the generated code may use.
pub fn host_has_bmi2() -> bool {
    std::arch::is_x86_feature_detected!("bmi2")
}
