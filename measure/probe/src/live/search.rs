//! What in a stopped process refers to copies: a register, a stack, any other memory of its own.
use super::error::LiveError;
use super::maps::{self, Mapping};
use super::table::PatchTable;
use crate::attach::StoppedProcess;
use crate::attach::memory::TargetMemory;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// How much memory may be searched while the target stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Resident private memory up to 16 MiB: some milliseconds.
    Limited,
    /// All there is, however long it takes: some hundred milliseconds a GiB.
    All,
}

impl Extent {
    fn bytes(self) -> u64 {
        match self {
            Extent::Limited => LIMIT,
            Extent::All => u64::MAX,
        }
    }
}

const LIMIT: u64 = 16 << 20;
/// Page tables of larger mappings (sanitizer shadow memory) are not read.
const SPAN_AT_MOST: u64 = 16 << 30;

/// Why the copies of each table must stay, if they must.
pub(super) fn references(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    tables: &[&PatchTable],
    extent: Extent,
) -> Result<Vec<Option<String>>, LiveError> {
    let pid = stopped.pid();
    let mut sought = Sought::new(tables);
    let mut stack_pointers = Vec::new();
    for tid in stopped.tids() {
        let r = stopped.regs(tid);
        let registers = [
            r.rip, r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15,
        ];
        for word in registers {
            sought.see(word, || format!("thread {tid} is inside a copy"));
        }
        stack_pointers.push(r.rsp);
    }
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let mut budget = extent.bytes();
    for m in mappings
        .iter()
        .filter(|m| m.writable && m.readable && !m.shared)
    {
        if sought.all_found() {
            break;
        }
        let ours = tables.iter().any(|t| t.contexts.at == m.range.start);
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
            sought.give_up("a mapping of more than 16 GiB would have to be searched");
            break;
        }
        let whole = words(pid, memory, m, live_from, &mut budget, &mut |at, word| {
            sought.see(word, || {
                format!("memory at {at:#x} refers to a copy (a stack in use, or an old value)")
            });
            sought.all_found()
        })?;
        if !whole && !sought.all_found() {
            sought.give_up(&format!(
                "more than {} MiB of memory would have to be searched for references while it stands still",
                LIMIT >> 20
            ));
        }
    }
    Ok(sought.whys)
}

struct Sought {
    /// Ascending: where copies lie, and whose.
    segments: Vec<(Range<u64>, usize)>,
    /// From the first to the end of the last: nearly every word lies outside.
    span: Range<u64>,
    whys: Vec<Option<String>>,
    open: usize,
}

impl Sought {
    fn new(tables: &[&PatchTable]) -> Sought {
        let mut segments: Vec<(Range<u64>, usize)> = tables
            .iter()
            .enumerate()
            .flat_map(|(n, t)| t.segments.iter().map(move |s| (s.at..s.at + s.len, n)))
            .collect();
        segments.sort_by_key(|(range, _)| range.start);
        let start = segments.first().map_or(0, |(range, _)| range.start);
        let end = segments.last().map_or(0, |(range, _)| range.end);
        Sought {
            segments,
            span: start..end,
            whys: vec![None; tables.len()],
            open: tables.len(),
        }
    }

    fn see(&mut self, word: u64, why: impl FnOnce() -> String) {
        if !self.span.contains(&word) {
            return;
        }
        let after = self.segments.partition_point(|(r, _)| r.start <= word);
        let (range, owner) = &self.segments[after - 1];
        if range.contains(&word) && self.whys[*owner].is_none() {
            self.whys[*owner] = Some(why());
            self.open -= 1;
        }
    }

    fn all_found(&self) -> bool {
        self.open == 0
    }

    fn give_up(&mut self, why: &str) {
        for open in self.whys.iter_mut().filter(|w| w.is_none()) {
            *open = Some(why.to_owned());
        }
        self.open = 0;
    }
}

/// Whether a thread, or what a signal interrupted in it, stands where `wanted` says. Interrupted
/// registers lie on the stack that the thread runs on.
pub(super) fn is_inside(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    wanted: &dyn Fn(u64) -> bool,
) -> Result<bool, LiveError> {
    let pid = stopped.pid();
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let mut budget = LIMIT;
    for tid in stopped.tids() {
        let r = stopped.regs(tid);
        if wanted(r.rip) {
            return Ok(true);
        }
        let Some(stack) = mappings.iter().find(|m| m.range.contains(&r.rsp)) else {
            continue;
        };
        let from = r.rsp & !7;
        if !words(pid, memory, stack, from, &mut budget, &mut |_, w| wanted(w))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives every word of a mapping that holds anything, from `from` on, until told to end. False when
/// it was told so, or when the budget was used up before the end.
fn words(
    pid: i32,
    memory: &TargetMemory,
    mapping: &Mapping,
    from: u64,
    budget: &mut u64,
    see: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<bool, LiveError> {
    let mut bytes = Vec::new();
    for run in resident(pid, from, mapping.range.end)? {
        let start = run.start.max(from);
        let len = run.end - start;
        if *budget < len {
            return Ok(false);
        }
        *budget -= len;
        bytes.resize(len as usize, 0);
        memory
            .read(start, &mut bytes)
            .map_err(LiveError::io(pid, "searching its memory"))?;
        for (n, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
            if see(start + 8 * n as u64, word) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

const PAGE: u64 = 4096;
/// Read at once: large enough that the system call does not count.
const RUN_AT_MOST: u64 = 256 << 10;
/// Bits 63 and 62 of a pagemap entry: present, swapped; bit 58: part of a guard region, which cannot
/// be read (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT_OR_SWAPPED: u64 = 3 << 62;
const GUARD: u64 = 1 << 58;

/// Runs of pages that hold anything: untouched ones cannot refer to anything.
fn resident(pid: i32, from: u64, to: u64) -> Result<Vec<Range<u64>>, LiveError> {
    let first = from / PAGE;
    let count = to.div_ceil(PAGE) - first;
    let file = File::open(format!("/proc/{pid}/pagemap"))
        .map_err(LiveError::io(pid, "opening its pagemap"))?;
    let mut entries = vec![0u8; count as usize * 8];
    file.read_exact_at(&mut entries, first * 8)
        .map_err(LiveError::io(pid, "reading its pagemap"))?;
    let mut runs: Vec<Range<u64>> = Vec::new();
    for (n, entry) in (0..count).zip(entries.chunks_exact(8)) {
        let entry = u64::from_le_bytes(entry.try_into().expect("8 bytes"));
        if entry & PRESENT_OR_SWAPPED == 0 || entry & GUARD != 0 {
            continue;
        }
        let at = (first + n) * PAGE;
        match runs.last_mut() {
            Some(run) if run.end == at && run.end - run.start < RUN_AT_MOST => run.end += PAGE,
            _ => runs.push(at..at + PAGE),
        }
    }
    Ok(runs)
}
