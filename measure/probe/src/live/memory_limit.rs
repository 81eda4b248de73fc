//! How much memory a process may still be given by the control groups it is in: version 2
//! (`memory.max`) and version 1 (`memory.limit_in_bytes`), with all groups above its own, as far as
//! they can be seen from here (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).
use std::fs;
use std::path::{Path, PathBuf};

/// Version 1 says "no limit" with a number near this.
const UNLIMITED: u64 = 1 << 62;

/// Bytes up to the nearest limit; `None` when there is no limit.
pub fn room(pid: i32) -> Option<u64> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    groups
        .lines()
        .filter_map(|line| Hierarchy::of(line, &mounts))
        .filter_map(|hierarchy| hierarchy.room())
        .min()
}

struct Hierarchy {
    mount: PathBuf,
    group: PathBuf,
    limit: &'static str,
    usage: &'static str,
}

impl Hierarchy {
    /// Of a line `ID:CONTROLLERS:PATH` of /proc/PID/cgroup, if memory is controlled there.
    fn of(line: &str, mounts: &str) -> Option<Hierarchy> {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (is_mount, limit, usage): (fn(&str) -> bool, _, _) = match id {
            "0" => (
                |m| m.contains(" - cgroup2 "),
                "memory.max",
                "memory.current",
            ),
            _ if controllers.split(',').any(|c| c == "memory") => (
                |m| {
                    let options = m.rsplit_once(' ').map_or("", |(_, options)| options);
                    m.contains(" - cgroup ") && options.split(',').any(|o| o == "memory")
                },
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => return None,
        };
        let mount = mounts.lines().find(|m| is_mount(m))?;
        // proc_pid_mountinfo(5): field 4 is what of the hierarchy is mounted, field 5 where.
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let path = Path::new(path);
        let below = path.strip_prefix(root).or_else(|_| path.strip_prefix("/"));
        Some(Hierarchy {
            mount: PathBuf::from(at),
            group: below.ok()?.to_owned(),
            limit,
            usage,
        })
    }

    fn room(&self) -> Option<u64> {
        let groups = self.group.ancestors().map(|g| self.mount.join(g));
        let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
        groups
            .filter_map(|group| {
                let limit = number(group.join(self.limit)).filter(|l| *l < UNLIMITED)?;
                let usage = number(group.join(self.usage))?;
                // Cached files give way.
                let stat = fs::read_to_string(group.join("memory.stat"));
                let files = cached_files(&stat.unwrap_or_default());
                Some(limit.saturating_sub(usage.saturating_sub(files)))
            })
            .min()
    }
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

    const MOUNTS: &str = "\
30 25 0:26 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
31 25 0:27 /docker/a /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 25 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu";

    #[test]
    fn groups_are_found_where_their_hierarchy_is_mounted() {
        let second = Hierarchy::of("0::/system.slice/nginx", MOUNTS).unwrap();
        let files = second.mount.join(&second.group).join(second.limit);
        let wanted = "/sys/fs/cgroup/unified/system.slice/nginx/memory.max";
        assert_eq!(files, Path::new(wanted));
        let first = Hierarchy::of("4:hugetlb,memory:/docker/a/b", MOUNTS).unwrap();
        let files = first.mount.join(&first.group).join(first.limit);
        assert_eq!(
            files,
            Path::new("/sys/fs/cgroup/memory/b/memory.limit_in_bytes")
        );
        assert!(Hierarchy::of("2:cpu:/x", MOUNTS).is_none());
    }

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
        let hierarchy = Hierarchy {
            mount: top.clone(),
            group: "a/b".into(),
            limit: "memory.max",
            usage: "memory.current",
        };
        assert_eq!(hierarchy.room(), Some(130));
        fs::remove_dir_all(top).unwrap();
    }
}
