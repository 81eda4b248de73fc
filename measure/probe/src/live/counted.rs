//! Events of a target's threads, opened by the recorder and mapped where the probes of each thread find them.
use super::counter_pages;
use super::error::LiveError;
use super::install::Installed;
use super::mapping::{MAP_EVENT, call};
use super::passage::Passage;
use super::patch;
use crate::counters::counting::{self, CounterError, INDEX_AT, LOCK_AT};
use hopscope_event::CounterEntry;
use hopscope_event::layout::PAGE;
use hopscope_process::{StoppedProcess, stop_one};
use nix::libc;
use std::fs::File;

/// Each takes some 10 system calls of the target's main thread, which stands still meanwhile.
const THREADS_IN_A_STOP: usize = 4;

impl Installed {
    /// Opens the events of these threads, each with its context. Gives why, of each that has none; threads that are gone
    /// are no failures.
    ///
    /// # Errors
    /// The target could not be stopped; some of them may have been opened.
    pub fn open_counters(&mut self, threads: &[(u32, i32)]) -> Result<Vec<String>, LiveError> {
        let mut failed = Vec::new();
        let mut parts = threads.chunks(THREADS_IN_A_STOP).peekable();
        while let Some(part) = parts.next() {
            let mut opened = Vec::new();
            for &(context, tid) in part {
                match counting::open(tid, &self.table.counters) {
                    Ok(events) => opened.push((context, events)),
                    Err(CounterError::Refused { source, .. })
                        if source.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(e) => failed.push(e.to_string()),
                }
            }
            if opened.is_empty() {
                continue;
            }
            let mut one = stop_one(self.pid)?;
            // If it became another program just now, these places are that one's.
            let mapped = match self.is_alive() {
                true => self.map_events(&mut one, &opened),
                false => Ok(Vec::new()),
            };
            let pause = one.resume()?.pause();
            failed.extend(mapped?);
            if parts.peek().is_some() {
                patch::let_run(pause);
            }
        }
        Ok(failed)
    }

    fn map_events(
        &self,
        stopped: &mut StoppedProcess,
        opened: &[(u32, Vec<Option<File>>)],
    ) -> Result<Vec<String>, LiveError> {
        let real = opened.iter().flat_map(|(_, events)| events).flatten();
        let scratch = counter_pages::scratch(&self.table);
        let passage = match real.count() {
            0 => None,
            _ => Some(Passage::open(stopped, &self.memory, scratch)?),
        };
        let mut failed = Vec::new();
        for (context, events) in opened {
            let at = counter_pages::of(&self.table, *context);
            match self.map_of_thread(stopped, passage.as_ref(), at, events) {
                // Only now: its probes read all of them, or none.
                Ok(()) => {
                    if let Some(ring) = self.pool().ring(*context as usize) {
                        ring.set_counters(at);
                    }
                }
                Err(e) => failed.push(e.to_string()),
            }
        }
        passage.map_or(Ok(()), |passage| passage.close(stopped))?;
        Ok(failed)
    }

    fn map_of_thread(
        &self,
        stopped: &mut StoppedProcess,
        passage: Option<&Passage>,
        at: u64,
        events: &[Option<File>],
    ) -> Result<(), LiveError> {
        let real: Vec<&File> = events.iter().flatten().collect();
        let given = match passage {
            Some(passage) if !real.is_empty() => passage.hand(stopped, &real)?,
            _ => Vec::new(),
        };
        let mut numbers = given.iter();
        let mut mapped = Ok(());
        for (counter, event) in self.table.counters.iter().zip(events) {
            let page = at + u64::from(counter.number) * PAGE as u64;
            mapped = mapped.and_then(|()| match event {
                Some(_) => {
                    let fd = *numbers.next().expect("one for each event");
                    let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
                    let args = [page, PAGE as u64, libc::PROT_READ as u64, flags, fd, 0];
                    call(stopped, MAP_EVENT, libc::SYS_mmap, args).map(drop)
                }
                None => self.emulate(stopped, counter, page),
            });
        }
        let behind = at + (events.len() * PAGE) as u64;
        mapped = mapped.and_then(|()| grow_in_children(stopped, behind));
        for (n, fd) in given.iter().enumerate() {
            if let Some(passage) = passage {
                let closed = passage.close_file(stopped, n, *fd);
                mapped = mapped.and(closed);
            }
        }
        mapped
    }

    /// A page as of an event on a counter of the processor, on which `rdpmc` is executed; in a test the target answers it.
    fn emulate(
        &self,
        stopped: &mut StoppedProcess,
        counter: &CounterEntry,
        page: u64,
    ) -> Result<(), LiveError> {
        let rw = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let args = [page, PAGE as u64, rw, 0, 0, 0];
        call(stopped, "mprotect", libc::SYS_mprotect, args)?;
        let words = [(INDEX_AT, u32::from(counter.number) + 1), (LOCK_AT, 2)];
        words.into_iter().try_for_each(|(at, word)| {
            let written = self.memory.write(page + at as u64, &word.to_le_bytes());
            written.map_err(LiveError::io(self.pid, "writing to a page of an event"))
        })
    }
}

/// What takes the place of the events below it in a forked child.
fn grow_in_children(stopped: &mut StoppedProcess, at: u64) -> Result<(), LiveError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_GROWSDOWN;
    let none = u64::MAX;
    let args = [
        at,
        PAGE as u64,
        libc::PROT_READ as u64,
        flags as u64,
        none,
        0,
    ];
    call(stopped, "mmap", libc::SYS_mmap, args).map(drop)
}
