//! Descriptors that can be told from all others of this process, in which other tests run too.
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

/// An eventfd that is still open here, so that its number is nobody else's.
pub(super) struct Bell(pub(super) EventFd);

impl Bell {
    pub(super) fn new() -> Bell {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Bell(EventFd::from_value_and_flags(0, flags).expect("an eventfd"))
    }

    /// Descriptors of it in this process.
    pub(super) fn open(&self) -> usize {
        let info = |fd: i32| std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}"));
        let id = |text: String| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix("eventfd-id:").map(str::to_owned))
        };
        let own = info(self.0.as_fd().as_raw_fd()).ok().and_then(id);
        assert!(own.is_some(), "eventfds have no numbers here");
        let all = numbers();
        let same = all.filter(|fd| info(*fd).ok().and_then(id) == own);
        same.count()
    }
}

/// Memory for a guest.
pub(super) fn memory(len: u64) -> File {
    let file = File::from(memfd_create("guest", MFdFlags::MFD_CLOEXEC).expect("memory"));
    file.set_len(len).expect("room");
    file
}

/// Descriptors of `file` in this process.
pub(super) fn open(file: &File) -> usize {
    let identity = |file: std::fs::Metadata| (file.dev(), file.ino());
    let own = identity(file.metadata().expect("open"));
    let named = numbers().filter_map(|fd| std::fs::metadata(format!("/proc/self/fd/{fd}")).ok());
    named.filter(|file| identity(file.clone()) == own).count()
}

fn numbers() -> impl Iterator<Item = i32> {
    let dir = std::fs::read_dir("/proc/self/fd").expect("/proc");
    dir.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

pub(super) fn borrowed(bell: &Bell) -> BorrowedFd<'_> {
    bell.0.as_fd()
}
