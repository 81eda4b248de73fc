//! Detaching: the entries are put back in one batch stop; what was mapped goes when nothing in
//! the process refers to it any more.
use super::error::LiveError;
use super::maps::{self, Mapping};
use super::patch::{self, Direction, Written};
use super::retire;
use super::table::{Area, PatchTable, State};
use crate::attach::memory::TargetMemory;
use crate::attach::{self, StoppedProcess, fault};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Puts the original bytes back where ours still stand.
pub fn restore(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
) -> Result<(Written, Duration), LiveError> {
    let stopped = attach::stop_all(pid)?;
    fault::point(fault::RESTORING);
    let result = patch::write(pid, memory, &table.patches, Direction::Restore);
    fault::point(fault::RESTORED);
    let timing = stopped.resume()?;
    Ok((result?, timing.pause()))
}

/// Closes descriptors that a killed recorder left open before anything was mapped. The thread that
/// was used may still be on its way back, so this may take more than one attempt.
pub fn close_descriptors(pid: i32) -> Result<(), LiveError> {
    let mut attempts = ATTEMPTS_MS.into_iter();
    loop {
        match unmap(pid, &[]) {
            Ok(()) => return Ok(()),
            Err(e) => match attempts.next() {
                Some(wait) => std::thread::sleep(Duration::from_millis(wait)),
                None => return Err(e),
            },
        }
    }
}

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
/// entries must have been restored. With `retire`, copies that must stay are disarmed, so that
/// they need neither gs nor rings and the process can be recorded again.
pub fn reap(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    retire: bool,
) -> Result<Reaped, LiveError> {
    let mut stopped = attach::stop_all(pid)?;
    let end = decide(&mut stopped, memory, table, retire);
    fault::point(fault::CLEARED_GS);
    stopped.resume()?;
    let data = [table.contexts, table.pool];
    let (areas, reaped) = match end? {
        End::Stays(why) => return Ok(Reaped::Kept(why)),
        End::Retired(why) => (data.to_vec(), Reaped::Retired(why)),
        End::Goes => {
            let code = table.segments.iter().copied().chain([table.header]);
            (code.chain(data).collect(), Reaped::Unmapped)
        }
    };
    let areas: Vec<Area> = areas.into_iter().filter(|a| a.len > 0).collect();
    unmap(pid, &areas)?;
    fault::point(fault::UNMAPPED);
    Ok(reaped)
}

enum End {
    Stays(String),
    /// The copies stay, and need neither gs nor rings any more.
    Retired(String),
    Goes,
}

fn decide(
    stopped: &mut StoppedProcess,
    memory: &TargetMemory,
    table: &PatchTable,
    retire: bool,
) -> Result<End, LiveError> {
    let end = match refers_to_copies(stopped, memory, table)? {
        None => End::Goes,
        Some(why) if !retire || table.pool.len == 0 => return Ok(End::Stays(why)),
        Some(why) => {
            if !retire_copies(stopped, memory, table)? {
                return Ok(End::Stays(why));
            }
            End::Retired(why)
        }
    };
    clear_gs(stopped, table)?;
    Ok(end)
}

/// False when a thread is in the middle of a probe. Forked children run the same copies: they stand
/// still too, and lose their contexts and rings with their parent.
fn retire_copies(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    table: &PatchTable,
) -> Result<bool, LiveError> {
    let pid = stopped.pid();
    let Some(mut children) = stop_children(pid, table) else {
        return Ok(false);
    };
    let probes = retire::Probes::find(pid, memory, table)?;
    let is_busy = |word| probes.is_busy(word);
    if is_inside(stopped, memory, &is_busy)? {
        return Ok(false);
    }
    for child in &children {
        if is_inside(child, &TargetMemory::open(child.pid())?, &is_busy)? {
            return Ok(false);
        }
    }
    probes.disarm(pid, table)?;
    retire::rewrite_table(pid, &retire::without_data(table))?;
    for child in &mut children {
        clear_gs(child, table)?;
    }
    for child in children {
        let pid = child.pid();
        let gone = child
            .resume()
            .map_err(LiveError::from)
            .and_then(|_| unmap(pid, &[table.contexts, table.pool]));
        if let Err(e) = gone {
            log::info!("process {pid}, a forked child, ended or keeps unused rings: {e}");
        }
    }
    Ok(true)
}

/// `None` when one of them cannot be stopped, or is younger than the search for it.
fn stop_children(pid: i32, table: &PatchTable) -> Option<Vec<StoppedProcess>> {
    let mut children: Vec<StoppedProcess> = Vec::new();
    // A child may fork before it stands still.
    for _ in 0..CHILD_GENERATIONS {
        let mut new = retire::sharers(pid, table)?;
        new.retain(|p| children.iter().all(|c| c.pid() != *p));
        if new.is_empty() {
            return Some(children);
        }
        for child in new {
            match attach::stop_all(child) {
                Ok(stopped) => children.push(stopped),
                Err(_) if !std::path::Path::new(&format!("/proc/{child}")).exists() => {}
                Err(_) => return None,
            }
        }
    }
    None
}

