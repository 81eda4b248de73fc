//! Who runs where: the measured worker on the last processor, everything else on the others.
use crate::error::{Error, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Processors {
    /// For this process and all it starts.
    pub(crate) others: usize,
    pub(crate) worker: usize,
}

impl Processors {
    /// Takes the last processor away from this process, its recorders and its programs; a worker
    /// is put there by its own means. With a single processor all share it.
    pub(crate) fn divide() -> Result<Processors> {
        let system = |doing| move |source| Error::System { doing, source };
        let own = sched_getaffinity(Pid::from_raw(0)).map_err(system("ask for the processors"))?;
        let allowed: Vec<usize> = (0..CpuSet::count())
            .filter(|cpu| own.is_set(*cpu) == Ok(true))
            .collect();
        let (Some(&first), Some(&worker)) = (allowed.first(), allowed.last()) else {
            return Err(system("find a processor")(nix::Error::ENODEV));
        };
        if first != worker {
            let mut others = own;
            others
                .unset(worker)
                .and_then(|()| sched_setaffinity(Pid::from_raw(0), &others))
                .map_err(system("leave a processor to the worker"))?;
        }
        Ok(Processors {
            others: first,
            worker,
        })
    }
}
