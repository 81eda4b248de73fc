//! Attaching: everything is computed first, mapped during one short stop of one thread, and
//! switched on in one batch stop of all threads.
use super::arena_table::set_state;
use super::breakpoints::Watch;
use super::build::{self, Segment, Selected};
use super::clear_leftovers;
use super::error::LiveError;
use super::fill;
use super::got;
use super::led_slot::GotPatch;
use super::lookup::Lookup;
use super::mapping::{self, Mapped};
use super::patch;
use super::place::{self, RingAreas, Sizes};
use super::rings::Rings;
use super::settle;
use super::site;
use super::slots;
pub use super::standing::GONE;
use super::standing::{self, LateRefusals};
use super::switch::Batch;
use super::symbols::{self, Copies};
use super::table::{PatchTable, State};
use crate::instrument::emit::probe::ProbeConfig;
pub use crate::instrument::emit::probe::Stores;
use crate::instrument::emit::slow::SlowConfig;
use crate::locate::Load;
use crate::memory::SharedWords;
use hopscope_event::FunctionId;
use hopscope_event::layout::{POOL_MAGIC, POOL_VERSION, PoolHeader};
use hopscope_event::record::STRIDE;
use hopscope_event::ring::Pool;
use hopscope_process::TID_OFFSETS;
use hopscope_process::maps;
use hopscope_process::memory::TargetMemory;
use hopscope_process::memory_limit;
use hopscope_process::stop_times::{self, StopTimes};
use hopscope_process::{fault, fd_reserve, procfs};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// At most, of both patches of a loop in the table.
const LOOP_JSON_BYTES: u64 = 300;

/// At most, of a GOT slot: four numbers of twenty digits, and their names.
const SLOT_JSON_BYTES: u64 = 160;

/// The same of a call between copies: five numbers.
const FUSED_JSON_BYTES: u64 = 180;

/// What the user chose, the same for all targets of a recording.
#[derive(Debug, Clone, Copy)]
pub struct InstallOptions {
    pub contexts: u32,
    pub ring_records_log2: u32,
    pub bmi2: bool,
    pub stores: Stores,
    /// The probes of a thread can be switched off and on again.
    pub switchable: bool,
    /// Clocks are read when the instructions before them are done.
    pub ordered_stamps: bool,
    /// Forked children are measured, too.
    pub follow_forks: bool,
    /// Entries right behind an exit have its stamp.
    pub fused_stamps: bool,
}

impl InstallOptions {
    /// Whether stamps are fused. Not where calls run unmeasured at times: the record before an entry may then be of long ago.
    pub fn fuses(&self) -> bool {
        let records = self.stores == Stores::Records;
        self.fused_stamps && records && !self.switchable && !self.ordered_stamps
    }
}

/// A target that is being measured.
pub struct Installed {
    pub pid: i32,
    pub table: PatchTable,
    pub arena: File,
    pub pool: Arc<SharedWords>,
    pub rings: Rings,
    pub memory: TargetMemory,
    /// Threads that got a context at attach: (tid, context).
    pub threads: Vec<(i32, u32)>,
    /// Accepted, and then not switched on after all.
    pub refused: LateRefusals,
    /// All stops of all its threads until now.
    pub stops: StopTimes,
    /// What the user should know of the attachment.
    pub notes: Vec<String>,
    /// Where entries are replaced, or of functions that slots lead to begin, ascending, and of which functions.
    pub sites: Vec<(u64, FunctionId)>,
    /// That are to lead into copies, whenever they are bound.
    pub slots: Vec<GotPatch>,
    /// Of the modules that these are in, by their addresses.
    pub(super) slot_loads: HashMap<u64, Load>,
    /// Of a recording whose probes can be switched off: functions whose probes stay on.
    pub not_switched: u64,
    /// For [`Installed::write_symbols`].
    pub(super) copies: Vec<Copies>,
    /// Inode of the arena's memfd: how forked children are found.
    pub arena_inode: u64,
    pub(super) breakpoints: Watch,
    pub(super) restored: bool,
}

/// Contexts and rings of a recording that goes on, for copies that are added to it.
#[derive(Clone)]
pub struct SharedRings {
    areas: RingAreas,
    words: Arc<SharedWords>,
}

impl Installed {
    /// For [`install_beside`].
    pub fn shared_rings(&self) -> SharedRings {
        let table = &self.table;
        SharedRings {
            areas: RingAreas {
                contexts: table.contexts,
                pool: table.pool,
                counter_pages: table.counter_pages,
            },
            words: self.pool.clone(),
        }
    }

