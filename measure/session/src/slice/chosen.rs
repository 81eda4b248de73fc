//! What the kernel programs are to follow: packets by an expression, and where of their path they are stamped.
use crate::error::{Context, Result};
use hopscope_event::slice::RegionEntry;
use hopscope_slice::filter::{Filter, Link};
use hopscope_slice::kinds::cgroup2;
use hopscope_slice::programs::{FILTER_INSNS, FILTER_SCRATCH, SlicerOptions};
use hopscope_slice::regions;
use std::path::PathBuf;

/// The expression, as instructions for the kernel; an empty one chooses every packet.
///
/// # Errors
/// The expression is not understood, or is too long for the kernel programs.
pub fn choose(options: &mut SlicerOptions, expression: &str) -> Result<()> {
    if !expression.is_empty() {
        let filter = Filter::compile(expression, Link::Network)?;
        options.filter = Some(filter.to_ebpf(FILTER_INSNS, FILTER_SCRATCH)?);
        options.only_tcp = filter.takes_only_tcp();
    }
    Ok(())
}

/// Packets beside measured functions: those of the expression, or, where there is none and it is
/// one process, those of this process.
///
/// # Errors
/// As [`choose`] and [`cgroup_root`].
pub fn beside_functions(
    regions: &[RegionEntry],
    expression: &str,
    pids: &[i32],
) -> Result<SlicerOptions> {
    let tgid = match (expression, pids) {
        ("", [pid]) => u32::try_from(*pid).ok(),
        _ => None,
    };
    let mut options = SlicerOptions {
        cgroup: cgroup_root()?,
        tgid,
        ..SlicerOptions::new(regions::with_ends(&regions::points(regions)))
    };
    choose(&mut options, expression)?;
    Ok(options)
}

/// `name`: what the user gave `option`, a preset or a file.
///
/// # Errors
/// It is neither.
pub fn regions_of(option: &str, name: &str) -> Result<Vec<RegionEntry>> {
    if let Some(regions) = regions::preset(name) {
        return Ok(regions);
    }
    let text = std::fs::read_to_string(name).with_context(|| {
        format!("{option} {name}: neither a preset (tx, rx, both, min, seven) nor a file that can be read")
    })?;
    regions::parse(&text).with_context(|| name.to_owned())
}

/// # Errors
/// None is mounted.
pub fn cgroup_root() -> Result<PathBuf> {
    cgroup2().with_context(|| "no cgroup2 file system is mounted, and none can be (mount -t cgroup2 none /sys/fs/cgroup, as root): hooks at sockets need one")
}
