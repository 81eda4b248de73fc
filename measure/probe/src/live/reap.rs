//! Taking away what was mapped, once nothing in the process refers to it any more; with it what
//! earlier recordings had to leave.
use super::counter_pages;
use super::error::LiveError;
use super::found;
use super::inside::is_inside;
use super::leftover;
use super::pages::Hit;
use super::passage;
use super::patch::{self, Direction};
use super::retire::{self, Arena};
use super::search::{self, References};
use super::shared_rings;
use super::sharers::Sharers;
use super::slots;
use super::survey::{Extent, Survey};
use super::table::{Area, PatchTable};
use super::text;
use hopscope_process::maps::{self, Mapping};
use hopscope_process::memory::TargetMemory;
use hopscope_process::{AttachError, StoppedProcess, cgroup, fault, procfs};
use std::time::Duration;

/// Whether the arena is gone from the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaped {
    Unmapped,
    /// Still mapped, and why; harmless: nothing enters it any more.
    Kept(String),
    /// The code is still mapped, and why; its probes are gone, and so is everything else.
    Retired(String),
}

/// Unmaps everything of `table` once no register, stack or other memory refers to a copy. All
/// entries must have been restored. With `retire`, copies of the first table that must stay are disarmed, so that
/// they need neither gs nor rings and the process can be recorded again.
pub fn reap(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    retire: Option<Arena>,
) -> Result<Reaped, LiveError> {
    let mut lookups = slots::in_process(pid, memory);
    lookups.retain(|lookup| !found::is_of_another(lookup));
    let tables: Vec<_> = std::iter::once(table).chain(&lookups).collect();
    let mut survey = Survey::new(memory, &tables);
    let (mut reaped, _) = reap_all(pid, memory, &tables, retire, Extent::Limited, &mut survey)?;
    Ok(reaped.remove(0))
}

/// The same for several tables in one stop, and how long that took. What `survey` knows of is not
/// searched again.
pub(super) fn reap_all(
    pid: i32,
    memory: &TargetMemory,
    tables: &[&PatchTable],
    retire: Option<Arena>,
    extent: Extent,
    survey: &mut Survey<'_>,
) -> Result<(Vec<Reaped>, Duration), LiveError> {
    let mut retirements = Vec::new();
    // What cannot be disarmed may still be unused, and go.
    let mut unprepared = None;
    for table in tables {
        retirements.push(match retire.filter(|_| table.pool.len > 0) {
            Some(arena) => Retirement::prepare(pid, arena, table).unwrap_or_else(|e| {
                unprepared = Some(e.to_string());
                None
            }),
            None => None,
        });
    }
    let own_pages = |t: &&&PatchTable| t.counter_pages.len > 0 && !t.shares_rings;
    for table in tables.iter().filter(own_pages) {
        passage::close_leftovers(pid, memory, counter_pages::scratch(table))?;
    }
    let rings_in_use = shared_rings::in_use(pid, memory, tables);
    let mut stopped = hopscope_process::stop_all(pid)?;
    let retirements = Retirements {
        retirements,
        rings_in_use,
    };
    let ends = decide(&mut stopped, memory, tables, &retirements, extent, survey);
    fault::point(fault::CLEARED_GS);
    let pause = stopped.resume()?.pause();
    let (mut areas, mut retired) = (Vec::new(), Vec::new());
    let mut reaped = Vec::new();
    for (end, table) in ends?.into_iter().zip(tables) {
        let data = table.data();
        reaped.push(match end {
            End::Stays(why) => Reaped::Kept(match &unprepared {
                Some(e) => format!("{why}; their probes cannot be taken out: {e}"),
                None => why,
            }),
            End::Retired { why, children } => {
                areas.extend(data);
                retired.push((*table, children));
                Reaped::Retired(why)
            }
            End::Goes => {
                areas.extend(table.segments.iter().copied().chain([table.header]));
                areas.extend(data);
                Reaped::Unmapped
            }
        });
    }
    areas.retain(|a| a.len > 0);
    if reaped.iter().any(|r| !matches!(r, Reaped::Kept(_))) {
        unmap(pid, &areas)?;
        fault::point(fault::UNMAPPED);
    }
    // Only now: a retired table does not say where contexts and rings were.
    let arena = retire.unwrap_or(Arena::Mapped);
    for (table, children) in retired {
        retire::rewrite_table(pid, arena, table)?;
        retire::free_behind_table(pid, arena, table);
        unmap(pid, &[retire::behind_table(table)])?;
        for child in children {
            let areas = [table.data(), vec![retire::behind_table(table)]].concat();
            if let Err(e) = unmap(child, &areas) {
                log::info!("process {child}, a forked child, ended or keeps unused rings: {e}");
            }
        }
    }
    Ok((reaped, pause))
}

