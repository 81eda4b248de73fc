//! A file of one inode told from an earlier one.
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// When a file was written last, and how long it is: a new one may have got the inode of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Version {
    seconds: i64,
    nanoseconds: i64,
    bytes: u64,
}

impl Version {
    pub(super) fn of(metadata: &Metadata) -> Version {
        Version {
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
            bytes: metadata.len(),
        }
    }
}