    pub fn pool(&self) -> Pool<'_> {
        pool_of(&self.pool, &self.table)
    }

    /// At every visit: memory for the rings of threads to come.
    pub fn keep_rings_ahead(&mut self) {
        let (pid, words) = (self.pid, &self.pool);
        let pool = pool_of(words, &self.table);
        self.rings.keep_ahead(pid, words, &pool);
    }

    /// Offers the ring of a thread that is gone to those to come.
    pub fn give_ring_back(&mut self, context: u32) {
        let (pid, words) = (self.pid, &self.pool);
        let pool = pool_of(words, &self.table);
        self.rings.give_back(pid, words, &pool, context);
    }

    /// Writes an ELF file with the names and unwind tables of the copies, for debuggers and profilers.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_symbols(&self, out: &File) -> Result<(), LiveError> {
        let functions = &self.table.functions;
        symbols::write(&self.copies, functions, &self.arena, out)
            .map_err(LiveError::io(self.pid, "writing the symbols of its copies"))
    }

    pub fn set_state(&self, state: State) -> Result<(), LiveError> {
        set_state(self.pid, &self.arena, state)
    }
}

fn pool_of<'a>(words: &'a SharedWords, table: &PatchTable) -> Pool<'a> {
    let contexts = table.pool_contexts as usize;
    let pool = Pool::new(words.words(), contexts, table.ring_records_log2);
    pool.expect("mapped with these sizes")
}

/// A gs base may be in use by what an earlier recording had to leave, or by one that is about to end.
fn earlier_recording(pid: i32, memory: &TargetMemory, error: LiveError) -> LiveError {
    let LiveError::GsInUse { gs_base, .. } = error else {
        return error;
    };
    let found = super::found::in_process(pid).into_iter();
    let mut tables = found.filter_map(|f| f.table(memory).ok());
    match tables.find(|(table, _)| table.contexts.contains(gs_base)) {
        Some((table, _)) if super::found::recorder_alive(&table) => LiveError::AlreadyRecorded {
            pid,
            recorder: table.recorder,
        },
        Some(_) => LiveError::Orphan { pid },
        None => error,
    }
}

/// Instruments `pid`. `table` holds everything but addresses and patches.
pub fn install(
    pid: i32,
    selected: Vec<Selected>,
    options: &InstallOptions,
    table: PatchTable,
) -> Result<Installed, LiveError> {
    install_with(pid, selected, options, table, None)
}

/// Adds functions to a recording of `pid` that goes on, whose rings their probes write into. They are detached by
/// themselves, and before the recording is.
pub fn install_beside(
    pid: i32,
    selected: Vec<Selected>,
    options: &InstallOptions,
    table: PatchTable,
    rings: &SharedRings,
) -> Result<Installed, LiveError> {
    install_with(pid, selected, options, table, Some(rings))
}

fn install_with(
    pid: i32,
    selected: Vec<Selected>,
    options: &InstallOptions,
    table: PatchTable,
    shared: Option<&SharedRings>,
) -> Result<Installed, LiveError> {
    fd_reserve::reserve(1).map_err(|source| LiveError::Descriptors {
        pid,
        limit: fd_reserve::limit(),
        source,
    })?;
    let lent = fd_reserve::lend();
    let result = attempt(pid, selected, options, table, shared);
    drop(lent);
    result.map_err(|e| {
        let stops = stop_times::take(pid).totals(pid);
        log::info!("process {pid} was not attached to: {stops:?}");
        // Whatever one that came at the same time did to it is not worth an error of its own.
        let memory = TargetMemory::open(pid).ok();
        match memory.and_then(|memory| super::found::another_recorder(pid, &memory)) {
            Some(recorder) => {
                log::info!("{e}");
                LiveError::AlreadyRecorded { pid, recorder }
            }
            None => e,
        }
    })
}