enum End {
    Stays(String),
    /// The copies stay, and need neither gs nor rings any more.
    Retired {
        why: String,
        /// Which have the same mapped.
        children: Vec<i32>,
    },
    Goes,
}

/// What is found out about copies that may have to stay, before anything is stopped for it.
struct Retirement {
    probes: retire::Probes,
    sharers: Sharers,
}

impl Retirement {
    fn prepare(
        pid: i32,
        arena: Arena,
        table: &PatchTable,
    ) -> Result<Option<Retirement>, LiveError> {
        let Some(sharers) = Sharers::of(pid, table) else {
            return Ok(None);
        };
        let probes = retire::Probes::find(pid, arena, table)?;
        Ok(Some(Retirement { probes, sharers }))
    }
}

/// Of each table, in their order.
struct Retirements {
    retirements: Vec<Option<Retirement>>,
    /// Copies of another arena write into its rings.
    rings_in_use: Vec<bool>,
}

fn decide(
    stopped: &mut StoppedProcess,
    memory: &TargetMemory,
    tables: &[&PatchTable],
    known: &Retirements,
    extent: Extent,
    survey: &mut Survey<'_>,
) -> Result<Vec<End>, LiveError> {
    let all = known.retirements.iter().any(Option::is_some);
    let References { whys, hits } = search::references(stopped, survey, tables, extent, all)?;
    let mut ends = Vec::with_capacity(tables.len());
    for (n, (why, table)) in whys.into_iter().zip(tables).enumerate() {
        let end = match (why, &known.retirements[n]) {
            _ if known.rings_in_use[n] => End::Stays(shared_rings::STAY.to_owned()),
            (None, _) => End::Goes,
            (Some(why), None) => End::Stays(why),
            (Some(why), Some(retirement)) => {
                match retire_copies(stopped, memory, table, retirement, &hits)? {
                    Some(children) => End::Retired { why, children },
                    None => End::Stays(why),
                }
            }
        };
        if !matches!(end, End::Stays(_)) {
            clear_gs(stopped, table)?;
        }
        ends.push(end);
    }
    release_lookups(stopped, memory, tables, &mut ends)?;
    Ok(ends)
}

/// What answers unwinders is put back with the last copies that they may ask for, in the same stop.
fn release_lookups(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    tables: &[&PatchTable],
    ends: &mut [End],
) -> Result<(), LiveError> {
    let goes = tables
        .iter()
        .zip(&*ends)
        .filter(|(_, end)| matches!(end, End::Goes));
    let gone: Vec<Area> = goes.flat_map(|(table, _)| table.segments.clone()).collect();
    for (table, end) in tables.iter().zip(ends) {
        if !table.answers_unwinders {
            continue;
        }
        let released = slots::release(memory, table, &gone);
        if released.map_err(LiveError::io(
            stopped.pid(),
            "reading what answers unwinders",
        ))? {
            patch::write(stopped, memory, &table.patches, Direction::Restore)?;
        } else {
            *end = End::Stays("copies that stay need it".to_owned());
        }
    }
    Ok(())
}

