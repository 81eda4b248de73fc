//! Edges of what the kernel has of a socket (EPOLLET): an epoll instance of the library's own, which tells of each arrival once.
use crate::kernel;
use crate::table::{self, Entry};
use nix::libc;

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
            // Or the number is another one's by now.
            let is_its = self.watched.iter().all(|other| other.fd != watched.fd);
            if let Some(epoll) = self.epoll.filter(|_| is_its) {
                let _ = kernel::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, watched.fd, 0, 0);
            }
        }
    }

    /// The instance is the parent's: what is told here is not told there.
    pub fn forked(&mut self) {
        let parents = std::mem::take(self);
        if let Some(epoll) = parents.epoll {
            table::set(epoll, Entry::Kernel);
            kernel::close(epoll);
        }
    }

    pub fn watches(&self, description: u32) -> bool {
        let mut all = self.watched.iter();
        all.any(|watched| watched.description == description)
    }

    /// At once, if there is something.
    pub fn watch(&mut self, epoll: i32, description: u32, fd: i32) -> Result<(), i32> {
        self.serial += 1;
        let serial = self.serial;
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        kernel::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, events, serial)?;
        self.watched.push(Watched {
            description,
            fd,
            serial,
        });
        Ok(())
    }

    /// Descriptions that something has come to since.
    pub fn told(&self) -> Vec<u32> {
        let mut told = Vec::new();
        let Some(epoll) = self.epoll.filter(|_| !self.watched.is_empty()) else {
            return told;
        };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
        loop {
            let found = kernel::epoll_now(epoll, &mut events).unwrap_or(0) as usize;
            told.extend(events[..found].iter().filter_map(|e| self.of(e.u64)));
            if found < events.len() {
                return told;
            }
        }
    }

    fn of(&self, serial: u64) -> Option<u32> {
        let mut all = self.watched.iter();
        all.find(|watched| watched.serial == serial)
            .map(|watched| watched.description)
    }
}
