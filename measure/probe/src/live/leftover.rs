//! Copies that earlier recordings had to leave in a process, because something seemed to refer to
//! them. Their number is bounded: each detach looks again, and too many of them refuse an attach.
use super::error::LiveError;
use super::found;
use super::reap::{self, Reaped};
use super::slots;
use super::survey::{Extent, Survey};
use super::table::{PatchTable, State};
use hopscope_process::memory::TargetMemory;
use std::time::Duration;

/// More copies than this may not wait in one process for being unused.
pub const AT_MOST: u64 = 64 << 20;

/// Of a retired table's JSON: it names no functions. A process that says otherwise may have mapped
/// thousands of them.
const RETIRED_BYTES_AT_MOST: u64 = 1 << 20;

pub(super) struct Leftover {
    pub table: PatchTable,
}

/// Retired copies, but for those whose table lies at `except`. Whatever else a killed recorder left is
/// for `detach`: there may be records to save. What cannot be read is noted: it stays.
pub(super) fn of(
    pid: i32,
    memory: &TargetMemory,
    except: Option<u64>,
    notes: &mut Vec<String>,
) -> Vec<Leftover> {
    let found = found::in_process(pid).into_iter();
    let found = found.filter_map(|f| Some((f.header?.at, f)));
    let mut left = Vec::new();
    for (at, f) in found.filter(|(at, _)| except != Some(*at)) {
        let read = match f.state(memory) {
            Ok(State::Restored) => f.table_at_most(memory, RETIRED_BYTES_AT_MOST),
            Ok(_) => continue,
            Err(e) => Err(e),
        };
        match read {
            Ok((table, state)) if is_retired(&table, state) && f.belongs(&table) => {
                left.push(Leftover { table });
            }
            Ok(_) => {}
            Err(e) => notes.push(format!(
                "process {pid}: what an earlier recording left at {at:#x} stays mapped, its table cannot be read: {e}"
            )),
        }
    }
    left
}

/// Whether the copies need nothing any more, but stay.
pub fn is_retired(table: &PatchTable, state: State) -> bool {
    state == State::Restored && table.pool.len == 0
}

pub(super) fn code_bytes(table: &PatchTable) -> u64 {
    table.segments.iter().map(|s| s.len).sum()
}

impl Leftover {
    /// Not what answers for them.
    fn is_copies(&self) -> bool {
        !self.table.answers_unwinders
    }
}

fn copies(left: &[Leftover]) -> usize {
    left.iter().filter(|l| l.is_copies()).count()
}

fn bytes(left: &[Leftover]) -> u64 {
    let copies = left.iter().filter(|l| l.is_copies());
    copies.map(|l| code_bytes(&l.table)).sum()
}

/// Says what is still there.
pub(super) fn note(pid: i32, left: &[Leftover], notes: &mut Vec<String>) {
    if copies(left) > 0 {
        notes.push(format!(
            "process {pid}: copies of {} earlier recordings stay mapped, unused ({} KiB; at most {} MiB)",
            copies(left),
            bytes(left) >> 10,
            AT_MOST >> 20
        ));
    }
}

/// What became of earlier copies.
#[derive(Debug, Default)]
pub struct Taken {
    pub recordings: usize,
    pub bytes: u64,
    /// The longest time all threads stood still.
    pub pause: Duration,
    /// What stays.
    pub notes: Vec<String>,
}

/// Takes away what earlier recordings left in `pid` and nothing refers to any more.
pub fn take_away(pid: i32, extent: Extent) -> Result<Taken, LiveError> {
    let memory = TargetMemory::open(pid)?;
    let mut taken = Taken::default();
    let mut left = of(pid, &memory, None, &mut taken.notes);
    let known: Vec<_> = left.iter().map(|l| l.table.clone()).collect();
    let known: Vec<_> = known.iter().collect();
    // Of a recording that goes on, perhaps.
    left.retain(|l| l.is_copies() || !slots::serves_others(&memory, &l.table, &known));
    for wait in reap::ATTEMPTS_MS {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(wait));
        let before = (copies(&left), bytes(&left));
        let pause = look_again(pid, &memory, &mut left, extent)?;
        taken.recordings += before.0 - copies(&left);
        taken.bytes += before.1 - bytes(&left);
        taken.pause = taken.pause.max(pause);
    }
    note(pid, &left, &mut taken.notes);
    Ok(taken)
}

/// Keeps in `left` what stays.
fn look_again(
    pid: i32,
    memory: &TargetMemory,
    left: &mut Vec<Leftover>,
    extent: Extent,
) -> Result<Duration, LiveError> {
    let tables: Vec<_> = left.iter().map(|l| &l.table).collect();
    let mut survey = Survey::new(memory, &tables);
    survey.refresh(pid, extent)?;
    let (reaped, pause) = reap::reap_all(pid, memory, &tables, None, extent, &mut survey)?;
    let pause = pause.max(survey.pause);
    drop(survey);
    let mut stays = reaped.iter().map(|r| *r != Reaped::Unmapped);
    left.retain(|_| stays.next() == Some(true));
    Ok(pause)
}

/// Before an attach: takes away what can be when much is left.
///
/// # Errors
/// When more than [`AT_MOST`] stays.
pub(super) fn make_room(pid: i32, memory: &TargetMemory) -> Result<(), LiveError> {
    let mut unread = Vec::new();
    let mut left = of(pid, memory, None, &mut unread);
    unread.iter().for_each(|note| log::warn!("{note}"));
    // Searching makes the target stand still: only when there is a reason to.
    if bytes(&left) <= AT_MOST / 2 {
        return Ok(());
    }
    let pause = look_again(pid, memory, &mut left, Extent::Limited)?;
    log::info!("process {pid} was stopped for {pause:?} to search for earlier copies");
    match bytes(&left) {
        bytes if bytes <= AT_MOST => Ok(()),
        bytes => Err(LiveError::TooMuchLeft {
            pid,
            mib: bytes >> 20,
            limit_mib: AT_MOST >> 20,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::table::ARENA_NAME;
    use crate::memory::SharedWords;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::File;

    /// The process that has it is this test itself.
    #[test]
    fn what_cannot_be_read_is_noted() {
        let memfd = File::from(memfd_create(ARENA_NAME, MFdFlags::MFD_CLOEXEC).unwrap());
        memfd.set_len(4096).unwrap();
        let words = SharedWords::map(&memfd, 4096).unwrap();
        let at = words.words().as_ptr() as u64;
        let pid = std::process::id() as i32;
        let memory = TargetMemory::open(pid).unwrap();
        let noted = |except| {
            let mut notes = Vec::new();
            assert!(of(pid, &memory, except, &mut notes).is_empty());
            notes.iter().any(|n| n.contains(&format!("{at:#x}")))
        };
        assert!(noted(None) && !noted(Some(at)));
    }
}
