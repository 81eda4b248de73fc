//! Epoll sets: the kernel's epoll for its own descriptors, and a [`crate::set::Set`] beside it for the stack's sockets.
use crate::description::{Description, Kind};
use crate::set::Set;
use crate::state::State;
use crate::table::{self, Entry};
use nix::libc;

impl State {
    pub fn epoll_opened(&mut self, fd: i32) -> bool {
        let description = Description::new(Kind::Epoll(Set::default()), false);
        self.describe(fd, description).is_some()
    }

    pub fn is_epoll(&self, index: u32) -> bool {
        self.description(index)
            .is_some_and(|d| matches!(d.kind, Kind::Epoll(_)))
    }

    pub fn set_mut(&mut self, index: u32) -> Option<&mut Set> {
        match self.description_mut(index) {
            Some(Description {
                kind: Kind::Epoll(set),
                ..
            }) => Some(set),
            _ => None,
        }
    }

    pub fn set(&self, index: u32) -> Option<&Set> {
        match self.description(index) {
            Some(Description {
                kind: Kind::Epoll(set),
                ..
            }) => Some(set),
            _ => None,
        }
    }

    /// epoll_ctl on a descriptor of the stack's. `false`: the kernel's set is to answer.
    pub fn epoll_control(
        &mut self,
        epoll: i32,
        operation: i32,
        fd: i32,
        events: u32,
        data: u64,
    ) -> Result<bool, i32> {
        if table::get(fd) == Entry::Internal {
            return Err(libc::EBADF);
        }
        let Some(index) = self.index_of(fd) else {
            return Ok(false);
        };
        // A set that was not made by a hook: the kernel's alone.
        let set_index = match self.index_of(epoll) {
            Some(set) if self.is_epoll(set) => set,
            Some(_) => return Err(libc::EINVAL),
            None => return Err(libc::EINVAL),
        };
        if self.is_epoll(index) {
            // The kernel's part is in the kernel's set; what the stack has of it would be missing.
            return Err(libc::EINVAL);
        }
        let set = self.set_mut(set_index).ok_or(libc::EINVAL)?;
        let place = set.place(fd, index);
        match (operation, place) {
            (libc::EPOLL_CTL_ADD, Some(_)) => return Err(libc::EEXIST),
            (libc::EPOLL_CTL_ADD, None) if is_wrongly_exclusive(events) => {
                return Err(libc::EINVAL);
            }
            (libc::EPOLL_CTL_ADD, None) => {
                let place = set.add(fd, index, events, data);
                if let Some(description) = self.description_mut(index) {
                    description.watchers.push((set_index, place));
                }
            }
            (libc::EPOLL_CTL_MOD, Some(place)) => {
                // As Linux: one that is woken alone stays so.
                let exclusive = libc::EPOLLEXCLUSIVE as u32;
                if (events | set.events(place)) & exclusive != 0 {
                    return Err(libc::EINVAL);
                }
                set.modify(place, events, data);
            }
            (libc::EPOLL_CTL_DEL, Some(place)) => {
                set.remove(place);
                if let Some(description) = self.description_mut(index) {
                    description
                        .watchers
                        .retain(|watcher| *watcher != (set_index, place));
                }
            }
            (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, None) => return Err(libc::ENOENT),
            _ => return Err(libc::EINVAL),
        }
        self.rename(set_index);
        self.note_level(index);
        let listens = self
            .description(index)
            .and_then(Description::socket)
            .is_some_and(|s| s.listening);
        if listens && operation == libc::EPOLL_CTL_ADD {
            self.claim();
        }
        // Whoever waits on the set may have something now.
        self.ring_all(set_index);
        Ok(true)
    }

    /// How many events a call for `most` asks the kernel for, before the stack's fill what is left: as many as the stack does not
    /// need, a quarter at least, and one at least; of one at all in turn.
    pub fn epoll_share_of_kernel(&mut self, index: u32, most: usize) -> usize {
        self.look_at_kernel_parts(index);
        let Some(set) = self.set_mut(index) else {
            return most;
        };
        match (set.most_ready(), most) {
            (0, _) => most,
            (_, 1) => {
                set.kernel_first = !set.kernel_first;
                usize::from(set.kernel_first)
            }
            (ready, _) => most.saturating_sub(ready).max(most / 4).max(1),
        }
    }

    pub fn epoll_harvest(
        &mut self,
        index: u32,
        most: usize,
        push: &mut dyn FnMut(u32, u64),
    ) -> usize {
        let Some(set) = self.set_mut(index) else {
            return 0;
        };
        let mut set = std::mem::take(set);
        let found = set.harvest(most, |interest| self.level(interest.description), push);
        if let Some(place) = self.set_mut(index) {
            *place = set;
        }
        found
    }

    /// A harvest would find something.
    pub fn epoll_may_be_ready(&mut self, index: u32) -> bool {
        let Some(set) = self.set_mut(index) else {
            return false;
        };
        let mut set = std::mem::take(set);
        let ready = set.is_ready(|interest| self.level(interest.description));
        if let Some(place) = self.set_mut(index) {
            *place = set;
        }
        ready
    }

    /// poll's bits; of an epoll descriptor that a harvest would find something.
    pub fn poll_level(&mut self, index: u32) -> u32 {
        if self.is_epoll(index) {
            self.look_at_kernel_parts(index);
            return match self.epoll_may_be_ready(index) {
                true => (libc::POLLIN | libc::POLLRDNORM) as u32,
                false => 0,
            };
        }
        self.level(index)
    }
}
/// EPOLLEXCLUSIVE with more than EPOLLEXCLUSIVE_OK_BITS (fs/eventpoll.c).
fn is_wrongly_exclusive(events: u32) -> bool {
    let exclusive = libc::EPOLLEXCLUSIVE;
    let may_be = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP;
    let may_be = may_be | libc::EPOLLWAKEUP | libc::EPOLLET | exclusive;
    events & exclusive as u32 != 0 && events & !(may_be as u32) != 0
}
