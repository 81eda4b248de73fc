//! Attaching: everything is computed first, mapped during one short stop of one thread, and
//! switched on in one batch stop of all threads.
use super::build::{self, Linked, Selected};
use super::error::LiveError;
use super::leftover;
use super::mapping::{self, Mapped};
use super::maps;
use super::patch;
use super::place::{self, Places, Sizes};
use super::standing::{self, LateRefusals};
use super::switch::Batch;
use super::table::{Patch, PatchTable, STATE_AT, State};
use crate::attach::memory::TargetMemory;
use crate::attach::{self, fault};
use crate::codegen::probe::ProbeConfig;
use crate::codegen::slow::SlowConfig;
use crate::memory::SharedWords;
use hopscope_event::layout::{POOL_HEADER_BYTES, POOL_MAGIC, POOL_VERSION, PoolHeader, ring_bytes};
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
    pub refused: LateRefusals,
    pub pause: Duration,
    /// What the user should know of the attachment.
    pub notes: Vec<String>,
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

/// A gs base may be in use by what an earlier recording had to leave.
fn earlier_recording(pid: i32, memory: &TargetMemory, error: LiveError) -> LiveError {
    let LiveError::GsInUse { gs_base, .. } = error else {
        return error;
    };
    let tables = super::found::in_process(pid)
        .into_iter()
        .filter_map(|f| f.table(memory).ok());
    match tables
        .into_iter()
        .any(|(t, _)| t.contexts.contains(gs_base))
    {
        true => LiveError::Orphan { pid },
        false => error,
    }
}

/// Instruments `pid`. `table` holds everything but addresses and patches.
pub fn install(
    pid: i32,
    mut selected: Vec<Selected>,
    options: &InstallOptions,
    mut table: PatchTable,
) -> Result<Installed, LiveError> {
    let memory = TargetMemory::open(pid)?;
    leftover::make_room(pid, &memory)?;
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
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let pid_inside =
        attach::seccomp::pid_inside(pid).map_err(LiveError::io(pid, "reading its status"))?;
    let mut refused = standing::keep(pid, &memory, &mut selected)?;
    let (segments, _) = build::emit(&selected, &config, &slow, pid_inside);
    let places = place::choose(&mappings, &segments, &sizes)?;

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
    let (segments, not_movable) = build::emit(&selected, &config, &slow, pid_inside);
    refused.extend(
        not_movable
            .into_iter()
            .map(|(id, why)| (id, why.to_string())),
    );
    let result = fill(pid, &memory, &segments, &places, &arena, &mut table);
    let prepared = result.and_then(|(linked, gone)| {
        refused.extend(gone);
        let words = SharedWords::map(&pool, places.pool.len as usize)
            .map_err(LiveError::io(pid, "mapping the rings"))?;
        prepare_pool(&words, options);
        populate_rings(pid, &words, options);
        let gone = patch::make_private(&memory, &table.patches);
        refused.extend(standing::leave_out(
            &mut table,
            &linked,
            gone,
            standing::GONE,
        ));
        fault::point(fault::PREPARED);
        let batch = Batch {
            memory: &memory,
            linked: &linked,
            arena: &arena,
            words: &words,
            mappings: &mappings,
            contexts: options.contexts as usize,
        };
        let on = batch.switch_on(pid, &mut table);
        let on = on.map_err(|e| earlier_recording(pid, &memory, e))?;
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
    let mut notes = Vec::new();
    if on.partly_searched > 0 {
        notes.push(format!(
            "process {pid}: {} stacks were too deep to be searched whole for functions interrupted at their first instructions (256 KiB of each, 16 MiB of all)",
            on.partly_searched
        ));
    }
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
        notes,
        arena_inode,
    })
}

fn tid_offset(memory: &TargetMemory, fs_base: u64, tid: i32) -> Option<u32> {
    TID_OFFSETS.into_iter().find(|offset| {
        let mut word = [0u8; 4];
        let at = fs_base.wrapping_add(*offset as u64);
        fs_base != 0 && memory.read(at, &mut word).is_ok() && i32::from_le_bytes(word) == tid
    })
}

/// Links the segments, writes them and the patch table into the arena. What is no longer there to
/// be patched is left out.
fn fill(
    pid: i32,
    memory: &TargetMemory,
    segments: &[build::Segment],
    places: &Places,
    arena: &File,
    table: &mut PatchTable,
) -> Result<(Vec<Linked>, LateRefusals), LiveError> {
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
    let (mut patches, mut gone) = (Vec::new(), Vec::new());
    for entry in linked.iter().flat_map(|l: &Linked| &l.entries) {
        let mut original = [0u8; 5];
        if memory.read(entry.patch_at, &mut original).is_err() {
            gone.push((entry.id, standing::GONE.to_owned()));
            continue;
        }
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
    Ok((linked, gone))
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

/// Larger rings of all threads together get their memory as they are used.
const POPULATED_AT_MOST: usize = 64 << 20;

/// The rings that the present threads will get. Without it their first lap is slower, no more.
fn populate_rings(pid: i32, words: &SharedWords, options: &InstallOptions) {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    let rings = threads.min(options.contexts as usize);
    let len = rings * ring_bytes(options.ring_records_log2);
    let range = POOL_HEADER_BYTES..POOL_HEADER_BYTES + len.min(POPULATED_AT_MOST);
    if let Err(e) = words.populate(range) {
        log::info!("process {pid}: the rings get their memory later: {e}");
    }
}

/// CPU features of this machine that the generated code may use.
pub fn host_has_bmi2() -> bool {
    std::arch::is_x86_feature_detected!("bmi2")
}
