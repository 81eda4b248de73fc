//! Where the unified hierarchy of control groups (cgroup2) can be reached: where it is mounted; where it is not, as
//! inside `ip netns exec`, which mounts an empty /sys, through a mount of this process's own that is in no place.
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The root of the hierarchy. A path through the mount of this process's own names this process, so that its children
/// can use it as long as this process lives; they inherit nothing.
pub fn root() -> Option<PathBuf> {
    static OWN: OnceLock<Option<OwnedFd>> = OnceLock::new();
    mounted().or_else(|| {
        let own = OWN.get_or_init(|| own_mount().ok()).as_ref()?;
        Some(by_descriptor(own))
    })
}

/// The path of an open directory, for this process and its children.
pub fn by_descriptor(directory: &impl AsRawFd) -> PathBuf {
    // As the mounted /proc numbers processes, which may be that of another PID namespace.
    let own = std::fs::read_link("/proc/self").unwrap_or_else(|_| "self".into());
    let number = directory.as_raw_fd().to_string();
    Path::new("/proc").join(own).join("fd").join(number)
}

/// fsopen(2): it goes with its descriptor, and nobody else sees it.
fn own_mount() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    fsmount(context.as_fd(), flags, MountAttrFlags::empty())
}

fn mounted() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| Path::new(place).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_reached_by_its_descriptor() {
        let here = std::fs::File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert!(by_descriptor(&here).join("Cargo.toml").is_file());
    }
}
