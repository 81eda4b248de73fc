//! The arena mapped where there is room. Places are chosen before a thread is stopped to map them, and other threads may
//! map something there meanwhile, such as the stack of a new thread: then others are chosen.
use super::build::{BuildError, Segment, Unwind};
use super::clock;
use super::error::LiveError;
use super::lookup::{self, Lookup};
use super::mapping::{self, Mapped};
use super::place::{self, Places, Sizes};
use super::table::{PatchTable, State};
use hopscope_process::maps::{self, Mapping};
use hopscope_process::memory::TargetMemory;
use hopscope_process::procfs;
use nix::libc;

pub(super) struct Settled {
    pub places: Places,
    /// How unwinders are answered, and what was mapped for it.
    pub lookup: Option<Lookup>,
    pub answering: Option<Mapped>,
    pub mapped: Mapped,
    pub mappings: Vec<Mapping>,
    /// Of the thread that mapped everything, and its number as it sees it itself.
    pub fs_base: u64,
    pub tid_inside: i32,
}

/// Each farther from what is mapped than the one before.
const ATTEMPTS: u64 = 8;
/// Eight stacks of threads, as long as they usually are.
const FARTHER: u64 = 64 << 20;

/// `table` is given the places. `unwind`: where unwinders are to be answered.
pub(super) fn settle(
    pid: i32,
    memory: &TargetMemory,
    segments: &[Segment],
    sizes: &Sizes,
    unwind: Option<Unwind>,
    table: &mut PatchTable,
) -> Result<Settled, LiveError> {
    let mut attempt = 0;
    loop {
        let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
        let away = away_from(&mappings, attempt * FARTHER);
        // Where there is too little room for a distance, none is kept.
        let (places, seen) = match place::choose(&away, segments, sizes) {
            Err(BuildError::NoGap { .. }) if attempt > 0 => {
                (place::choose(&mappings, segments, sizes)?, &mappings)
            }
            places => (places?, &away),
        };
        let lookup = unwind.map(|unwind| {
            let taken = places.taken();
            lookup::prepare(pid, memory, unwind.asked, table, seen, taken)
        });
        let lookup = lookup.transpose()?;
        table.segments = places.segments.clone();
        (table.header, table.contexts, table.pool) = (places.header, places.contexts, places.pool);
        table.counter_pages = places.counter_pages;
        match map(pid, table, lookup.as_ref()) {
            Ok(((mapped, answering), fs_base, tid_inside)) => {
                return Ok(Settled {
                    places,
                    lookup,
                    answering,
                    mapped,
                    mappings,
                    fs_base,
                    tid_inside,
                });
            }
            Err(e) if is_taken(&e) && attempt + 1 < ATTEMPTS => {
                log::info!("{e}; other places are tried");
                attempt += 1;
            }
            Err(e) => return Err(e),
        }
    }
}

/// What is mapped, and `distance` below it: there the kernel puts what is mapped next.
fn away_from(mappings: &[Mapping], distance: u64) -> Vec<Mapping> {
    let mut all = mappings.to_vec();
    for mapping in &mut all {
        mapping.range.start = mapping.range.start.saturating_sub(distance);
    }
    all
}

fn is_taken(error: &LiveError) -> bool {
    let LiveError::Remote { call, source, .. } = error else {
        return false;
    };
    *call == "mmap" && source.raw_os_error() == Some(libc::EEXIST)
}

type There = ((Mapped, Option<Mapped>), u64, i32);

/// During one stop of one thread.
fn map(pid: i32, table: &mut PatchTable, lookup: Option<&Lookup>) -> Result<There, LiveError> {
    // Whatever can be done before is: other programs may have our processor for milliseconds.
    let header = bare(table).to_bytes(State::Prepared);
    let mut one = hopscope_process::stop_one(pid)?;
    let tid = one.tids()[0];
    let fs_base = one.regs(tid).fs_base;
    clock::check(&mut one)?;
    // The main thread, or a process whose main thread is gone: libc keeps the innermost id.
    let tid_inside = procfs::tid_inside(pid, tid);
    let tid_inside = tid_inside.map_err(LiveError::io(pid, "reading its status"))?;
    let mapped = mapping::map(&mut one, table, &header).and_then(|mapped| {
        let Some(Lookup::New(new)) = lookup else {
            return Ok((mapped, None));
        };
        match mapping::map(&mut one, &new.table, &new.header) {
            Ok(answering) => Ok((mapped, Some(answering))),
            Err(e) => {
                mapping::undo(&mut one, table);
                Err(e)
            }
        }
    });
    one.resume()?;
    Ok((mapped?, fs_base, tid_inside))
}

/// What undoing takes before anything is measured. What salvaging takes, the names of all functions,
/// is much more to write while a thread waits, and comes later.
fn bare(table: &mut PatchTable) -> PatchTable {
    let functions = std::mem::take(&mut table.functions);
    let bare = table.clone();
    table.functions = functions;
    bare
}
