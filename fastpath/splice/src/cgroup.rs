//! Control groups: a socket belongs to the group that its process was in when it was made.
use crate::load::mount;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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

/// Of this process, where none is mounted: `ip netns exec` hides the machine's.
static OWN: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Where the unified hierarchy is, mounted for all to see or for this process and its children.
///
/// # Errors
/// It is not, and cannot be.
pub fn root() -> Result<PathBuf, CgroupError> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let found = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (path, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(path))
    });
    if let Some(found) = found {
        return Ok(found);
    }
    let own = OWN.get_or_init(|| mount::cgroup2().ok());
    let own = own.as_ref().ok_or(CgroupError::NotMounted)?;
    Ok(PathBuf::from(format!("{OWN_PATH}{}", own.as_raw_fd())))
}

const OWN_PATH: &str = "/proc/self/fd/";

/// What this process executes next has nothing of the mount that a path of [`root`] may go through.
pub fn keep_from_command(path: &Path) {
    let rest = path.to_str().and_then(|path| path.strip_prefix(OWN_PATH));
    let fd = rest.and_then(|rest| rest.split('/').next()?.parse().ok());
    if let Some(fd) = fd {
        // It is there, or there is nothing to keep.
        let _ = mount::close_on_exec(fd);
    }
}

/// # Errors
/// There is no such directory, or it is of another file system.
pub fn checked(path: &Path) -> Result<PathBuf, CgroupError> {
    let found = statfs(path).map_err(|errno| CgroupError::Os {
        what: "looking at",
        path: path.to_owned(),
        source: errno.into(),
    })?;
    match found.filesystem_type() == CGROUP2_SUPER_MAGIC {
        true => Ok(path.to_owned()),
        false => Err(CgroupError::NotOne(path.to_owned())),
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
