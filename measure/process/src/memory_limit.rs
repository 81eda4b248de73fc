//! How much memory a process may still be given by the control groups it is in: version 2
//! (`memory.max`) and version 1 (`memory.limit_in_bytes`), with all groups above its own, as far as
//! they can be seen from here (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).
use super::cgroup::{Hierarchy, Version, hierarchies};
use std::fs;
use std::path::PathBuf;

/// Version 1 says "no limit" with a number near this.
const UNLIMITED: u64 = 1 << 62;

/// Bytes up to the nearest limit; `None` when there is no limit.
pub fn room(pid: i32) -> Option<u64> {
    let hierarchies = hierarchies(pid, "memory");
    hierarchies.iter().filter_map(room_in).min()
}

fn room_in(hierarchy: &Hierarchy) -> Option<u64> {
    let (limit, usage) = match hierarchy.version {
        Version::Two => ("memory.max", "memory.current"),
        Version::One => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    };
    let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let groups = hierarchy.directories();
    groups
        .filter_map(|group| {
            let limit = number(group.join(limit)).filter(|l| *l < UNLIMITED)?;
            let usage = number(group.join(usage))?;
            // Cached files give way.
            let stat = fs::read_to_string(group.join("memory.stat"));
            let files = cached_files(&stat.unwrap_or_default());
            Some(limit.saturating_sub(usage.saturating_sub(files)))
        })
        .min()
}

/// Bytes; version 1 counts those of groups below in lines of their own.
fn cached_files(stat: &str) -> u64 {
    let of = |prefix: &str| {
        let keys = ["inactive_file", "active_file"].map(|k| format!("{prefix}{k}"));
        let lines = stat.lines().filter_map(|l| l.split_once(' '));
        let ours = lines.filter(|(key, _)| keys.iter().any(|k| k == key));
        ours.filter_map(|(_, n)| n.parse::<u64>().ok()).sum::<u64>()
    };
    of("total_").max(of(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_limit_counts() {
        let top = std::env::temp_dir().join(format!("hopscope-limits-{}", std::process::id()));
        let group = top.join("a/b");
        fs::create_dir_all(&group).unwrap();
        for (at, limit, usage) in [("a", "1000\n", "900\n"), ("a/b", "max\n", "50\n")] {
            fs::write(top.join(at).join("memory.max"), limit).unwrap();
            fs::write(top.join(at).join("memory.current"), usage).unwrap();
        }
        fs::write(top.join("a/memory.stat"), "active_file 30\nfile 90\n").unwrap();
        let hierarchy = Hierarchy::at(Version::Two, &top, "a/b");
        assert_eq!(room_in(&hierarchy), Some(130));
        fs::remove_dir_all(top).unwrap();
    }
}
