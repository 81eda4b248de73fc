//! Edges of what the kernel has of a socket (EPOLLET): an epoll instance of the library's own, which tells of each arrival once.
use crate::kernel;
use crate::say::once;
use crate::state::State;
use nix::libc;
use rustix::io::Errno;
use std::sync::atomic::AtomicBool;

static NONE_SAID: AtomicBool = AtomicBool::new(false);
const IN: u32 = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;

#[derive(Debug)]
struct Watched {
    description: u32,
    /// The descriptor that it was added by.
    fd: i32,
    /// What its events carry: where the file lives on in another process, they come behind its end here, too.
    serial: u64,
}

#[derive(Debug, Default)]
pub struct Edges {
    /// Of those that sleep, too: it is ready where something is left to be told.
    pub epoll: Option<i32>,
    watched: Vec<Watched>,
    serial: u64,
}

impl Edges {
    /// Its events here are over.
    pub fn leave(&mut self, description: u32) {
        let (gone, left) = std::mem::take(&mut self.watched)
            .into_iter()
            .partition::<Vec<_>, _>(|watched| watched.description == description);
        self.watched = left;
        for watched in gone {
            if let Some(epoll) = self.epoll {
                let _ = kernel::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, watched.fd, 0, 0);
            }
        }
    }

    /// The instance is the parent's: what is told here is not told there.
    pub fn forked(&mut self) {
        let parents = std::mem::take(self);
        if let Some(epoll) = parents.epoll {
            crate::table::set(epoll, crate::table::Entry::Kernel);
            kernel::close(epoll);
        }
    }

    pub fn watches(&self, description: u32) -> bool {
        let mut all = self.watched.iter();
        all.any(|watched| watched.description == description)
    }

    fn of(&self, serial: u64) -> Option<u32> {
        let mut all = self.watched.iter();
        all.find(|watched| watched.serial == serial)
            .map(|watched| watched.description)
    }
}

impl State {
    /// What the kernel has of it is told once from now on; at once, if there is something. `false`: there is no descriptor for that.
    pub fn watch_edges(&mut self, index: u32) -> bool {
        if self.edges.watches(index) {
            return true;
        }
        let Some(fd) = self.description(index).and_then(|d| d.kernel_part()) else {
            return false;
        };
        match self.add_edges(index, fd) {
            Ok(()) => true,
            Err(error) => {
                once(&NONE_SAID, || {
                    let error = Errno::from_raw_os_error(error);
                    format!(
                        "descriptor {fd}: what the kernel has of it is told anew by each epoll_wait, in spite of EPOLLET: {error}"
                    )
                });
                false
            }
        }
    }

    fn add_edges(&mut self, index: u32, fd: i32) -> Result<(), i32> {
        let epoll = match self.edges.epoll {
            Some(epoll) => epoll,
            None => {
                let made = self.internal(kernel::epoll()?)?;
                *self.edges.epoll.insert(made)
            }
        };
        self.edges.serial += 1;
        let serial = self.edges.serial;
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        kernel::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, events, serial)?;
        self.edges.watched.push(Watched {
            description: index,
            fd,
            serial,
        });
        Ok(())
    }

    /// Those that came since, to all sets that the sockets are in.
    pub fn tell_edges(&mut self) {
        let Some(epoll) = self.edges.epoll.filter(|_| !self.edges.watched.is_empty()) else {
            return;
        };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
        loop {
            let found = kernel::epoll_now(epoll, &mut events).unwrap_or(0) as usize;
            for event in &events[..found] {
                if let Some(index) = self.edges.of(event.u64) {
                    self.happened(index, IN);
                }
            }
            if found < events.len() {
                return;
            }
        }
    }

    /// The kernel has no part in it any more.
    pub fn is_not_kernels_too(&mut self, index: u32) {
        self.kernel_too.retain(|other| *other != index);
        self.edges.leave(index);
    }
}
