//! Control groups: a socket belongs to the group that its process was in when it was made.
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error(
        "no cgroup2 file system is mounted, and none can be (mount -t cgroup2 none /sys/fs/cgroup): sockets are chosen by control group"
    )]
    NotMounted,
    #[error("{path}: not a group of a cgroup2 file system", path = .0.display())]
    NotOne(PathBuf),
    #[error("process {pid}: {source}")]
    Process {
        pid: u32,
        #[source]
        source: io::Error,
    },
    #[error("{what} {path}: {source}", path = path.display())]
    Os {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Where the unified hierarchy is, mounted for all to see or for this process alone.
///
/// # Errors
/// It is not, and cannot be.
pub fn root() -> Result<PathBuf, CgroupError> {
    hopscope_bpf::cgroup::root().ok_or(CgroupError::NotMounted)
}

/// # Errors
/// There is no such directory, or it is of another file system.
pub fn checked(path: &Path) -> Result<PathBuf, CgroupError> {
    let found = statfs(path).map_err(|errno| CgroupError::Os {
        what: "looking at",
        path: path.to_owned(),
        source: errno.into(),
    })?;
    if found.filesystem_type() == CGROUP2_SUPER_MAGIC {
        Ok(path.to_owned())
    } else {
        Err(CgroupError::NotOne(path.to_owned()))
    }
}

/// The group of a process (cgroups(7), /proc/PID/cgroup: the line of hierarchy 0).
///
/// # Errors
/// No such process, or no cgroup2.
pub fn of_process(pid: u32) -> Result<PathBuf, CgroupError> {
    let root = root()?;
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))
        .map_err(|source| CgroupError::Process { pid, source })?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    let path = path.ok_or(CgroupError::NotMounted)?;
    Ok(root.join(path.trim_start_matches('/')))
}

/// Processes of a group, not of those below it.
///
/// # Errors
/// It is gone.
pub fn processes(group: &Path) -> Result<Vec<u32>, CgroupError> {
    let path = group.join("cgroup.procs");
    let text = fs::read_to_string(&path).map_err(|source| CgroupError::Os {
        what: "reading",
        path,
        source,
    })?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Processes of a group and of those below it.
pub fn all_below(group: &Path) -> Vec<u32> {
    let mut found = processes(group).unwrap_or_default();
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(all_below(&entry.path()));
        }
    }
    found
}

/// Puts a process into a group: 0 for this one.
///
/// # Errors
/// Not allowed, or one of the two is gone.
pub fn enter(group: &Path, pid: u32) -> Result<(), CgroupError> {
    let path = group.join("cgroup.procs");
    fs::write(&path, pid.to_string()).map_err(|source| CgroupError::Os {
        what: "entering",
        path,
        source,
    })
}

/// How groups of our own are called, followed by the process that made them.
pub const PREFIX: &str = "hopscope-splice-";

/// A group of this process's own, below the one it is in. It is removed by [`Group::leave`].
pub struct Group {
    pub path: PathBuf,
    /// Where its processes go when it is removed.
    pub home: PathBuf,
}

impl Group {
    /// A group of another process, which may end before: its paths lead through that process where no cgroup2 is mounted.
    /// `home` has to be kept open as long as the group is used.
    ///
    /// # Errors
    /// It is gone, or not below `home`.
    pub fn of_another(path: &Path, home: &fs::File) -> Result<Group, CgroupError> {
        let name = path.file_name();
        let name = name.ok_or_else(|| CgroupError::NotOne(path.to_owned()))?;
        let home = hopscope_bpf::cgroup::by_descriptor(home);
        let path = home.join(name);
        checked(&path).map(|path| Group { path, home })
    }

    /// # Errors
    /// No cgroup2, or not allowed.
    pub fn create(suffix: &str) -> Result<Group, CgroupError> {
        let home = of_process(std::process::id())?;
        let path = home.join(format!("{PREFIX}{}{suffix}", std::process::id()));
        fs::create_dir(&path).map_err(|source| CgroupError::Os {
            what: "making the control group",
            path: path.clone(),
            source,
        })?;
        Ok(Group { path, home })
    }

    /// Moves what still runs in it to where it came from, and removes it; how many were moved.
    ///
    /// # Errors
    /// It stays.
    pub fn leave(&self) -> Result<usize, CgroupError> {
        let mut moved = 0;
        // A process may be made while others are moved.
        for _ in 0..100 {
            for pid in processes(&self.path)? {
                // It may have ended since.
                moved += usize::from(enter(&self.home, pid).is_ok());
            }
            if fs::remove_dir(&self.path).is_ok() {
                return Ok(moved);
            }
        }
        fs::remove_dir(&self.path).map_err(|source| CgroupError::Os {
            what: "removing",
            path: self.path.clone(),
            source,
        })?;
        Ok(moved)
    }
}

/// Removes groups that killed processes left behind below this process's group; how many.
pub fn remove_stale() -> usize {
    let Ok(home) = of_process(std::process::id()) else {
        return 0;
    };
    let entries = fs::read_dir(&home).into_iter().flatten().flatten();
    let stale = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let digits: String = name
            .strip_prefix(PREFIX)?
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let is_alive = Path::new("/proc").join(&digits).exists();
        (!digits.is_empty() && !is_alive).then(|| entry.path())
    });
    let home = &home;
    let removed = stale.map(|path| Group {
        path,
        home: home.clone(),
    });
    removed.filter(|group| group.leave().is_ok()).count()
}
