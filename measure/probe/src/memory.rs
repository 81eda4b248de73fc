//! Mapping of the memory shared with a target. One of the few places with `unsafe`.
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// A shared mapping of a memfd, seen as atomics: the other side may write at any time.
pub struct SharedWords {
    map: MmapRaw,
}

impl SharedWords {
    /// Maps `len` bytes (a multiple of 8) of `file`, which must be at least that long and must not
    /// be truncated while mapped: `hopscope_process::memfd` seals the length of those that targets have, too.
    pub fn map(file: &File, len: usize) -> io::Result<SharedWords> {
        if file.metadata()?.len() < len as u64 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "shorter than its mapping",
            ));
        }
        let map = MmapOptions::new().len(len).map_raw(file)?;
        Ok(SharedWords { map })
    }

    /// Gives the pages of a part their memory now, so that whoever writes there first does not wait
    /// for it to be cleared. Linux 5.14.
    pub fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let len = range.end - range.start;
        self.map
            .advise_range(Advice::PopulateWrite, range.start, len)
    }

    /// Takes the memory of whole pages back: they read as zeros from now on, on both sides.
    pub fn release(&self, range: Range<usize>) -> io::Result<()> {
        let (at, len) = (range.start, range.end - range.start);
        // SAFETY: what the pages hold changes as if the other side had written zeros there, which it
        // may do at any time; see `words`.
        unsafe {
            self.map
                .unchecked_advise_range(UncheckedAdvice::Remove, at, len)
        }
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, readable and writable, `len` bytes long and lives
        // as long as `self`; any bit pattern is a valid u64, and all access goes through atomics,
        // so that writes by the other process are no data race in the sense of the language.
        unsafe { std::slice::from_raw_parts(self.map.as_mut_ptr().cast(), self.map.len() / 8) }
    }
}