fn attempt(
    pid: i32,
    mut selected: Vec<Selected>,
    options: &InstallOptions,
    mut table: PatchTable,
    shared: Option<&SharedRings>,
) -> Result<Installed, LiveError> {
    let memory = TargetMemory::open(pid)?;
    clear_leftovers::make_room(pid, &memory)?;
    let config = ProbeConfig {
        ring_records_log2: options.ring_records_log2,
        bmi2: options.bmi2,
        stores: options.stores,
        switchable: options.switchable,
        ordered_stamps: options.ordered_stamps,
    };
    let json_bytes = table.to_bytes(State::Prepared).len() + 200 * selected.len();
    let mut sizes = Sizes {
        contexts: options.contexts,
        ring_records_log2: options.ring_records_log2,
        header_bytes: (json_bytes + json_bytes / 4 + (64 << 10)) as u64,
        counters: !table.counters.is_empty(),
        there: shared.map(|shared| shared.areas),
    };
    let mut slow = SlowConfig {
        contexts_at: 0,
        contexts: options.contexts + 1,
        pool_at: 0,
        ring_records_log2: options.ring_records_log2,
        tid_at_fs: Some(TID_OFFSETS[0]),
        follow_forks: options.follow_forks,
    };
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let pid_inside = procfs::pid_inside(pid).map_err(LiveError::io(pid, "reading its status"))?;
    let mut refused = standing::keep(pid, &memory, &mut selected)?;
    // What a fused call counts is not calibrated.
    let fuses = options.fuses() && table.counters.is_empty();
    let emit = |selected: &[Selected]| build::emit(selected, &config, &slow, pid_inside, fuses);
    let (mut segments, mut not_movable) = emit(&selected)?;
    let homeless = place::without_room(&mappings, &segments);
    let ids: HashSet<_> = homeless.iter().map(|(id, _)| *id).collect();
    if !ids.is_empty() && selected.iter().any(|s| !ids.contains(&s.id)) {
        selected.retain(|s| !ids.contains(&s.id));
        refused.extend(homeless);
        drop(segments);
        (segments, not_movable) = emit(&selected)?;
    }
    let loops: usize = segments.iter().map(Segment::loops_count).sum();
    let slots = selected.iter().filter_map(|s| s.slots).map(<[_]>::len);
    let fused: usize = segments.iter().map(Segment::fused_count).sum();
    sizes.header_bytes += loops as u64 * LOOP_JSON_BYTES + fused as u64 * FUSED_JSON_BYTES;
    sizes.header_bytes += slots.sum::<usize>() as u64 * SLOT_JSON_BYTES;
    table.shares_rings = shared.is_some();
    table.pool_contexts = options.contexts;
    table.ring_records_log2 = options.ring_records_log2;
    let slot_loads = selected.iter().filter_map(|s| s.slots).flatten();
    let slot_loads = slot_loads
        .filter_map(|slot| Some((slot.at, slot.load?)))
        .collect();
    let unwound = selected.iter().filter_map(|s| s.unwind);
    let there = settle::settle(
        pid,
        &memory,
        &segments,
        &sizes,
        unwound.clone().find(|u| u.must || u.walked),
        &mut table,
    )?;
    slow.tid_at_fs = tid_offset(&memory, there.fs_base, there.tid_inside);
    let (places, lookup, mapped) = (there.places, there.lookup, there.mapped);
    let mappings = there.mappings;
    let verified = mapping::verify(pid, &table, &mapped).and_then(|()| {
        let (Some(Lookup::New(new)), Some(mapped)) = (&lookup, &there.answering) else {
            return Ok(());
        };
        mapping::verify(pid, &new.table, mapped)?;
        new.fill(pid, &memory, &mapped.arena)
    });
    let Mapped { arena, pool } = mapped;

    slow.contexts_at = places.contexts.at;
    slow.pool_at = places.pool.at;
    segments.iter_mut().for_each(|s| s.serve(&slow));
    refused.extend(
        not_movable
            .into_iter()
            .map(|(id, why)| (id, why.to_string())),
    );
    let moved = standing::other_loads(pid, &selected, &mappings);
    let arrived = (&places, &arena, &mappings[..]);
    let result =
        verified.and_then(|()| fill::fill(pid, &memory, segments, arrived, &moved, &mut table));
    let mut notes = Vec::new();
    let (contexts, records_log2) = (options.contexts as usize, options.ring_records_log2);
    let mut rings = Rings::plan(pid, contexts, records_log2);
    let prepared = result.and_then(|(linked, gone)| {
        refused.extend(gone);
        let words = match (shared, &pool) {
            (Some(shared), _) => shared.words.clone(),
            (None, pool) => {
                let pool = pool.as_ref().expect("a recording has rings");
                let words = SharedWords::map(pool, places.pool.len as usize)
                    .map_err(LiveError::io(pid, "mapping the rings"))?;
                prepare_pool(&words, options);
                let threads = procfs::threads(pid).map_or(0, |tids| tids.len());
                notes.extend(rings.populate(pid, &words, threads));
                Arc::new(words)
            }
        };
        check_room(pid, &table)?;
        let gone = patch::make_private(pid, &memory, &table.patches)?;
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
            contexts,
            rings: rings.usable(),
        };
        if let Some(lookup) = &lookup {
            if let Lookup::New(new) = lookup {
                batch.answer(pid, new)?;
            }
            let copies = linked.iter().zip(&places.segments);
            let copies = copies.filter_map(|(l, area)| Some((*area, l.tables_at?)));
            slots::add(pid, &memory, lookup.table(), &copies.collect::<Vec<_>>())?;
            if let Lookup::There(table) = lookup {
                super::lookup::still_there(pid, &memory, table)?;
            }
        }
        let on = batch.switch_on(pid, &mut table);
        let on = on.map_err(|e| earlier_recording(pid, &memory, e))?;
        let entries = linked.iter().flat_map(|l| &l.entries);
        let mut sites: Vec<_> = entries.map(|e| (e.led_at(), e.id)).collect();
        sites.sort_unstable();
        let left_out = |id| on.refused.iter().any(|(refused, _)| *refused == id);
        let stay_on = linked.iter().flat_map(|l| &l.entries);
        let stay_on = stay_on.filter(|e| !e.switched && !left_out(e.id));
        let not_switched = match options.switchable {
            true => stay_on.count() as u64,
            false => 0,
        };
        let copies = Copies::of(linked, &places);
        Ok((words, on, sites, not_switched, copies))
    });
    let (words, mut on, sites, not_switched, copies) = match prepared {
        Ok(done) => done,
        Err(e) => {
            if super::found::is_patched(&memory, &table) {
                log::error!("process {pid} could not be restored; run: hopscope detach -p {pid}");
                return Err(e);
            }
            // Never patched, or put back; a thread that was moved into a copy may still be there.
            match super::remove::reap(
                pid,
                &memory,
                &table,
                Some(super::remove::Arena::Held(&arena)),
            ) {
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
    refused.extend(std::mem::take(&mut on.refused));
    rings.gave(on.threads.len());
    if on.partly_searched > 0 {
        notes.push(format!(
            "process {pid}: {} stacks were too deep to be searched whole for functions interrupted at their first instructions (256 KiB of each, 16 MiB of all)",
            on.partly_searched
        ));
    }
    notes.extend(on.running.note(pid, &table));
    notes.extend(got::note(pid, &memory, &table.slots));
    let arena_inode = {
        use std::os::unix::fs::MetadataExt;
        arena
            .metadata()
            .map_err(LiveError::io(pid, "looking at the memfd"))?
            .ino()
    };
    Ok(Installed {
        pid,
        slots: table.slots.clone(),
        slot_loads,
        table,
        arena,
        pool: words,
        rings,
        memory,
        threads: on.threads,
        refused,
        stops: stop_times::take(pid),
        notes,
        sites,
        not_switched,
        copies,
        arena_inode,
        breakpoints: Watch::default(),
        restored: false,
    })
}

fn tid_offset(memory: &TargetMemory, fs_base: u64, tid: i32) -> Option<u32> {
    TID_OFFSETS.into_iter().find(|offset| {
        let mut word = [0u8; 4];
        let at = fs_base.wrapping_add(*offset as u64);
        fs_base != 0 && memory.read(at, &mut word).is_ok() && i32::from_le_bytes(word) == tid
    })
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

/// Text pages that are written become private to the target, and count for it.
fn check_room(pid: i32, table: &PatchTable) -> Result<(), LiveError> {
    /// For page tables, and what the target itself needs meanwhile.
    const SPARE_KIB: u64 = 1 << 10;
    let needed_kib = 4 * site::pages(&table.patches);
    match memory_limit::room(pid).map(|bytes| bytes >> 10) {
        Some(room_kib) if room_kib < needed_kib + SPARE_KIB => Err(LiveError::MemoryLimit {
            pid,
            needed_kib,
            room_kib,
        }),
        _ => Ok(()),
    }
}

/// CPU features of this machine that the generated code may use.
pub fn host_has_bmi2() -> bool {
    std::arch::is_x86_feature_detected!("bmi2")
}
