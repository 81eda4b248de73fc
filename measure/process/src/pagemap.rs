//! `/proc/PID/pagemap` (Documentation/admin-guide/mm/pagemap.rst): what each page of a process holds.
use super::procfs;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub const PAGE: u64 = 4096;

/// The page map of one process, open.
pub struct PageMap(File);

/// Of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry(u64);

impl PageMap {
    /// Of the process, or of another of its threads where the main thread has ended.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(pid: i32) -> io::Result<PageMap> {
        let open = |id: i32| File::open(format!("/proc/{id}/pagemap"));
        // Of a thread that has ended it cannot be opened (ESRCH), on older kernels not be read, not even a page that
        // was never touched.
        let of_process = open(pid).ok();
        let readable = of_process.filter(|map| matches!(map.read_at(&mut [0; 8], 0), Ok(1..)));
        match readable {
            Some(map) => Ok(PageMap(map)),
            None => open(procfs::memory_holder(pid)).map(PageMap),
        }
    }

    /// Of `count` pages from the one with the number `first` on.
    ///
    /// # Errors
    /// Those of pread(2), and `UnexpectedEof` where the process has ended.
    pub fn entries(
        &self,
        first: u64,
        count: u64,
    ) -> io::Result<impl Iterator<Item = Entry> + use<>> {
        let mut bytes = vec![0; count as usize * 8];
        self.0.read_exact_at(&mut bytes, first * 8)?;
        Ok((0..count as usize).map(move |n| {
            let (words, _) = bytes.as_chunks::<8>();
            Entry(u64::from_le_bytes(words[n]))
        }))
    }
}

impl Entry {
    /// Present or swapped: it was touched.
    pub fn is_touched(self) -> bool {
        self.0 & 3 << 62 != 0
    }

    /// Of a file, or shared.
    pub fn is_of_a_file(self) -> bool {
        self.0 & 1 << 61 != 0
    }

    /// Part of a guard region, which cannot be read.
    pub fn is_guard(self) -> bool {
        self.0 & 1 << 58 != 0
    }
}
