//! Opening files that a target has a say in: their names come from it, or lie in its folders.
use nix::libc;
use nix::sys::statfs::{self, FsType};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Larger files are not read: they are held in memory whole.
const BYTES_MAX: u64 = 4 << 30;
/// Files of this size have to have blocks for one part in `SPARSE_MAX` at least. File systems that
/// compress stay above that (btrfs: 4 of 128 KiB), and some that count no blocks say 0.
const SPARSE_FROM_BYTES: u64 = 64 << 20;
const SPARSE_MAX: u64 = 64;

/// Regular files by their type, whose contents the kernel makes up: reading may wait for ever
/// (`/proc/kmsg`, `trace_pipe`) or change something.
const MADE_UP: [FsType; 8] = [
    statfs::PROC_SUPER_MAGIC,
    statfs::SYSFS_MAGIC,
    statfs::DEBUGFS_MAGIC,
    statfs::TRACEFS_MAGIC,
    statfs::SECURITYFS_MAGIC,
    statfs::CGROUP_SUPER_MAGIC,
    statfs::CGROUP2_SUPER_MAGIC,
    statfs::BPF_FS_MAGIC,
];

/// Whether a symbolic link as the last part of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Follow,
    Refuse,
}

/// Opens a regular file. What it is gets known by a descriptor that opens nothing (`O_PATH`), so
/// that no device is opened and no pipe is waited for, and nobody can exchange it in between.
///
/// # Errors
/// Those of opening, and when it is no regular file, one that the kernel makes up, empty, sparse or
/// larger than 4 GiB.
pub(super) fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    let no_follow = match links {
        Links::Follow => 0,
        Links::Refuse => libc::O_NOFOLLOW,
    };
    let named = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | no_follow)
        .open(path)?;
    let metadata = named.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if MADE_UP.contains(&statfs::fstatfs(&named)?.filesystem_type()) {
        return Err(io::Error::other(
            "a file of the kernel's own, not a program",
        ));
    }
    let (bytes, in_blocks) = (metadata.len(), metadata.blocks().saturating_mul(512));
    if bytes == 0 {
        return Err(io::Error::other("empty"));
    }
    if bytes > BYTES_MAX {
        let why = format!("{bytes} bytes; files up to {BYTES_MAX} bytes are read");
        return Err(io::Error::other(why));
    }
    if bytes >= SPARSE_FROM_BYTES && in_blocks > 0 && in_blocks < bytes / SPARSE_MAX {
        let why = format!("sparse: {in_blocks} of its {bytes} bytes are on disk");
        return Err(io::Error::other(why));
    }
    // Not blocking, since another process can hold a lease on the file.
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(format!("/proc/self/fd/{}", named.as_raw_fd()))
}

/// As many bytes as the file has now; what is appended meanwhile is not read.
pub(super) fn read_whole(file: &File) -> io::Result<Vec<u8>> {
    let bytes = file.metadata()?.len().min(BYTES_MAX);
    let mut data = Vec::new();
    data.try_reserve_exact(bytes as usize)?;
    file.take(bytes).read_to_end(&mut data)?;
    Ok(data)
}

/// The last part of a path; `?` where that is no text.
pub fn basename(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("locate-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn why(path: impl AsRef<Path>, links: Links) -> String {
        open_regular(path.as_ref(), links).unwrap_err().to_string()
    }

    #[test]
    fn only_ordinary_files_are_opened() {
        let folder = folder();
        let (fifo, link) = (folder.join("fifo"), folder.join("link"));
        let _ = std::fs::remove_file(&fifo);
        let _ = std::fs::remove_file(&link);
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let plain = folder.join("plain");
        std::fs::write(&plain, b"plain").unwrap();
        std::os::unix::fs::symlink(&plain, &link).unwrap();

        // Reading the pipe would wait for its writer, and opening it, too.
        for path in [Path::new("/dev/zero"), &folder, &fifo] {
            assert_eq!(why(path, Links::Follow), "not a regular file");
        }
        // /proc/kmsg is one of these, for root alone.
        for path in ["/proc/self/status", "/sys/kernel/notes"] {
            assert!(why(path, Links::Follow).contains("kernel's own"), "{path}");
        }
        assert_eq!(why(&link, Links::Refuse), "not a regular file");
        let read = |links| read_whole(&open_regular(&link, links).unwrap()).unwrap();
        assert_eq!(read(Links::Follow), b"plain");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_that_would_fill_the_memory_are_refused() {
        let folder = folder().join("large");
        std::fs::create_dir_all(&folder).unwrap();
        let sized = |bytes: u64| {
            let path = folder.join(bytes.to_string());
            std::fs::write(&path, b"\x7fELF").unwrap();
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(bytes).unwrap();
            path
        };
        assert_eq!(why(sized(0), Links::Follow), "empty");
        assert!(why(sized(1 << 30), Links::Follow).starts_with("sparse"));
        assert!(why(sized(1 << 40), Links::Follow).contains("files up to"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
