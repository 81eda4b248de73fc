//! Both threads of a connection that take turns, placed on one processor (`--pair`): a thread that is woken on another
//! processor waits for that one to wake up, which takes several times as long as all the rest of a round trip. Nothing
//! is gained where both work at the same time, so what they do is looked at all the time, and it is undone.
//! docs/adr/010.
mod affinity;
mod window;

use crate::programs::{Count, End, PlacedThreads, SpliceError};
use crate::readers;
pub use affinity::{Restored, forget, restore};
use std::collections::{HashMap, HashSet};
use window::{Seen, Verdict, Windows};

/// Both threads were placed on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairs {
    /// Processes of the client and of the server.
    pub processes: [u32; 2],
    pub processor: usize,
}

#[derive(Debug, Default)]
struct Known {
    windows: Windows,
    /// That send, as processes and themselves; once they are placed, those that were.
    threads: [(u32, u32); 2],
    processor: Option<usize>,
    /// Its program sets masks by itself.
    is_left: bool,
}

/// What was seen so far of connections, by their servers' ends.
#[derive(Debug, Default)]
pub struct Pairing {
    known: HashMap<u64, Known>,
    /// Restored at the last look: threads that were being made then are restored now.
    restored: Vec<u64>,
    across_users: bool,
    /// Whether or not they are faster so.
    anyway: bool,
}

impl Pairing {
    pub fn new(across_users: bool, anyway: bool) -> Pairing {
        Pairing {
            across_users,
            anyway,
            ..Pairing::default()
        }
    }

    /// To be called again and again. `now_ns`: since anything that stays. Those that were placed now.
    ///
    /// # Errors
    /// What was changed cannot be restored, or be counted.
    pub fn look(
        &mut self,
        ends: &[End],
        now_ns: u64,
        placed: &PlacedThreads,
    ) -> Result<Vec<Pairs>, SpliceError> {
        for pair in std::mem::take(&mut self.restored) {
            restore(placed, Some(pair))?;
            forget(placed, Some(pair));
        }
        if self.known.values().any(|known| known.windows.is_placed()) {
            placed.look()?;
        }
        let mut seen = HashSet::new();
        let mut new = Vec::new();
        let busy = senders(ends);
        for both in connections(ends) {
            let pair = both[1].cookie;
            seen.insert(pair);
            new.extend(self.one(both, &busy, now_ns, placed)?);
        }
        let gone: Vec<u64> = self.known.keys().copied().collect();
        for pair in gone.into_iter().filter(|pair| !seen.contains(pair)) {
            let known = self.known.remove(&pair);
            if known.is_some_and(|known| known.windows.is_placed()) {
                self.undo(pair, Count::UnpairedOther, placed)?;
            }
        }
        Ok(new)
    }

    fn one(
        &mut self,
        both: [&End; 2],
        busy: &HashMap<(u32, u32), u32>,
        now_ns: u64,
        placed: &PlacedThreads,
    ) -> Result<Option<Pairs>, SpliceError> {
        let pair = both[1].cookie;
        let threads = both.map(|end| end.sender);
        let known = self.known.entry(pair).or_default();
        known.windows.anyway = self.anyway;
        if known.is_left || threads.iter().any(|(process, _)| *process == 0) {
            return Ok(None);
        }
        if known.windows.is_placed() {
            let own = known.threads.map(|(_, thread)| thread);
            let changed = affinity::restore_others(placed, pair, own)?;
            placed.count(Count::MasksChanged, changed)?;
            if !affinity::is_as_placed(placed, pair, own) {
                known.is_left = true;
                known.windows = Windows::default();
                self.undo(pair, Count::UnpairedOther, placed)?;
                return Ok(None);
            }
        } else {
            known.threads = threads;
        }
        let verdict = known.windows.look(Seen {
            ns: now_ns,
            messages: both.map(|end| end.messages),
            senders: both.map(|end| end.senders),
            times: threads.map(|(process, thread)| {
                // It has ended: it will not take turns any more.
                affinity::times(process, thread).unwrap_or_default()
            }),
            are_runnable: threads.map(|(process, thread)| {
                known.windows.is_placed() && affinity::is_runnable(process, thread)
            }),
            is_alone: threads[0] != threads[1]
                && threads.iter().all(|thread| busy.get(thread) == Some(&1)),
        });
        match verdict {
            Verdict::Stay => Ok(None),
            Verdict::Place => self.place(both, now_ns, placed),
            Verdict::UndoSlower => {
                self.undo(pair, Count::UnpairedSlower, placed)?;
                Ok(None)
            }
            Verdict::UndoOther => {
                self.undo(pair, Count::UnpairedOther, placed)?;
                Ok(None)
            }
        }
    }

