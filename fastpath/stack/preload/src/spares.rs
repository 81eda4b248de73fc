//! Numbers of descriptors of the library's own, for what an instance answers with: the kernel's bind, listen and connect need none, so
//! that a program that has used up all of its own (RLIMIT_NOFILE) may call them.
use crate::kernel;
use crate::numbers;
use crate::table::{self, Entry};
use std::os::fd::{AsRawFd, OwnedFd};

#[derive(Default)]
pub struct Spares(Vec<OwnedFd>);

impl Spares {
    /// From here on they are free, to other threads of the program, too.
    pub fn give_up(&mut self) {
        for spare in self.0.drain(..) {
            free(spare);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many, of the file `like`, as far as there are some.
    pub fn keep(&mut self, many: usize, like: i32) {
        // Those beyond a limit that the program has lowered since are no numbers of its own when they are given up.
        let limit = numbers::limit();
        let are_good = |spare: &OwnedFd| (spare.as_raw_fd() as u64) < limit;
        let (good, others) = self.0.drain(..).partition(are_good);
        self.0 = good;
        others.into_iter().for_each(free);
        while self.0.len() < many {
            let Ok(fd) = numbers::again(like) else {
                return;
            };
            table::set(fd, Entry::Internal);
            self.0.push(kernel::own(fd));
        }
    }
}

/// Its owner closes it, which the program could not.
fn free(spare: OwnedFd) {
    table::set(spare.as_raw_fd(), Entry::Kernel);
}
