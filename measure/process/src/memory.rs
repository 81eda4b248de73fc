//! Memory of the target through `/proc/PID/mem`, which may write where the target itself may not.
use super::{AttachError, procfs};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// Stays bound to the memory it was opened for: after an exec or exit every access fails.
#[derive(Debug)]
pub struct TargetMemory {
    file: File,
}

impl TargetMemory {
    pub fn open(pid: i32) -> Result<TargetMemory, AttachError> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{}/mem", procfs::memory_holder(pid)))
            .map(|file| TargetMemory { file })
            .map_err(|source| AttachError::Memory { pid, source })
    }

    pub fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }

    /// As much as can be read from there on; bytes behind it stay as they are.
    pub fn read_up_to(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], at + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(_) if done > 0 => break,
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }
}
