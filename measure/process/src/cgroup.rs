//! The control groups of a process, with all groups above its own, as far as they can be seen from
//! here, and whether they keep it from running (Documentation/admin-guide/cgroup-v2.rst,
//! cgroup-v1/freezer-subsystem.rst).
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// The group of a process in one hierarchy.
#[derive(Debug)]
pub struct Hierarchy {
    pub version: Version,
    mount: PathBuf,
    group: PathBuf,
}

/// Groups of `pid` in which `controller` may act: of version 2 in any case.
pub fn hierarchies(pid: i32, controller: &str) -> Vec<Hierarchy> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"));
    let mounts = fs::read_to_string("/proc/self/mountinfo");
    let (Ok(groups), Ok(mounts)) = (groups, mounts) else {
        return Vec::new();
    };
    let lines = groups.lines();
    lines
        .filter_map(|line| Hierarchy::of(line, &mounts, controller))
        .collect()
}

impl Hierarchy {
    #[cfg(test)]
    pub fn at(version: Version, mount: &Path, group: &str) -> Hierarchy {
        Hierarchy {
            version,
            mount: mount.to_owned(),
            group: group.into(),
        }
    }

    /// Of a line `ID:CONTROLLERS:PATH` of /proc/PID/cgroup.
    fn of(line: &str, mounts: &str, controller: &str) -> Option<Hierarchy> {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let version = match id {
            "0" => Version::Two,
            _ if controllers.split(',').any(|c| c == controller) => Version::One,
            _ => return None,
        };
        let is_mount = |m: &&str| match version {
            Version::Two => m.contains(" - cgroup2 "),
            Version::One => {
                let options = m.rsplit_once(' ').map_or("", |(_, options)| options);
                m.contains(" - cgroup ") && options.split(',').any(|o| o == controller)
            }
        };
        let mount = mounts.lines().find(is_mount)?;
        // proc_pid_mountinfo(5): field 4 is what of the hierarchy is mounted, field 5 where.
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let path = Path::new(path);
        let below = path.strip_prefix(root).or_else(|_| path.strip_prefix("/"));
        Some(Hierarchy {
            version,
            mount: PathBuf::from(at),
            group: below.ok()?.to_owned(),
        })
    }

    /// Directories of the group and of those above it.
    pub fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.group.ancestors().map(|group| self.mount.join(group))
    }

    fn freezes(&self) -> bool {
        let says = |file: PathBuf, word: &str| {
            fs::read_to_string(file).is_ok_and(|text| text.lines().any(|line| line == word))
        };
        self.directories().any(|group| match self.version {
            // The first is what is wanted, the second what all groups together came to.
            Version::Two => {
                says(group.join("cgroup.freeze"), "1")
                    || says(group.join("cgroup.events"), "frozen 1")
            }
            Version::One => ["FROZEN", "FREEZING"]
                .iter()
                .any(|state| says(group.join("freezer.state"), state)),
        })
    }
}

/// Whether a control group keeps `pid` from running. Memory and registers can be changed then, of
/// version 2, but no system call can be made: a thread that a tracer lets go on does not come to it.
pub fn is_frozen(pid: i32) -> bool {
    hierarchies(pid, "freezer").iter().any(Hierarchy::freezes)
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
        let first = |line| {
            let hierarchy = Hierarchy::of(line, MOUNTS, "memory")?;
            hierarchy.directories().next()
        };
        let wanted = Path::new("/sys/fs/cgroup/unified/system.slice/nginx");
        assert_eq!(first("0::/system.slice/nginx").as_deref(), Some(wanted));
        let wanted = Path::new("/sys/fs/cgroup/memory/b");
        assert_eq!(
            first("4:hugetlb,memory:/docker/a/b").as_deref(),
            Some(wanted)
        );
        assert_eq!(first("2:cpu:/x"), None);
    }

    #[test]
    fn a_group_above_freezes_too() {
        let top = std::env::temp_dir().join(format!("hopscope-frozen-{}", std::process::id()));
        fs::create_dir_all(top.join("a/b")).unwrap();
        let frozen = |version| Hierarchy::at(version, &top, "a/b").freezes();
        for (version, file, thawed, freezing) in [
            (Version::Two, "cgroup.freeze", "0\n", "1\n"),
            (
                Version::Two,
                "cgroup.events",
                "populated 1\nfrozen 0\n",
                "populated 1\nfrozen 1\n",
            ),
            (Version::One, "freezer.state", "THAWED\n", "FREEZING\n"),
        ] {
            fs::write(top.join("a").join(file), thawed).unwrap();
            assert!(!frozen(version), "{file}");
            fs::write(top.join("a").join(file), freezing).unwrap();
            assert!(frozen(version), "{file}");
            fs::write(top.join("a").join(file), thawed).unwrap();
        }
        fs::remove_dir_all(top).unwrap();
    }
}