/// `None` when a thread is in the middle of a probe, the last one that it comes into. Forked children run the same copies: they stand
/// still too, and are to lose their contexts and rings with their parent.
fn retire_copies(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    table: &PatchTable,
    retirement: &Retirement,
    hits: &[Hit],
) -> Result<Option<Vec<i32>>, LiveError> {
    let pid = stopped.pid();
    let Retirement { probes, sharers } = retirement;
    let Some(children) = stop_children(sharers) else {
        return Ok(None);
    };
    probes.lead_out(pid)?;
    // Before anybody is looked for in them: a thread that runs from probe to probe would be in one each time.
    probes.disarm(pid)?;
    if is_inside(stopped, memory, probes, hits)? {
        return Ok(None);
    }
    for child in &children {
        let memory = TargetMemory::open(child.pid())?;
        // Its entries lead here, and what the table says of them is still needed.
        if found::is_patched(&memory, table) || is_inside(child, &memory, probes, &[])? {
            return Ok(None);
        }
    }
    let mut resumed = Vec::with_capacity(children.len());
    for mut child in children {
        clear_gs(&mut child, table)?;
        let pid = child.pid();
        match child.resume() {
            Ok(_) => resumed.push(pid),
            Err(e) => log::info!("process {pid}, a forked child: {e}"),
        }
    }
    Ok(Some(resumed))
}

/// `None` when one of them cannot be stopped, or is younger than the search for it.
fn stop_children(sharers: &Sharers) -> Option<Vec<StoppedProcess>> {
    let mut children: Vec<StoppedProcess> = Vec::new();
    // A child may fork before it stands still.
    for _ in 0..CHILD_GENERATIONS {
        let mut new = sharers.now();
        new.retain(|p| children.iter().all(|c| c.pid() != *p));
        if new.is_empty() {
            return Some(children);
        }
        for child in new {
            match hopscope_process::stop_all(child) {
                Ok(stopped) => children.push(stopped),
                // Its parent stands still and cannot take note of its end.
                Err(_) if procfs::start_time(child).is_none() => {}
                Err(_) => return None,
            }
        }
    }
    None
}

const CHILD_GENERATIONS: usize = 4;

fn clear_gs(stopped: &mut StoppedProcess, table: &PatchTable) -> Result<(), LiveError> {
    if table.shares_rings {
        return Ok(());
    }
    for tid in stopped.tids() {
        if table.contexts.contains(stopped.regs(tid).gs_base) {
            stopped.set_gs_base(tid, 0)?;
        }
    }
    Ok(())
}

/// Unmaps areas nobody uses, with one stopped thread, and closes descriptors that a recorder,
/// killed while it attached, left open.
pub(super) fn unmap(pid: i32, areas: &[Area]) -> Result<(), LiveError> {
    let mappings = || maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"));
    let before = mappings()?;
    let mut one = hopscope_process::stop_one(pid)?;
    let result = super::mapping::close_leftovers(&mut one).and_then(|()| {
        // A thread that was sent into a call by a killed recorder has made it by now.
        let now = match areas.iter().all(|area| is_ours(&before, *area)) {
            true => before,
            false => mappings()?,
        };
        // A recorder killed early has announced areas that it never mapped: another mapping may lie
        // there by now.
        let mut ours = areas.iter().filter(|area| is_ours(&now, **area));
        ours.try_for_each(|area| super::mapping::unmap(&mut one, *area))
    });
    one.resume()?;
    result
}

/// In a mapping of one of our memfds, or a whole private anonymous one (the contexts: wiped on
/// fork, so that the kernel merges them with no other).
fn is_ours(mappings: &[Mapping], area: Area) -> bool {
    let (start, end) = (area.at, area.at + area.len);
    let around = |m: &&Mapping| m.range.start <= start && end <= m.range.end;
    area.len > 0
        && mappings.iter().find(around).is_some_and(|m| {
            let names = [super::table::ARENA_NAME, super::table::POOL_NAME];
            let named = |n: &&str| m.name == format!("/memfd:{n} (deleted)");
            let memfd = m.is_memfd() && names.iter().any(named);
            let anonymous = m.inode == 0 && m.name.is_empty() && m.writable && !m.executable;
            memfd || (anonymous && m.range == (start..end))
        })
        || counter_pages::are_mapped(mappings, area)
}

/// Pauses between attempts: a thread inside a copy usually leaves it soon.
pub(super) const ATTEMPTS_MS: [u64; 9] = [0, 1, 4, 16, 64, 64, 64, 256, 256];
/// From this attempt on copies that must stay lose their probes, which is for good.
const RETIRE_FROM: usize = 4;
const LOOPS_RETIRE_FROM: usize = 1;

