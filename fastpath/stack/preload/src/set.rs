//! epoll(7) over the stack's sockets: level, edge, one-shot. Costs what is ready, not what is watched.
use nix::libc;
use std::collections::{HashMap, VecDeque};

/// Of one descriptor in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    pub fd: i32,
    /// The description that `fd` named when it was added.
    pub description: u32,
    pub events: u32,
    pub data: u64,
    /// Something happened that was not reported yet.
    edge: bool,
    /// EPOLLONESHOT was reported.
    disarmed: bool,
    /// It is in the list of those that may be ready.
    queued: bool,
}

#[derive(Debug, Default)]
pub struct Set {
    interests: Vec<Option<Interest>>,
    free: Vec<u32>,
    places: HashMap<(i32, u32), u32>,
    ready: VecDeque<u32>,
    /// Of a set with room for one event: the kernel's descriptors are next.
    pub kernel_first: bool,
}

/// Reported whether asked for or not.
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

impl Set {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub fn place(&self, fd: i32, description: u32) -> Option<u32> {
        self.places.get(&(fd, description)).copied()
    }

    /// EPOLL_CTL_ADD of one that is not there. It is looked at at once, as Linux does.
    pub fn add(&mut self, fd: i32, description: u32, events: u32, data: u64) -> u32 {
        let interest = Interest {
            fd,
            description,
            events,
            data,
            edge: true,
            disarmed: false,
            queued: true,
        };
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.interests.push(None);
                self.interests.len() as u32 - 1
            }
        };
        self.interests[place as usize] = Some(interest);
        self.places.insert((fd, description), place);
        self.ready.push_back(place);
        place
    }

    /// EPOLL_CTL_MOD: arms it again.
    pub fn modify(&mut self, place: u32, events: u32, data: u64) {
        if let Some(Some(interest)) = self.interests.get_mut(place as usize) {
            interest.events = events;
            interest.data = data;
            interest.disarmed = false;
        }
        self.happened(place, u32::MAX);
    }

    pub fn remove(&mut self, place: u32) -> Option<Interest> {
        let interest = self.interests.get_mut(place as usize)?.take()?;
        self.places.remove(&(interest.fd, interest.description));
        if interest.queued {
            self.ready.retain(|queued| *queued != place);
        }
        self.free.push(place);
        Some(interest)
    }

    /// `key`: which of poll's bits it was about, as wake-ups in Linux have it (ep_poll_callback).
    pub fn happened(&mut self, place: u32, key: u32) {
        if let Some(Some(interest)) = self.interests.get_mut(place as usize) {
            interest.edge |= key & (interest.events | ALWAYS) != 0;
            if !interest.queued {
                interest.queued = true;
                self.ready.push_back(place);
            }
        }
    }

    /// What it was added for, or changed to.
    pub fn events(&self, place: u32) -> u32 {
        let interest = self.interests.get(place as usize).copied().flatten();
        interest.map_or(0, |interest| interest.events)
    }

    pub fn is_by_edge(&self, place: u32) -> bool {
        self.events(place) & libc::EPOLLET as u32 != 0
    }

    /// A connection to accept, or bytes.
    pub fn waits_for_in(&self, place: u32) -> bool {
        let interest = self.interests.get(place as usize).copied().flatten();
        interest.is_some_and(|i| i.events & libc::EPOLLIN as u32 != 0 && !i.disarmed)
    }

    /// A harvest finds no more.
    pub fn most_ready(&self) -> usize {
        self.ready.len()
    }

    /// A harvest would find something. What is not ready leaves the list.
    pub fn is_ready(&mut self, mut level: impl FnMut(&Interest) -> u32) -> bool {
        while let Some(place) = self.ready.front() {
            let Some(Some(interest)) = self.interests.get_mut(*place as usize) else {
                self.ready.pop_front();
                continue;
            };
            let is = level(interest) & (interest.events | ALWAYS) != 0;
            let edge_only = interest.events & libc::EPOLLET as u32 != 0;
            if is && !interest.disarmed && (interest.edge || !edge_only) {
                return true;
            }
            interest.queued = false;
            self.ready.pop_front();
        }
        false
    }

    /// Everything in it, for its end.
    pub fn interests(&self) -> impl Iterator<Item = (u32, Interest)> + '_ {
        let all = (0..).zip(&self.interests);
        all.filter_map(|(place, interest)| Some((place, (*interest)?)))
    }

    /// What epoll_wait reports now, in turn. What is reported by level is at the end of the list again; what is not ready leaves it.
    pub fn harvest(
        &mut self,
        most: usize,
        mut level: impl FnMut(&Interest) -> u32,
        mut report: impl FnMut(u32, u64),
    ) -> usize {
        let mut found = 0;
        for _ in 0..self.ready.len() {
            if found == most {
                break;
            }
            let Some(place) = self.ready.pop_front() else {
                break;
            };
            let Some(Some(interest)) = self.interests.get_mut(place as usize) else {
                continue;
            };
            interest.queued = false;
            let level = level(interest) & (interest.events | ALWAYS);
            let edge_only = interest.events & libc::EPOLLET as u32 != 0;
            if level == 0 || interest.disarmed || edge_only && !interest.edge {
                continue;
            }
            interest.edge = false;
            interest.disarmed = interest.events & libc::EPOLLONESHOT as u32 != 0;
            report(level, interest.data);
            found += 1;
            if !edge_only && !interest.disarmed {
                interest.queued = true;
                self.ready.push_back(place);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN: u32 = libc::EPOLLIN as u32;

    fn reported(set: &mut Set, most: usize, level: u32) -> Vec<u64> {
        let mut out = Vec::new();
        set.harvest(most, |_| level, |_, data| out.push(data));
        out
    }

    #[test]
    fn level_is_reported_in_turn_until_it_is_gone() {
        let mut set = Set::default();
        for fd in 0..3 {
            set.add(fd, fd as u32, IN, fd as u64);
        }
        assert_eq!(reported(&mut set, 2, IN), [0, 1]);
        assert_eq!(reported(&mut set, 2, IN), [2, 0]);
        assert_eq!(reported(&mut set, 9, 0), [0_u64; 0]);
        set.happened(1, u32::MAX);
        assert_eq!(reported(&mut set, 9, IN), [1]);
    }

    #[test]
    fn an_edge_is_reported_once() {
        let mut set = Set::default();
        let place = set.add(5, 1, IN | libc::EPOLLET as u32, 7);
        assert_eq!(reported(&mut set, 9, IN), [7]);
        assert_eq!(reported(&mut set, 9, IN), [0_u64; 0]);
        set.happened(place, libc::EPOLLOUT as u32);
        assert_eq!(reported(&mut set, 9, IN), [0_u64; 0]);
        set.happened(place, u32::MAX);
        assert_eq!(reported(&mut set, 9, IN), [7]);
        set.modify(place, IN | libc::EPOLLET as u32, 8);
        assert_eq!(reported(&mut set, 9, IN), [8]);
    }

    #[test]
    fn one_shot_is_armed_again_by_a_change() {
        let mut set = Set::default();
        let place = set.add(5, 1, IN | libc::EPOLLONESHOT as u32, 7);
        assert_eq!(reported(&mut set, 9, IN), [7]);
        set.happened(place, u32::MAX);
        assert_eq!(reported(&mut set, 9, IN), [0_u64; 0]);
        set.modify(place, IN | libc::EPOLLONESHOT as u32, 7);
        assert_eq!(reported(&mut set, 9, IN), [7]);
        set.remove(place);
        assert!(set.is_empty());
        set.happened(place, u32::MAX);
        assert_eq!(reported(&mut set, 9, IN), [0_u64; 0]);
    }
}
