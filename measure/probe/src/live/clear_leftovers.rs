//! Unmapping what earlier recordings had to leave, once nothing refers to it.
use super::error::LiveError;
use super::leftover::{AT_MOST, Leftover, bytes, copies, largest, note, of};
use super::reap::{self, Reaped};
use super::slots;
use super::survey::{Extent, Survey};
use hopscope_process::memory::TargetMemory;
use std::time::Duration;

/// What was unmapped of earlier recordings.
#[derive(Debug, Default)]
pub struct Taken {
    pub recordings: usize,
    pub bytes: u64,
    /// The longest stop of all threads.
    pub pause: Duration,
    /// What stays.
    pub notes: Vec<String>,
}

/// Unmaps what earlier recordings left in `pid`, if nothing refers to it.
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
/// When more than [`AT_MOST`] stays besides what one recording left: of a large program that may be more by itself.
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
        bytes if bytes - largest(&left) <= AT_MOST => Ok(()),
        bytes => Err(LiveError::TooMuchLeft {
            pid,
            mib: bytes >> 20,
            limit_mib: AT_MOST >> 20,
        }),
    }
}
