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
        self.file.read_exact_at(into, at).map_err(or_gone)
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
        self.file.write_all_at(bytes, at).map_err(or_gone)
    }
}

/// Only of memory that nobody has any more nothing is read or written: what is not mapped is an error (mem_rw, fs/proc/base.c).
fn or_gone(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ (io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero) => io::Error::new(
            kind,
            "its program is gone: the process has ended, or runs another one (exec)",
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn memory_of_a_program_that_is_gone_says_so() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let memory = TargetMemory::open(pid).unwrap();
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let at = maps.split('-').next().map(|at| u64::from_str_radix(at, 16));
        let at = at.unwrap().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let read = memory.read(at, &mut [0; 8]).unwrap_err().to_string();
        let written = memory.write(at, &[0; 8]).unwrap_err().to_string();
        assert!(
            read.contains("is gone") && written == read,
            "{read}, {written}"
        );
    }
}