const CHILD_GENERATIONS: usize = 4;

fn clear_gs(stopped: &mut StoppedProcess, table: &PatchTable) -> Result<(), LiveError> {
    for tid in stopped.tids() {
        if table.contexts.contains(stopped.regs(tid).gs_base) {
            stopped.set_gs_base(tid, 0)?;
        }
    }
    Ok(())
}

/// Whether a thread, or what a signal interrupted in it, stands where `wanted` says. Interrupted
/// registers lie on the stack that the thread runs on.
fn is_inside(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    wanted: &dyn Fn(u64) -> bool,
) -> Result<bool, LiveError> {
    let pid = stopped.pid();
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let mut budget = SEARCHED_AT_MOST;
    for tid in stopped.tids() {
        let r = stopped.regs(tid);
        if wanted(r.rip) {
            return Ok(true);
        }
        let Some(stack) = mappings.iter().find(|m| m.range.contains(&r.rsp)) else {
            continue;
        };
        match search(pid, memory, stack, r.rsp & !7, &mut budget, wanted)? {
            Search::Clean => {}
            Search::Hit(_) | Search::TooMuch => return Ok(true),
        }
    }
    Ok(false)
}

/// Unmaps areas nobody uses, with one stopped thread, and closes descriptors that a recorder,
/// killed while it attached, left open.
pub fn unmap(pid: i32, areas: &[Area]) -> Result<(), LiveError> {
    let mut one = attach::stop_one(pid)?;
    let result = super::mapping::close_leftovers(&mut one).and_then(|()| {
        areas.iter().try_for_each(|area| {
            // A recorder killed early has announced areas that it never mapped: another mapping
            // may lie there by now.
            if is_ours(pid, *area)? {
                super::mapping::unmap(&mut one, *area)?;
            }
            Ok(())
        })
    });
    one.resume()?;
    result
}

/// A whole mapping of one of our memfds, or a whole private anonymous one (the contexts: wiped on
/// fork, so that the kernel merges them with no other).
fn is_ours(pid: i32, area: Area) -> Result<bool, LiveError> {
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let whole = |m: &&Mapping| m.range == (area.at..area.at + area.len);
    Ok(mappings.iter().find(whole).is_some_and(|m| {
        let names = [super::table::ARENA_NAME, super::table::POOL_NAME];
        let memfd = names
            .iter()
            .any(|n| m.name == format!("/memfd:{n} (deleted)"));
        memfd || (m.inode == 0 && m.name.is_empty() && m.writable && !m.executable)
    }))
}

/// More resident private memory than this is not searched while the target stands still.
const SEARCHED_AT_MOST: u64 = 16 << 20;

/// Page tables of larger mappings (sanitizer shadow memory) are not read.
const SPAN_AT_MOST: u64 = 16 << 30;

/// Why the copies must stay, if they must.
fn refers_to_copies(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    table: &PatchTable,
) -> Result<Option<String>, LiveError> {
    let pid = stopped.pid();
    let in_copies = |word: u64| table.segments.iter().any(|s| s.contains(word));
    let tids = stopped.tids();
    let mut stack_pointers = Vec::new();
    for &tid in &tids {
        let r = stopped.regs(tid);
        let registers = [
            r.rip, r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15,
        ];
        if registers.into_iter().any(in_copies) {
            return Ok(Some(format!("thread {tid} is inside a copy")));
        }
        stack_pointers.push(r.rsp);
    }
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let mut budget = SEARCHED_AT_MOST;
    for m in mappings
        .iter()
        .filter(|m| m.writable && m.readable && !m.shared)
    {
        let ours = table.contexts.at == m.range.start;
        if ours || m.name == "[vvar]" {
            continue;
        }
        // Below rsp and its red zone a stack holds old return addresses that mean nothing.
        let live_from = stack_pointers
            .iter()
            .filter(|sp| m.range.contains(sp))
            .min()
            .map_or(m.range.start, |sp| {
                sp.saturating_sub(128).max(m.range.start) & !7
            });
        if m.range.end - live_from > SPAN_AT_MOST {
            return Ok(Some(
                "a mapping of more than 16 GiB would have to be searched".into(),
            ));
        }
        match search(pid, memory, m, live_from, &mut budget, &in_copies)? {
            Search::Clean => {}
            Search::Hit(at) => {
                return Ok(Some(format!(
                    "memory at {at:#x} refers to a copy (a stack in use, or an old value)"
                )));
            }
            Search::TooMuch => {
                return Ok(Some(format!(
                    "more than {} MiB of memory would have to be searched for references while it stands still",
                    SEARCHED_AT_MOST >> 20
                )));
            }
        }
    }
    Ok(None)
}

