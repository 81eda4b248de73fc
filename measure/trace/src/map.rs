//! The bytes of a trace file. The only place of this crate with `unsafe`.
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Deref;

pub enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    pub fn of(file: &File) -> io::Result<Bytes> {
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::Owned(Vec::new()));
        }
        // SAFETY: the mapping is read-only and private to this process. A file that is truncated
        // while it is read would raise SIGBUS: a recorder only ever appends to its file.
        let map = unsafe { Mmap::map(file)? };
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
