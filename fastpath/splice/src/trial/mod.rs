//! Whether this kernel's redirected sockets behave like plain ones: each known fault is tried on a few
//! connections of our own.
mod cases;
mod pair;

use crate::cgroup::{self, CgroupError, Group};
use crate::programs::{Accelerator, Options, SpliceError};
use pair::Place;

#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error(transparent)]
    Load(#[from] SpliceError),
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    #[error("{what}: {source}")]
    Os {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
}

/// How a case came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialResult {
    Ok(String),
    Broken(String),
    /// Could not be found out; never taken for ok.
    Unknown(String),
}

/// What a fault is for the programs that meet it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Ordinary programs could lose bytes or hang: nothing is accelerated.
    Vital,
    /// Bites programs that ask FIONREAD: these are left out.
    Fionread,
    /// Bites programs of which two threads are in calls on one connection: these are left out once seen.
    Shared,
    /// Affects programs that block in a receive: their connections are accelerated only with `--blocking`.
    Waits,
    /// Affects programs that use the named call: reported, since it cannot be seen from outside.
    Said,
}

#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    /// What it means where it is broken.
    pub means: &'static str,
    pub weight: Weight,
    pub outcome: TrialResult,
}

/// All cases, in about a second.
///
/// # Errors
/// Programs cannot be loaded, or no control group can be made.
pub fn all() -> Result<Vec<Case>, TrialError> {
    run(&cases::ALL)
}

/// Those that decide whether, and for which programs, sockets may be redirected.
///
/// # Errors
/// As [`all`].
pub fn deciding() -> Result<Vec<Case>, TrialError> {
    let deciding: Vec<_> = cases::ALL
        .into_iter()
        .filter(|case| !matches!(case.weight, Weight::Said | Weight::Waits) && !case.is_slow)
        .collect();
    run(&deciding)
}

/// The process is in a group of its own meanwhile, so that nobody else's sockets are touched.
fn run(cases: &[cases::Trial]) -> Result<Vec<Case>, TrialError> {
    let group = Group::create("-trial")?;
    let done = within(&group, cases);
    let home = cgroup::enter(&group.home, 0);
    let left = group.leave();
    let done = done?;
    home?;
    left?;
    Ok(done)
}

fn within(group: &Group, cases: &[cases::Trial]) -> Result<Vec<Case>, TrialError> {
    cgroup::enter(&group.path, 0)?;
    let place = Place::new().map_err(|source| TrialError::Os {
        what: "listening for the trial",
        source,
    })?;
    let start = |ports: &[u16]| {
        Accelerator::start(&Options {
            cgroups: vec![group.path.clone()],
            ports: ports.to_vec(),
            connections: 256,
            blocking: true,
            // They are what is tried.
            watches_calls: false,
            ..Options::default()
        })
    };
    let accelerator = start(&place.ports())?;
    let mut done = Vec::new();
    for by_tcp in [false, true] {
        if by_tcp {
            // Connections that were joined before keep their sockets; their bytes take TCP.
            place.prepare(&accelerator)?;
        }
        for trial in cases.iter().filter(|trial| trial.by_tcp == by_tcp) {
            done.push(Case {
                name: trial.name,
                means: trial.means,
                weight: trial.weight,
                outcome: (trial.run)(&place, &accelerator),
            });
        }
    }
    Ok(done)
}
