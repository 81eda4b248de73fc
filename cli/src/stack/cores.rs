//! `--cores`: which processor each engine's thread runs on.
use anyhow::{Context, bail, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::str::FromStr;

/// As taskset(1) writes them, in their order: `0,2-3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cores(Vec<usize>);

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Cores, String> {
        let wrong = || format!("{text:?} is no list of processors like 0,2-3");
        let number = |text: &str| text.parse::<usize>().ok().filter(|n| *n < CpuSet::count());
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let ends = number(first).zip(number(last));
            let (first, last) = ends.ok_or_else(wrong)?;
            if last < first || (first..=last).any(|n| all.contains(&n)) {
                return Err(wrong());
            }
            all.extend(first..=last);
        }
        Ok(Cores(all))
    }
}

impl Cores {
    /// One for each engine, and all of them are to be had.
    pub(super) fn check(&self, engines: u16) -> anyhow::Result<()> {
        let count = self.0.len();
        ensure!(
            count == usize::from(engines),
            "--cores has {count} processors, and --engines {engines}"
        );
        let own = sched_getaffinity(Pid::from_raw(0)).context("reading the own processors")?;
        for core in &self.0 {
            if own.is_set(*core) != Ok(true) {
                bail!("--cores {core}: no processor that this process may run on");
            }
        }
        Ok(())
    }

    /// This thread runs there from now on.
    pub(super) fn pin(&self, engine: usize) -> anyhow::Result<()> {
        let Some(core) = self.0.get(engine) else {
            return Ok(());
        };
        let mut one = CpuSet::new();
        let set = one.set(*core);
        set.and_then(|()| sched_setaffinity(Pid::from_raw(0), &one))
            .with_context(|| format!("running on processor {core}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!("3".parse(), Ok(Cores(vec![3])));
        assert_eq!("4,0-2".parse(), Ok(Cores(vec![4, 0, 1, 2])));
        for wrong in [
            "", "1,", "a", "2-1", "1,1", "0-2,1", "-1", "99999", "0-99999",
        ] {
            assert!(wrong.parse::<Cores>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_for_each_engine_that_there_is() {
        let own = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let mut all = (0..CpuSet::count()).partition::<Vec<_>, _>(|n| own.is_set(*n) == Ok(true));
        let (mine, others) = (all.0.remove(0), all.1.remove(0));
        assert!(Cores(vec![mine]).check(1).is_ok());
        assert!(Cores(vec![mine]).check(2).is_err());
        assert!(Cores(vec![others]).check(1).is_err());
        std::thread::spawn(move || {
            Cores(vec![mine]).pin(0).unwrap();
            let now = sched_getaffinity(Pid::from_raw(0)).unwrap();
            let on = |n: &usize| now.is_set(*n) == Ok(true);
            assert!((0..CpuSet::count()).filter(on).eq([mine]));
        })
        .join()
        .unwrap();
    }
}
