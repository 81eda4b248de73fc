//! Which process has the stack: one at a time. A file that all share has a lock, which the kernel takes back at a process's end, and
//! a number that tells whether a copy of the engine, made by fork, is still as the engine is.
use crate::kernel;
use std::sync::atomic::AtomicBool;

#[derive(Debug)]
pub struct Owner {
    /// The shared file.
    fd: i32,
    owned: bool,
    /// How often the stack had changed hands when this process last had it, or its copy was made.
    epoch: u64,
    pub said: AtomicBool,
}

/// What a process that gets the stack has of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// It had it all the time.
    Kept,
    /// Its copy is what the one before left.
    Current,
    /// Others had it meanwhile: connections of the copy are no more.
    Stale,
}

impl Owner {
    pub fn new(fd: i32) -> Owner {
        Owner {
            fd,
            owned: false,
            epoch: 0,
            said: AtomicBool::new(false),
        }
    }

    pub fn is_owned(&self) -> bool {
        self.owned
    }

    /// `None`: another process has it.
    pub fn claim(&mut self) -> Option<Claimed> {
        if self.owned {
            return Some(Claimed::Kept);
        }
        if !kernel::lock_file(self.fd, true) {
            return None;
        }
        let now = self.read();
        let claimed = match now == self.epoch {
            true => Claimed::Current,
            false => Claimed::Stale,
        };
        self.epoch = now + 1;
        let _ = kernel::write_at(self.fd, &self.epoch.to_ne_bytes(), 0);
        self.owned = true;
        Some(claimed)
    }

    /// Whoever uses it next has it, with the state of now: this process, or a child that it makes.
    pub fn offer(&mut self) {
        if self.owned {
            self.owned = false;
            kernel::lock_file(self.fd, false);
        }
    }

    /// In a child: locks are not inherited, and what the parent goes on to use is not as the copy for long.
    pub fn forked(&mut self) {
        if self.owned {
            self.epoch = u64::MAX;
        }
        self.owned = false;
    }

    fn read(&self) -> u64 {
        let mut bytes = [0; 8];
        match kernel::read_at(self.fd, &mut bytes, 0) {
            Ok(8) => u64::from_ne_bytes(bytes),
            _ => 0,
        }
    }
}
