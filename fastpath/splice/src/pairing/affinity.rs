//! Where threads may run: sched_setaffinity(2), and back.
use crate::programs::{Placed, PlacedState, PlacedThreads, SpliceError};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs;

/// Time that a thread ran, and that it was ready to run and something else ran, ns (proc(5), /proc/PID/schedstat).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Times {
    pub(super) ran: u64,
    pub(super) waited: u64,
}

pub(super) fn times(process: u32, thread: u32) -> Option<Times> {
    let path = format!("/proc/{process}/task/{thread}/schedstat");
    times_of(&fs::read_to_string(path).ok()?)
}

fn times_of(text: &str) -> Option<Times> {
    let mut words = text.split_whitespace().map(str::parse);
    Some(Times {
        ran: words.next()?.ok()?,
        waited: words.next()?.ok()?,
    })
}

/// A field of /proc/PID/stat (proc(5)), counted from the one behind the name on, the third.
fn stat(process: u32, thread: u32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().nth(field - 3)?.to_owned())
}

/// It runs, or is ready to.
pub(super) fn is_runnable(process: u32, thread: u32) -> bool {
    stat(process, thread, 3).is_some_and(|state| state == "R")
}

/// The processor that a thread ran on last.
fn processor(process: u32, thread: u32) -> Option<usize> {
    stat(process, thread, 39)?.parse().ok()
}

/// The user of a process.
pub(super) fn user(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn pid(thread: u32) -> Result<Pid, Errno> {
    Ok(Pid::from_raw(
        i32::try_from(thread).map_err(|_| Errno::ESRCH)?,
    ))
}

fn only(processor: usize) -> Result<CpuSet, Errno> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(set)
}

fn processors(set: &CpuSet) -> impl Iterator<Item = usize> + '_ {
    (0..CpuSet::count()).filter(|n| set.is_set(*n) == Ok(true))
}

/// A processor that both may use and that no other pair has: where one of them ran last, if that is one.
fn choose(both: [&CpuSet; 2], ran_at: [Option<usize>; 2], taken: &[usize]) -> Option<usize> {
    let may = |n: &usize| both.iter().all(|set| set.is_set(*n) == Ok(true)) && !taken.contains(n);
    let last = ran_at.into_iter().flatten().find(may);
    last.or_else(|| processors(both[0]).find(may))
}

/// Places two threads, as their process and themselves, on one processor; which. None where there is none for both, or
/// there is nothing to place.
///
/// # Errors
/// One of the two is gone or may not be changed; the other one is as it was.
pub(super) fn place(
    pair: u64,
    threads: [(u32, u32); 2],
    taken: &[usize],
    placed: &PlacedThreads,
) -> Result<Option<usize>, SpliceError> {
    let failed = |errno: Errno| SpliceError::call("placing a thread", errno.desc());
    let mask = |(_, thread): (u32, u32)| pid(thread).and_then(sched_getaffinity).map_err(failed);
    let before = [mask(threads[0])?, mask(threads[1])?];
    let ran_at = threads.map(|(process, thread)| processor(process, thread));
    let Some(processor) = choose([&before[0], &before[1]], ran_at, taken) else {
        return Ok(None);
    };
    if before.iter().any(|set| processors(set).count() < 2) {
        return Ok(None);
    }
    for ((_, thread), before) in threads.into_iter().zip(before) {
        placed.put(thread, Placed::new(pair, processor, before))?;
    }
    for (_, thread) in threads {
        let set = |thread| sched_setaffinity(pid(thread)?, &only(processor)?);
        if let Err(errno) = set(thread) {
            restore(placed, Some(pair))?;
            forget(placed, Some(pair));
            return Err(failed(errno));
        }
    }
    // What the kernel keeps of these calls is theirs from here on.
    if let Err(why) = placed.look() {
        restore(placed, Some(pair))?;
        forget(placed, Some(pair));
        return Err(why);
    }
    Ok(Some(processor))
}

/// Whether both of a pair's threads have the mask that was set; of one that has another one the program has changed it, or
/// its control group.
pub(super) fn is_as_placed(placed: &PlacedThreads, pair: u64, own: [u32; 2]) -> bool {
    let mut threads = placed.of(Some(pair)).into_iter();
    threads.all(|(thread, entry)| {
        let now = pid(thread).and_then(sched_getaffinity);
        let is_there = now.is_err() || now == only(entry.processor);
        !own.contains(&thread) || (is_there && entry.state != PlacedState::Changed)
    })
}

/// What [`restore`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restored {
    pub threads: u64,
    /// Had another mask, and keep it.
    pub changed: u64,
}

