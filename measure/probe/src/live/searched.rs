//! Which memory of a process may refer to copies: where a stack or a saved context can lie.
use super::own_stack;
use super::table::PatchTable;
use hopscope_process::StoppedProcess;
use hopscope_process::maps::Mapping;
use hopscope_process::memory::TargetMemory;
use hopscope_process::write_track::Pages;
use std::ops::Range;

/// What of a mapping is searched; `None`: nothing can be suspended there.
pub(super) fn pages(m: &Mapping, ours: &[Range<u64>]) -> Option<Pages> {
    if !m.readable || is_of_the_kernel(&m.name) || is_a_device(&m.name) {
        return None;
    }
    if ours
        .iter()
        .any(|o| o.start <= m.range.start && m.range.end <= o.end)
    {
        return None;
    }
    match m {
        Mapping { writable: true, .. } => Some(Pages::All),
        // Written while it was writable, and protected since. Code holds no saved contexts; what
        // is shared and cannot be written here is written by others, or through another mapping.
        Mapping {
            shared: false,
            executable: false,
            ..
        } => Some(Pages::Anonymous),
        _ => None,
    }
}

fn is_of_the_kernel(name: &str) -> bool {
    ["[vvar", "[vdso]", "[vsyscall]", "[uprobes]"]
        .iter()
        .any(|n| name.starts_with(n))
}

/// Registers and rings of devices and of packet sockets: no memory that a thread runs on, and reading may have effects.
fn is_a_device(name: &str) -> bool {
    const MEMORY: [&str; 3] = ["/dev/shm/", "/dev/zero", "/dev/hugepages"];
    let device = ["/dev/", "/sys/", "/proc/", "anon_inode:", "socket:"];
    device.iter().any(|d| name.starts_with(d)) && !MEMORY.iter().any(|m| name.starts_with(m))
}

/// Everything that recordings have mapped: the copies refer to each other.
pub(super) fn ours(tables: &[&PatchTable]) -> Vec<Range<u64>> {
    let areas = tables.iter().flat_map(|t| {
        let data = [t.header, t.contexts, t.pool, t.counter_pages];
        t.segments.iter().copied().chain(data)
    });
    areas
        .filter(|a| a.len > 0)
        .map(|a| a.at..a.at.saturating_add(a.len))
        .collect()
}

/// Below its stack pointer and the red zone a thread's own stack holds old return addresses that
/// mean nothing. Only of stacks that libc or the kernel gave to the thread: another one may lie
/// anywhere in a larger mapping, with suspended stacks below it. And only where no stacks are switched
/// (`PatchTable::switches_stacks`): others may have been carved out of this one, below where it runs.
pub(super) fn dead_zones(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    mappings: &[Mapping],
) -> Vec<Range<u64>> {
    let pid = stopped.pid();
    let threads: Vec<(i32, u64, u64)> = stopped
        .tids()
        .into_iter()
        .map(|tid| (tid, stopped.regs(tid).rsp, stopped.regs(tid).fs_base))
        .collect();
    let mut used: Vec<u64> = threads.iter().flat_map(|&(_, rsp, fs)| [rsp, fs]).collect();
    used.sort_unstable();
    let mut zones = Vec::new();
    for (tid, rsp, fs_base) in threads {
        let after = mappings.partition_point(|m| m.range.start <= rsp);
        let Some(m) = after.checked_sub(1).map(|i| &mappings[i]) else {
            continue;
        };
        if rsp >= m.range.end {
            continue;
        }
        let bottom = match tid == pid {
            // Its control block lies elsewhere, where a coroutine's stack may lie as well.
            true if m.name == "[stack]" => m.range.start,
            true => continue,
            false => match own_stack::of(memory, fs_base) {
                Some(own) if own.contains(&rsp) => own.start.max(m.range.start),
                _ => continue,
            },
        };
        let zone = bottom..rsp.saturating_sub(RED_ZONE).max(bottom) & !7;
        let first = used.partition_point(|at| *at < zone.start);
        let shared = used.get(first).is_some_and(|at| zone.contains(at));
        if !zone.is_empty() && !shared {
            zones.push(zone);
        }
    }
    zones.sort_by_key(|z| z.start);
    zones
}

const RED_ZONE: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_process::maps::parse;

    fn pages_of(line: &str) -> Option<Pages> {
        pages(&parse(line)[0], std::slice::from_ref(&(0x7000..0x9000)))
    }

    #[test]
    fn memory_that_a_thread_can_run_on_is_searched() {
        for line in [
            "1000-3000 rw-p 00000000 00:00 0",
            "1000-3000 rwxp 00000000 00:00 0 [stack]",
            "1000-3000 rw-s 00000000 00:05 77 /memfd:stacks (deleted)",
            "1000-3000 rw-s 00000000 00:01 7 /dev/zero (deleted)",
            "1000-3000 rw-s 00000000 00:01 7 /dev/hugepages/rtemap_0",
            "1000-3000 rw-s 00000000 00:01 7 /var/lib/db",
            "1000-3000 rw-s 00000000 00:01 7 /SYSV00000000 (deleted)",
        ] {
            assert_eq!(pages_of(line), Some(Pages::All), "{line}");
        }
        let read_only = "1000-3000 r--p 00000000 00:01 7 /lib/a.so";
        assert_eq!(pages_of(read_only), Some(Pages::Anonymous));
    }

    #[test]
    fn devices_code_and_our_own_are_not() {
        for line in [
            "1000-3000 rw-s 00000000 00:05 77 /dev/uio0",
            "1000-3000 rw-s 00000000 00:05 77 anon_inode:[vfio-device]",
            "1000-3000 rw-s 00000000 00:08 77 socket:[4711]",
            "1000-3000 r-xp 00000000 00:01 7 /lib/a.so",
            "1000-3000 ---p 00000000 00:00 0",
            "1000-3000 r--p 00000000 00:00 0 [vvar]",
            "7000-8000 rw-s 00000000 00:01 9 /memfd:hopscope-rings (deleted)",
        ] {
            assert_eq!(pages_of(line), None, "{line}");
        }
    }

    #[test]
    fn zones_end_where_they_say() {
        let zones = [10..20, 30..40];
        let inside: Vec<u64> = (0..50)
            .filter(|at| super::super::pages::contain(&zones, *at))
            .collect();
        assert_eq!(inside, (10..20).chain(30..40).collect::<Vec<_>>());
    }
}