/// How unmapping ended.
#[derive(Debug, Clone, Copy)]
pub struct Reaping {
    /// The longest.
    pub pause: Duration,
    /// The process is frozen: what is mapped is still to be taken away.
    pub frozen: bool,
}

/// Unmaps what can be, of earlier recordings too; notes what could not.
pub fn reap_noted(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    arena: Arena,
    extent: Extent,
    notes: &mut Vec<String>,
) -> Reaping {
    let reaping = reap_repeatedly(pid, memory, table, arena, extent, notes);
    if reaping.frozen {
        let mapped = table.header.len + leftover::code_bytes(table) + table.contexts.len;
        notes.push(format!(
            "process {pid} is frozen by its control group (cgroup.freeze, freezer.state): its functions are as they were, \
             and {} KiB of copies and {} KiB of rings stay mapped, unused; once it is thawed run: hopscope detach -p {pid}",
            mapped >> 10,
            table.pool.len >> 10
        ));
        return reaping;
    }
    match text::give_back(pid, memory, &table.patches) {
        Ok((bytes, pause)) => {
            log::debug!(
                "process {pid}: {} KiB of text are shared again",
                bytes >> 10
            );
            Reaping {
                pause: reaping.pause.max(pause),
                ..reaping
            }
        }
        Err(e) => {
            log::info!("process {pid} keeps its own copies of text pages: {e}");
            reaping
        }
    }
}

fn reap_repeatedly(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    arena: Arena,
    extent: Extent,
    notes: &mut Vec<String>,
) -> Reaping {
    let mut earlier = leftover::of(pid, memory, Some(table.header.at), notes);
    let mut longest = Duration::ZERO;
    let ended = |pause, frozen| Reaping { pause, frozen };
    if cgroup::is_frozen(pid) {
        return ended(longest, true);
    }
    let mut last = String::new();
    let tables: Vec<_> = std::iter::once(table)
        .chain(earlier.iter().map(|e| &e.table))
        .collect();
    let mut survey = Survey::new(memory, &tables);
    // What runs in a loop leaves the copies once they are retired, and not before.
    let retire_from = match table.loops.is_empty() {
        true => RETIRE_FROM,
        false => LOOPS_RETIRE_FROM,
    };
    let mut retired: Option<PatchTable> = None;
    for (n, wait) in ATTEMPTS_MS.into_iter().enumerate() {
        std::thread::sleep(Duration::from_millis(wait));
        let retire = (n >= retire_from && retired.is_none()).then_some(arena);
        let own = retired.as_ref().unwrap_or(table);
        let tables: Vec<_> = std::iter::once(own)
            .chain(earlier.iter().map(|e| &e.table))
            .collect();
        // Everything is restored by now: what cannot be unmapped is a note, not a failure.
        let attempt = survey
            .refresh(pid, extent)
            .and_then(|()| reap_all(pid, memory, &tables, retire, extent, &mut survey));
        match attempt {
            Ok((reaped, pause)) => {
                longest = longest.max(pause).max(survey.pause);
                let mut stays = reaped[1..].iter().map(|r| *r != Reaped::Unmapped);
                earlier.retain(|_| stays.next() == Some(true));
                match &reaped[0] {
                    Reaped::Unmapped => {
                        leftover::note(pid, &earlier, notes);
                        return ended(longest, false);
                    }
                    Reaped::Kept(why) => last = why.clone(),
                    Reaped::Retired(why) => {
                        last = why.clone();
                        if table.loops.is_empty() {
                            break;
                        }
                        retired = Some(retire::retired(table));
                    }
                }
            }
            Err(LiveError::Attach(AttachError::Frozen { .. })) => return ended(longest, true),
            Err(e) => last = e.to_string(),
        }
    }
    let answered = match earlier.iter().all(leftover::Leftover::is_copies) {
        true => "",
        false => "; _dl_find_object leads to their unwind tables until they are gone",
    };
    notes.push(format!(
        "process {pid}: the copies stay mapped, unused ({} KiB): {last}{answered}",
        leftover::code_bytes(table) >> 10
    ));
    leftover::note(pid, &earlier, notes);
    ended(longest, false)
}