/// Gives threads, of one connection or all, back what they had, and those that they made since. Those that were being made
/// meanwhile come later: it is to be called once more a while after.
///
/// # Errors
/// A thread that is there cannot be restored.
pub fn restore(placed: &PlacedThreads, pair: Option<u64>) -> Result<Restored, SpliceError> {
    let mut all = placed.of(pair);
    match placed.look() {
        Ok(()) => all = placed.of(pair),
        // What they have now tells it, too, if not as surely.
        Err(why) => {
            log::warn!("{why}");
            let open = all
                .iter_mut()
                .filter(|(_, entry)| entry.state != PlacedState::Restored);
            open.for_each(|(_, entry)| entry.state = PlacedState::Unknown);
        }
    }
    restore_those(placed, all)
}

/// Those that a pair's threads have made since they were placed, which have their mask and other work to do. How many had
/// another mask by then. To be called once it was looked at all.
///
/// # Errors
/// As [`restore`].
pub(super) fn restore_others(
    placed: &PlacedThreads,
    pair: u64,
    own: [u32; 2],
) -> Result<u64, SpliceError> {
    let mut others = placed.of(Some(pair));
    others.retain(|(thread, _)| !own.contains(thread));
    Ok(restore_those(placed, others)?.changed)
}

fn restore_those(placed: &PlacedThreads, all: Vec<(u32, Placed)>) -> Result<Restored, SpliceError> {
    let (mut did, mut failed) = (Restored::default(), None);
    let is_open = |(_, entry): &(u32, Placed)| entry.state != PlacedState::Restored;
    for (thread, entry) in all.into_iter().filter(is_open) {
        match restore_one(thread, &entry) {
            Ok(Did::Restored) => {
                did.threads += 1;
                placed.restored(thread, entry);
            }
            Ok(Did::HadBefore) => placed.restored(thread, entry),
            Err(Errno::ESRCH) => {}
            // Its control group has nothing of what it had before, and the kernel has moved it already.
            Ok(Did::Left) | Err(Errno::EINVAL) => {
                did.changed += 1;
                placed.remove(thread);
            }
            // The others are restored all the same.
            Err(errno) => failed = Some(errno),
        }
    }
    match failed {
        None => Ok(did),
        Some(errno) => Err(SpliceError::call(
            "restoring a thread's affinity",
            errno.desc(),
        )),
    }
}

/// Nobody has inherited the mask any more: to be called a while after [`restore`], which is called once more before.
pub fn forget(placed: &PlacedThreads, pair: Option<u64>) {
    for (thread, _) in placed.of(pair) {
        placed.remove(thread);
    }
}

enum Did {
    Restored,
    /// The mask is the previous one again.
    HadBefore,
    /// Another process has set another mask.
    Left,
}

fn restore_one(thread: u32, entry: &Placed) -> Result<Did, Errno> {
    let thread = pid(thread)?;
    let now = sched_getaffinity(thread)?;
    let is_kept = match entry.state {
        PlacedState::Kept => true,
        PlacedState::Changed | PlacedState::Restored => false,
        PlacedState::Unknown => now == only(entry.processor)?,
    };
    if is_kept {
        sched_setaffinity(thread, &wanted(&entry.before))?;
        return Ok(Did::Restored);
    }
    if now == entry.before {
        Ok(Did::HadBefore)
    } else {
        Ok(Did::Left)
    }
}

/// A thread that could use every processor gets all bits: then it can use those too that the machine, or its control
/// group, gets later. The kernel never gives more than the group has.
fn wanted(before: &CpuSet) -> CpuSet {
    let all = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = all.trim().rsplit([',', '-']).next();
    let count = last.and_then(|last| last.parse::<usize>().ok());
    let had_all = count.is_some_and(|last| (0..=last).all(|n| before.is_set(n) == Ok(true)));
    let mut set = *before;
    if had_all {
        for n in 0..CpuSet::count() {
            // Within the set's room.
            let _ = set.set(n);
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(of: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        for n in of {
            set.set(*n).unwrap();
        }
        set
    }

    #[test]
    fn a_processor_is_one_that_both_may_use() {
        let (a, b) = (set(&[0, 1, 2]), set(&[1, 2, 3]));
        assert_eq!(choose([&a, &b], [Some(0), Some(2)], &[]), Some(2));
        assert_eq!(choose([&a, &b], [Some(0), Some(3)], &[]), Some(1));
        assert_eq!(choose([&a, &b], [Some(0), Some(2)], &[2]), Some(1));
        assert_eq!(choose([&a, &b], [None, None], &[1, 2]), None);
        assert_eq!(choose([&a, &set(&[3])], [None, None], &[]), None);
    }

    #[test]
    fn times_are_the_first_two_numbers() {
        let times = times_of("120 34 5\n").unwrap();
        assert_eq!((times.ran, times.waited), (120, 34));
        assert_eq!(times_of("120"), None);
    }

    #[test]
    fn a_mask_of_fewer_than_all_is_restored_as_it_was() {
        let own = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let mut one = set(&[0]);
        assert_eq!(wanted(&one), one);
        one.set(1000).unwrap();
        assert!(processors(&wanted(&own)).count() >= processors(&own).count());
    }
}
