//! The bytes of a trace file. The only place of this crate with `unsafe`.
use memmap2::Mmap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

pub enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    pub fn of(path: &Path) -> io::Result<Bytes> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        if metadata.file_type().is_fifo() {
            file.read_to_end(&mut bytes)?;
            return Ok(Bytes::Owned(bytes));
        }
        if !metadata.is_file() {
            return Err(io::Error::other("neither a file nor a pipe"));
        }
        if metadata.len() == 0 {
            return Ok(Bytes::Owned(bytes));
        }
        // SAFETY: the mapping is read-only and private to this process. A file that is truncated
        // while it is read would raise SIGBUS: a recorder only ever appends to its file.
        let map = unsafe { Mmap::map(&file)? };
        Ok(Bytes::Mapped(map))
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}