enum Search {
    Clean,
    Hit(u64),
    TooMuch,
}

fn search(
    pid: i32,
    memory: &TargetMemory,
    mapping: &Mapping,
    from: u64,
    budget: &mut u64,
    wanted: &dyn Fn(u64) -> bool,
) -> Result<Search, LiveError> {
    for page in resident_pages(pid, from, mapping.range.end)? {
        let start = page.max(from);
        let len = page + PAGE - start;
        if *budget < len {
            return Ok(Search::TooMuch);
        }
        *budget -= len;
        let mut bytes = [0u8; PAGE as usize];
        let bytes = &mut bytes[..len as usize];
        memory
            .read(start, bytes)
            .map_err(LiveError::io(pid, "searching its memory"))?;
        let hit = bytes
            .chunks_exact(8)
            .position(|w| wanted(u64::from_le_bytes(w.try_into().expect("8 bytes"))));
        if let Some(n) = hit {
            return Ok(Search::Hit(start + 8 * n as u64));
        }
    }
    Ok(Search::Clean)
}

const PAGE: u64 = 4096;
/// Bits 63 and 62 of a pagemap entry: present, swapped (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT_OR_SWAPPED: u64 = 3 << 62;

/// Pages of a range that hold anything: untouched ones cannot refer to anything.
fn resident_pages(pid: i32, from: u64, to: u64) -> Result<Vec<u64>, LiveError> {
    let first = from / PAGE;
    let count = to.div_ceil(PAGE) - first;
    let file = File::open(format!("/proc/{pid}/pagemap"))
        .map_err(LiveError::io(pid, "opening its pagemap"))?;
    let mut entries = vec![0u8; count as usize * 8];
    file.read_exact_at(&mut entries, first * 8)
        .map_err(LiveError::io(pid, "reading its pagemap"))?;
    let present =
        |e: &[u8]| u64::from_le_bytes(e.try_into().expect("8 bytes")) & PRESENT_OR_SWAPPED != 0;
    Ok((0..count)
        .zip(entries.chunks_exact(8))
        .filter(|(_, e)| present(e))
        .map(|(n, _)| (first + n) * PAGE)
        .collect())
}

/// What a detach did, beyond the bytes it put back.
#[derive(Debug, Default)]
pub struct Detached {
    pub pause: Duration,
    /// Entries that carried our jump and are as they were now.
    pub restored: u64,
    /// What the user should know: copies kept, children cleaned, sites left alone.
    pub notes: Vec<String>,
}

/// Restores `pid` and every process that inherited its patched code by fork. What is mapped stays.
pub fn restore_all(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    inode: u64,
    state: State,
) -> Result<Detached, LiveError> {
    let mut detached = Detached::default();
    let (written, pause) = restore(pid, memory, table)?;
    (detached.pause, detached.restored) = (pause, written.sites);
    // An attach that was killed before its first write has nothing to put back.
    if !written.left_out.is_empty() && state != State::Prepared {
        let n = written.left_out.len();
        detached.notes.push(format!(
            "process {pid}: {n} entries no longer carried our jump (module unloaded or replaced) and were left alone"
        ));
    }
    for child in super::found::everywhere()
        .into_iter()
        .filter(|f| f.inode == inode && f.pid != pid)
    {
        match detach_child(child.pid, table) {
            Ok(()) => detached.notes.push(format!(
                "process {}: a forked child, restored too",
                child.pid
            )),
            Err(e) => detached.notes.push(format!(
                "process {}, a forked child, is not restored: {e}",
                child.pid
            )),
        }
    }
    Ok(detached)
}

/// Pauses between attempts: a thread inside a copy usually leaves it soon.
const ATTEMPTS_MS: [u64; 6] = [0, 1, 4, 16, 64, 256];

/// Unmaps what can be; says what could not.
pub fn reap_noted(pid: i32, memory: &TargetMemory, table: &PatchTable, notes: &mut Vec<String>) {
    let mut last = String::new();
    for (n, wait) in ATTEMPTS_MS.into_iter().enumerate() {
        std::thread::sleep(Duration::from_millis(wait));
        // Everything is restored by now: what cannot be unmapped is a note, not a failure.
        match reap(pid, memory, table, n + 3 > ATTEMPTS_MS.len()) {
            Ok(Reaped::Unmapped) => return,
            Ok(Reaped::Kept(why)) => last = why,
            Err(e) => last = e.to_string(),
            Ok(Reaped::Retired(why)) => {
                last = why;
                break;
            }
        }
    }
    notes.push(format!(
        "process {pid}: the copies stay mapped, unused ({} KiB): {last}",
        table.segments.iter().map(|s| s.len).sum::<u64>() >> 10
    ));
}

fn detach_child(pid: i32, table: &PatchTable) -> Result<(), LiveError> {
    let memory = TargetMemory::open(pid)?;
    restore(pid, &memory, table)?;
    reap(pid, &memory, table, false).map(drop)
}
