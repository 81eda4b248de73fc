//! Processes that have an io_uring: `struct ring_user` of `bpf/contract.h`.
use libbpf_rs::{MapCore, MapFlags};
use std::collections::HashSet;

/// One that runs this program: a process may execute another one, which has no ring.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RingUser {
    memory: u64,
    pub pid: u32,
    /// Of the program's file, as far as the kernel programs know it.
    pub name: String,
}

fn of(key: &[u8], value: &[u8]) -> Option<RingUser> {
    let name = value.split(|byte| *byte == 0).next()?;
    Some(RingUser {
        memory: u64::from_ne_bytes(key.get(..8)?.try_into().ok()?),
        pid: u32::from_ne_bytes(key.get(8..12)?.try_into().ok()?),
        name: String::from_utf8_lossy(name).into_owned(),
    })
}

pub(super) fn of_map(map: &impl MapCore) -> Vec<RingUser> {
    let user = |key: Vec<u8>| {
        let value = map.lookup(&key, MapFlags::ANY).ok()??;
        of(&key, &value)
    };
    map.keys().filter_map(user).collect()
}

/// What is known of the processes of some groups.
#[derive(Debug, Default)]
pub struct RingUsers {
    known: HashSet<RingUser>,
}

impl RingUsers {
    /// Gives those that are new. `processes` of the groups are asked for only where there are any.
    pub fn update(
        &mut self,
        found: Vec<RingUser>,
        processes: impl FnOnce() -> Vec<u32>,
    ) -> Vec<RingUser> {
        if found.is_empty() {
            self.known.clear();
            return Vec::new();
        }
        let processes: HashSet<u32> = processes().into_iter().collect();
        let is_here = |user: &RingUser| processes.contains(&user.pid);
        let here: HashSet<RingUser> = found.into_iter().filter(is_here).collect();
        let new = here.difference(&self.known).cloned().collect();
        self.known = here;
        new
    }

    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.known.iter().map(|user| user.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(memory: u64, pid: u32) -> RingUser {
        let mut key = memory.to_ne_bytes().to_vec();
        key.extend(pid.to_ne_bytes());
        key.extend([0; 4]);
        of(&key, b"server\0\0\0\0\0\0\0\0\0\0").expect("whole")
    }

    #[test]
    fn what_the_kernel_wrote() {
        let found = user(5, 7);
        assert_eq!((found.pid, found.name.as_str()), (7, "server"));
        assert_eq!(of(&[0; 11], b""), None);
    }

    #[test]
    fn only_processes_of_the_groups_are_given_and_once() {
        let mut users = RingUsers::default();
        let here = || vec![7];
        let new = users.update(vec![user(5, 7), user(6, 8)], here);
        assert_eq!(new, [user(5, 7)]);
        assert_eq!(users.update(vec![user(5, 7)], here), []);
        // Another program, with a ring of its own.
        assert_eq!(users.update(vec![user(9, 7)], here), [user(9, 7)]);
        assert_eq!(users.pids().collect::<Vec<_>>(), [7]);
        assert_eq!(users.update(vec![user(9, 7)], Vec::new), []);
        assert_eq!(users.pids().count(), 0);
    }
}
