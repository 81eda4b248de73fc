//! Time on the processor that processes took.
use std::collections::BTreeMap;
use std::fs;

/// Of processes and all that descend from them, in nanoseconds: user and system (/proc/PID/task/TID/schedstat). Those
/// that have ended are left out.
pub(super) fn cpu_ns(pids: impl Iterator<Item = u32>) -> u64 {
    let children = children();
    let mut open: Vec<u32> = pids.collect();
    let mut sum = 0;
    while let Some(pid) = open.pop() {
        sum += of_one(pid);
        open.extend(children.get(&pid).into_iter().flatten());
    }
    sum
}

/// Of all processes, by the one that they descend from.
fn children() -> BTreeMap<u32, Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The second field behind the name, which may hold anything (proc_pid_stat(5)).
fn parent(stat: &str) -> Option<u32> {
    let (_, behind) = stat.rsplit_once(") ")?;
    behind.split(' ').nth(1)?.parse().ok()
}

fn of_one(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let ran = tasks.filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    ran.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_end_of_a_name() {
        assert_eq!(parent("7 (a) b) S 3 7 7 0"), Some(3));
        assert_eq!(parent("7 (a"), None);
    }

    #[test]
    fn own_time_grows() {
        let own = || cpu_ns([std::process::id()].into_iter());
        let before = own();
        let mut hash = 1_u64;
        while own() == before {
            hash = std::hint::black_box(hash.wrapping_mul(3));
        }
        assert!(own() > before);
    }
}