    fn place(
        &mut self,
        both: [&End; 2],
        now_ns: u64,
        placed: &PlacedThreads,
    ) -> Result<Option<Pairs>, SpliceError> {
        let pair = both[1].cookie;
        let threads = both.map(|end| end.sender);
        let taken: Vec<usize> = self
            .known
            .values()
            .filter_map(|one| one.processor)
            .collect();
        let processor = if self.may_be_placed(both) {
            affinity::place(pair, threads, &taken, placed)
        } else {
            Ok(None)
        };
        let Some(known) = self.known.get_mut(&pair) else {
            return Ok(None);
        };
        match processor {
            Ok(Some(processor)) => {
                known.processor = Some(processor);
                placed.count(Count::Paired, 1)?;
                Ok(Some(Pairs {
                    processes: threads.map(|(process, _)| process),
                    processor,
                }))
            }
            Ok(None) => {
                known.windows.give_back(now_ns);
                Ok(None)
            }
            Err(why) => {
                log::warn!("{why}");
                known.windows.give_back(now_ns);
                Ok(None)
            }
        }
    }

    /// The threads are those of programs that have the connection, and of one user.
    fn may_be_placed(&self, both: [&End; 2]) -> bool {
        let has_socket =
            |end: &&End| end.inode != 0 && readers::sockets(end.sender.0).contains(&end.inode);
        let users = both.map(|end| affinity::user(end.sender.0));
        let is_one = users[0].is_some() && users[0] == users[1];
        both.iter().all(has_socket) && (is_one || self.across_users)
    }

    fn undo(&mut self, pair: u64, why: Count, placed: &PlacedThreads) -> Result<(), SpliceError> {
        if let Some(known) = self.known.get_mut(&pair) {
            known.processor = None;
        }
        let Restored { changed, .. } = restore(placed, Some(pair))?;
        placed.count(Count::MasksChanged, changed)?;
        self.restored.push(pair);
        placed.count(why, 1)
    }

    /// At the end: everything is as it was, but for what was being made meanwhile, which the keeper restores.
    ///
    /// # Errors
    /// As [`Pairing::look`].
    pub fn end(&mut self, placed: &PlacedThreads) -> Result<(), SpliceError> {
        let is_placed = |known: &&Known| known.windows.is_placed();
        let open = self.known.values().filter(is_placed).count() as u64;
        let Restored { changed, .. } = restore(placed, None)?;
        self.known.clear();
        placed.count(Count::MasksChanged, changed)?;
        placed.count(Count::UnpairedOther, open)
    }
}

/// Both ends of each redirected connection.
fn connections(ends: &[End]) -> Vec<[&End; 2]> {
    let by_cookie: HashMap<u64, &End> = ends.iter().map(|end| (end.cookie, end)).collect();
    let joined = |end: &&End| end.is(End::JOINED) && !end.is(End::LEAVING);
    let servers = ends.iter().filter(|end| end.is(End::SERVER));
    let both = servers.filter_map(|server| Some([*by_cookie.get(&server.peer)?, server]));
    both.filter(|both| both.iter().all(joined)).collect()
}

/// On how many ends each thread was the last one to send.
fn senders(ends: &[End]) -> HashMap<(u32, u32), u32> {
    let mut busy = HashMap::new();
    for end in ends.iter().filter(|end| end.is(End::JOINED)) {
        *busy.entry(end.sender).or_default() += 1;
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_several_connections_are_seen() {
        let end = |cookie, peer, thread, flags| End {
            cookie,
            peer,
            sender: (thread, thread),
            flags: flags | End::JOINED,
            ..End::default()
        };
        let ends = [
            end(1, 0, 10, 0),
            end(2, 1, 20, End::SERVER),
            end(3, 0, 11, 0),
            end(4, 3, 20, End::SERVER),
            end(5, 99, 21, End::SERVER),
            end(6, 0, 12, 0),
            end(7, 6, 22, End::SERVER | End::LEAVING),
        ];
        let found = connections(&ends);
        let cookies: Vec<_> = found
            .iter()
            .map(|both| both.map(|end| end.cookie))
            .collect();
        assert_eq!(cookies, [[1, 2], [3, 4]]);
        let busy = senders(&ends);
        assert_eq!((busy[&(10, 10)], busy[&(20, 20)]), (1, 2));
    }
}
