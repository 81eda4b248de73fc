//! What is to be sliced, from what was asked: interface, namespace, process, regions.
use super::args::{Backend, SliceArgs};
use anyhow::{Context, bail, ensure};
use hopscope_event::slice::RegionEntry;
use hopscope_session::slice::{Device, cgroup_root, choose, netns, regions_of};
use hopscope_slice::programs::{self, SlicerOptions};
use hopscope_slice::regions;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use std::path::{Path, PathBuf};

/// Bytes that a packet's record can have beside it: what the kernel programs keep room for.
const SNAP_MAX: usize = 2048;

/// The device that `-i` names.
///
/// # Errors
/// There is none.
pub(super) fn device(args: &SliceArgs) -> anyhow::Result<Option<Device>> {
    match args.live.interface.as_deref() {
        None | Some("any") => Ok(None),
        Some(name) => Ok(Some(Device::find(name, args.live.netns.as_deref())?)),
    }
}

/// `tgid`: of the command that was started, if one was.
pub(super) fn options(
    args: &SliceArgs,
    regions: &[RegionEntry],
    device: Option<&Device>,
    tgid: Option<u32>,
) -> anyhow::Result<SlicerOptions> {
    let live = &args.live;
    let mut options = SlicerOptions::new(regions::with_ends(&regions::points(regions)));
    options.backend = match live.backend {
        Backend::Auto => None,
        Backend::Fentry => Some(programs::Backend::Fentry),
        Backend::Tracepoint => Some(programs::Backend::Tracepoint),
        Backend::Raw => Some(programs::Backend::Raw),
    };
    options.event = programs::event(&live.event)?;
    options.slots = live.slots;
    options.cgroup = match &live.cgroup {
        Some(path) => cgroup(path)?,
        None => cgroup_root()?,
    };
    options.ifindex = device.map(Device::ifindex);
    let namespace = live.netns.as_deref().map(netns).transpose()?;
    options.netns = namespace.map(|(inode, _)| inode);
    options.tgid = match (&args.choice.pid[..], tgid) {
        ([], tgid) => tgid,
        ([pid], None) => Some(*pid),
        ([_], Some(_)) => bail!("give -- COMMAND or --pid, not both"),
        _ => bail!("the kernel programs follow one process: give --pid once, and several with -r"),
    };
    if let Some(comm) = &args.choice.comm {
        ensure!(
            comm.len() < 16,
            "--comm {comm}: a thread's name has 15 bytes at most"
        );
        options.comm = Some(comm.clone());
    }
    if let Some(min) = args.choice.min_latency {
        options.min_latency_ns = u64::try_from(min.as_nanos()).context("--min-latency")?;
    }
    choose(&mut options, &args.expression.join(" "))?;
    options.snap = snap(args)?;
    Ok(options)
}

/// As tcpdump: all of a packet when it is written or shown, as far as the kernel programs keep it.
fn snap(args: &SliceArgs) -> anyhow::Result<u32> {
    let shown = &args.shown;
    let shows = shown.link || shown.hex > 0 || shown.hex_ascii > 0 || shown.ascii > 0;
    let asked = args.live.snaplen;
    if let Some(asked) = asked.filter(|asked| *asked > SNAP_MAX) {
        log::warn!("-s {asked}: captures the first {SNAP_MAX} bytes of each packet");
    }
    let snap = match (asked, shows || args.files.write.is_some()) {
        // 0 is tcpdump's word for as much as there can be.
        (Some(0), _) | (None, true) => SNAP_MAX,
        (Some(asked), _) => asked.min(SNAP_MAX),
        (None, false) => 0,
    };
    Ok(snap as u32)
}

pub fn regions(args: &SliceArgs) -> anyhow::Result<Vec<RegionEntry>> {
    Ok(regions_of("--regions", &args.live.regions)?)
}

/// Without it the hooks at sockets would be left out in silence.
fn cgroup(path: &Path) -> anyhow::Result<PathBuf> {
    let found = statfs(path).with_context(|| format!("--cgroup {}", path.display()))?;
    ensure!(
        found.filesystem_type() == CGROUP2_SUPER_MAGIC,
        "--cgroup {}: not a group of a cgroup2 file system",
        path.display()
    );
    Ok(path.to_owned())
}
