//! Memfds that a target makes for us, and memfds found in processes.
//!
//! A target may be hostile: while one of its threads makes the memfd, another may put any file
//! under the same descriptor number, or change what the descriptor refers to between two of our
//! looks. So the descriptor is copied first (`pidfd_getfd`, which gives no more rights than the
//! target has), and everything is checked on the copy. What is found through `/proc` is opened with
//! `O_PATH`, which calls no file system, and is opened for use only once it is known to be a memfd.
use crate::mark;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::libc;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::OnceLock;

/// linux/fcntl.h, Linux 6.3: what `MFD_NOEXEC_SEAL` sets.
const F_SEAL_EXEC: i32 = 0x20;
/// linux/pidfd.h, Linux 6.9: a pidfd of one thread.
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;

/// What all memfds have in common, and no other file has: the kernel's own mount.
#[derive(Debug, Clone, Copy)]
struct MemfdMount {
    device: u64,
    mount: u64,
}

fn mount() -> io::Result<MemfdMount> {
    static OF_MEMFDS: OnceLock<MemfdMount> = OnceLock::new();
    if let Some(known) = OF_MEMFDS.get() {
        return Ok(*known);
    }
    let own = mark::hold()?;
    let found = MemfdMount {
        device: own.metadata()?.dev(),
        mount: mount_of(own)?,
    };
    Ok(*OF_MEMFDS.get_or_init(|| found))
}

/// Number of the mount that an open file belongs to; no file system is asked for it.
fn mount_of(file: &File) -> io::Result<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let field = info.lines().find_map(|l| l.strip_prefix("mnt_id:"));
    field
        .and_then(|n| n.trim().parse().ok())
        .ok_or_else(|| io::Error::other("fdinfo without mnt_id"))
}

/// Major and minor number of the device of memfds, as `/proc/PID/maps` shows them.
pub fn device() -> io::Result<(u64, u64)> {
    let device = mount()?.device;
    Ok((libc::major(device).into(), libc::minor(device).into()))
}

fn refuse(why: &str) -> io::Error {
    io::Error::other(format!(
        "the descriptor {why}: something in the target replaced it"
    ))
}

/// Our copy of descriptor `fd` of the thread `tid` of process `pid`, which we trace.
///
/// # Errors
/// As pidfd_getfd(2) says.
pub fn copy_of(pid: i32, tid: i32, fd: u64) -> io::Result<OwnedFd> {
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    mark::hold()?;
    // The main thread's descriptors are the process's own, until it has ended.
    let kind = if tid == pid { 0 } else { PIDFD_THREAD };
    let owned = |raw: libc::c_long| match raw {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel has just made this descriptor for us; nobody else knows it.
        raw => Ok(unsafe { OwnedFd::from_raw_fd(raw as i32) }),
    };
    // SAFETY: takes numbers only.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, kind) })?;
    // SAFETY: takes numbers only.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) })
}

/// Takes a memfd that was made in the target just now, makes it `len` bytes long and seals that
/// length: what is mapped of it can never be cut off below a mapping.
///
/// # Errors
/// When the descriptor is not a new memfd by now. Nothing was written to it then.
pub fn take(pid: i32, tid: i32, fd: u64, len: u64) -> io::Result<File> {
    let copy = copy_of(pid, tid, fd)?;
    let flags = fcntl(&copy, FcntlArg::F_GETFL)?;
    // Of a path nothing more may be asked: the answer may have to come from a file system that
    // never answers.
    if flags & libc::O_ACCMODE != libc::O_RDWR || flags & libc::O_PATH != 0 {
        return Err(refuse("is not open for reading and writing"));
    }
    let Ok(seals) = fcntl(&copy, FcntlArg::F_GET_SEALS) else {
        return Err(refuse("is of no memfd"));
    };
    if seals & !F_SEAL_EXEC != 0 {
        return Err(refuse("is of a sealed memfd"));
    }
    let copy = File::from(copy);
    let of_memfds = mount()?;
    if mount_of(&copy)? != of_memfds.mount {
        return Err(refuse("is of no memfd"));
    }
    let m = copy.metadata()?;
    if m.dev() != of_memfds.device || !m.is_file() || m.nlink() != 0 {
        return Err(refuse("is of no memfd"));
    }
    if m.len() != 0 || m.blocks() != 0 {
        return Err(refuse("is of a memfd that is in use"));
    }
    // The target shares its descriptor's flags with our copy (O_APPEND …); not with this one.
    let file = OpenOptions::new().read(true).write(true).open(own(&copy))?;
    file.set_len(len)?;
    let length = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(length))?;
    let seals = fcntl(&file, FcntlArg::F_GET_SEALS)?;
    if seals & length.bits() != length.bits() || file.metadata()?.len() != len {
        return Err(refuse("is of a memfd whose length another one changes"));
    }
    Ok(file)
}

fn own(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// A memfd that a process has open or mapped.
#[derive(Debug)]
pub struct Seen {
    path_only: File,
    pub inode: u64,
    /// Of whoever made it.
    pub uid: u32,
}

/// The memfd called `name` behind a link below `/proc/PID/fd` or `/proc/PID/map_files`; `None` when
/// it leads to anything else.
pub fn look(link: &str, name: &str) -> io::Result<Option<Seen>> {
    mark::hold()?;
    let path_only = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_PATH | OFlag::O_CLOEXEC).bits())
        .open(link)?;
    // A name alone says nothing: a file may be called so too.
    let named = fs::read_link(own(&path_only))?;
    if named.as_os_str() != format!("/memfd:{name} (deleted)").as_str()
        || mount_of(&path_only)? != mount()?.mount
    {
        return Ok(None);
    }
    let m = path_only.metadata()?;
    Ok(Some(Seen {
        inode: m.ino(),
        uid: m.uid(),
        path_only,
    }))
}

impl Seen {
    pub fn open(&self) -> io::Result<File> {
        let path = own(&self.path_only);
        OpenOptions::new().read(true).write(true).open(path)
    }
}

#[cfg(test)]
mod tests;
