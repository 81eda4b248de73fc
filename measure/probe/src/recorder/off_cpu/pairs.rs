//! From switches to the times in which threads did not run.
use crate::counters::Said;
use hopscope_event::{OffCpu, ThreadIx, Tsc};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Pairs {
    threads: HashMap<i32, Thread>,
    /// Told so far.
    pub intervals: u64,
    pub lost: u64,
    pub unpaired: u64,
}

#[derive(Debug, Default)]
pub struct Thread {
    /// Known once the thread has made a measured call.
    pub ix: Option<ThreadIx>,
    doing: Doing,
    /// Not yet written.
    pub rows: Vec<OffCpu>,
    /// Value of [`Pairs::lost`] that the rows written so far have told of.
    lost_told: u64,
    seen: Tsc,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Unknown,
    Running,
    Out {
        since: Tsc,
        preempted: bool,
    },
}

impl Pairs {
    /// In order of time.
    pub fn add(&mut self, said: Said, at: Tsc) {
        let (tid, next) = match said {
            Said::Out { tid, preempted } => (
                tid,
                Doing::Out {
                    since: at,
                    preempted,
                },
            ),
            Said::Back { tid } => (tid, Doing::Running),
            Said::Lost { .. } => return,
        };
        let thread = self.threads.entry(tid).or_default();
        thread.seen = at;
        match (std::mem::replace(&mut thread.doing, next), next) {
            (Doing::Out { since, preempted }, Doing::Running) => {
                thread.rows.push(OffCpu {
                    out: since,
                    back: at,
                    preempted,
                });
            }
            (Doing::Running, Doing::Running) | (Doing::Out { .. }, Doing::Out { .. }) => {
                self.unpaired += 1;
            }
            _ => {}
        }
    }

    /// Some thread's switches are missing from here on back. Rows must have been written before.
    pub fn lose(&mut self, records: u64) {
        self.lost += records;
        for thread in self.threads.values_mut() {
            thread.doing = Doing::Unknown;
            thread.rows.clear();
        }
    }

    pub fn name(&mut self, tid: i32, ix: ThreadIx) {
        self.threads.entry(tid).or_default().ix = Some(ix);
    }

    /// Gives each thread that has something to say to `write`, with what was lost before it.
    pub fn tell<E>(
        &mut self,
        at_least: usize,
        mut write: impl FnMut(ThreadIx, u64, &[OffCpu]) -> Result<(), E>,
    ) -> Result<(), E> {
        for thread in self.threads.values_mut() {
            let Some(ix) = thread.ix else { continue };
            let lost = self.lost - thread.lost_told;
            if thread.rows.len() < at_least || (thread.rows.is_empty() && lost == 0) {
                continue;
            }
            write(ix, lost, &thread.rows)?;
            self.intervals += thread.rows.len() as u64;
            thread.lost_told = self.lost;
            thread.rows.clear();
        }
        Ok(())
    }

    /// What threads did before their first call concerns nobody, nor do threads long gone.
    pub fn forget(&mut self, before: Tsc, is_measured: impl Fn(i32) -> bool) {
        self.threads.retain(|tid, thread| {
            if thread.ix.is_none() {
                thread.rows.retain(|row| row.back >= before);
            }
            let waits = !thread.rows.is_empty();
            waits || thread.seen >= before || is_measured(*tid)
        });
    }

    /// Whoever is out now is so until the end.
    pub fn end(&mut self, at: Tsc) {
        for thread in self.threads.values_mut() {
            if let Doing::Out { since, preempted } = thread.doing {
                thread.rows.push(OffCpu {
                    out: since,
                    back: at,
                    preempted,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(tid: i32, preempted: bool) -> Said {
        Said::Out { tid, preempted }
    }

    /// Thread, how many were dropped, and each interval: its two ends, preempted.
    type Told = (u32, u64, Vec<(u64, u64, bool)>);

    fn told(pairs: &mut Pairs) -> Vec<Told> {
        let mut all = Vec::new();
        let done: Result<(), ()> = pairs.tell(0, |ix, lost, rows| {
            let rows = rows.iter().map(|r| (r.out.0, r.back.0, r.preempted));
            all.push((ix.0, lost, rows.collect()));
            Ok(())
        });
        done.expect("nothing fails here");
        all.sort();
        all
    }

    #[test]
    fn leaving_and_return_make_an_interval() {
        let mut pairs = Pairs::default();
        pairs.name(7, ThreadIx(0));
        pairs.name(8, ThreadIx(1));
        for (said, at) in [
            (Said::Back { tid: 8 }, 5),
            (out(7, true), 10),
            (out(8, false), 12),
            (Said::Back { tid: 7 }, 20),
            (out(7, false), 30),
        ] {
            pairs.add(said, Tsc(at));
        }
        pairs.end(Tsc(40));
        let expected = [
            (0, 0, vec![(10, 20, true), (30, 40, false)]),
            (1, 0, vec![(12, 40, false)]),
        ];
        assert_eq!(told(&mut pairs), expected);
        assert_eq!((pairs.intervals, pairs.unpaired), (3, 0));
    }

    #[test]
    fn nothing_is_paired_across_a_loss() {
        let mut pairs = Pairs::default();
        pairs.name(7, ThreadIx(0));
        pairs.add(out(7, true), Tsc(10));
        pairs.lose(5);
        pairs.add(Said::Back { tid: 7 }, Tsc(90));
        pairs.add(out(7, false), Tsc(100));
        pairs.add(Said::Back { tid: 7 }, Tsc(110));
        assert_eq!(told(&mut pairs), [(0, 5, vec![(100, 110, false)])]);
        assert_eq!((pairs.unpaired, told(&mut pairs)), (0, vec![]));
    }

    #[test]
    fn two_leavings_in_a_row_are_counted() {
        let mut pairs = Pairs::default();
        pairs.name(7, ThreadIx(0));
        pairs.add(out(7, true), Tsc(10));
        pairs.add(out(7, true), Tsc(20));
        pairs.add(Said::Back { tid: 7 }, Tsc(25));
        assert_eq!(told(&mut pairs), [(0, 0, vec![(20, 25, true)])]);
        assert_eq!(pairs.unpaired, 1);
    }

    #[test]
    fn a_thread_without_calls_is_forgotten() {
        let mut pairs = Pairs::default();
        pairs.add(out(7, false), Tsc(10));
        pairs.add(Said::Back { tid: 7 }, Tsc(20));
        pairs.forget(Tsc(15), |_| false);
        pairs.name(7, ThreadIx(0));
        assert_eq!(told(&mut pairs), [(0, 0, vec![(10, 20, false)])]);
        pairs.forget(Tsc(21), |_| false);
        assert!(pairs.threads.is_empty());
    }
}
