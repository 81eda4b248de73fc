//! Sockets that the kernel has a part of: of every address, at which it listens, or receives datagrams, too.
use crate::kernel;
use crate::say::once;
use crate::state::{State, kernel_level};
use nix::libc::{self, pollfd};
use rustix::io::Errno;
use std::sync::atomic::AtomicBool;

static NONE_SAID: AtomicBool = AtomicBool::new(false);
const IN: u32 = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;

impl State {
    /// What the kernel's parts of sockets in a set are waited for by.
    pub fn epoll_kernel_parts(&self, index: u32) -> Vec<i32> {
        let Some(set) = self.set(index) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for part in &self.kernel_too {
            let watchers = self.description(*part).map_or(&[][..], |d| &d.watchers);
            let of_set = watchers.iter().filter(|(set, _)| *set == index);
            for (_, place) in of_set.filter(|(_, place)| set.waits_for_in(*place)) {
                let by = match self.edges.watches(*part) && set.is_by_edge(*place) {
                    true => self.edges.epoll,
                    false => self.kernel_part(*part),
                };
                found.extend(by.filter(|fd| !found.contains(fd)));
            }
        }
        found
    }

    /// The kernel's part of a socket tells nobody of what comes there.
    pub fn look_at_kernel_parts(&mut self, index: u32) {
        for at in 0..self.kernel_too.len() {
            let part = self.kernel_too[at];
            let watchers = self.description(part).map_or(&[][..], |d| &d.watchers);
            let of_set = watchers.iter().filter(|(set, _)| *set == index);
            let places: Vec<u32> = of_set.map(|(_, place)| *place).collect();
            for place in places {
                let by_edge = self.set(index).is_some_and(|set| set.is_by_edge(place));
                if by_edge && self.watch_edges(part) {
                    continue;
                }
                let level = self.description(part).map_or(0, kernel_level);
                if let Some(set) = self.set_mut(index).filter(|_| level != 0) {
                    set.happened(place, u32::MAX);
                }
            }
        }
        for told in self.edges.told() {
            self.happened(told, IN);
        }
    }

    fn kernel_part(&self, index: u32) -> Option<i32> {
        self.description(index)?.kernel_part()
    }

    /// What the kernel's parts of a poll's descriptors, sockets and sets, are waited for by.
    pub fn kernel_parts(&self, fds: &[pollfd]) -> Vec<i32> {
        let asked = fds.iter().filter(|poll| poll.events & libc::POLLIN != 0);
        let found = asked.filter_map(|poll| {
            let index = self.index_of(poll.fd)?;
            Some(match self.is_epoll(index) {
                true => self.epoll_kernel_parts(index),
                false => self.kernel_part(index).into_iter().collect(),
            })
        });
        found.flatten().collect()
    }

    /// What the kernel has of it is told once from now on. `false`: there is no descriptor for that.
    fn watch_edges(&mut self, index: u32) -> bool {
        if self.edges.watches(index) {
            return true;
        }
        let Some(fd) = self.kernel_part(index) else {
            return false;
        };
        let epoll = match self.edges.epoll {
            Some(epoll) => Ok(epoll),
            None => kernel::epoll().and_then(|made| self.internal(made)),
        };
        let watched = epoll.and_then(|epoll| {
            self.edges.epoll = Some(epoll);
            self.edges.watch(epoll, index, fd)
        });
        if let Err(error) = watched {
            once(&NONE_SAID, || {
                let error = Errno::from_raw_os_error(error);
                format!(
                    "descriptor {fd}: what the kernel has of it is told anew by each epoll_wait, in spite of EPOLLET: {error}"
                )
            });
        }
        watched.is_ok()
    }

    /// The kernel has no part in it any more.
    pub fn forget_kernel_part(&mut self, index: u32) {
        self.kernel_too.retain(|other| *other != index);
        self.edges.leave(index);
    }
}
