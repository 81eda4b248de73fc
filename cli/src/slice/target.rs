//! What is to be sliced, from what was asked: interface, namespace, process, regions.
use super::args::{Backend, SliceArgs};
use anyhow::{Context, bail, ensure};
use hopscope_event::slice::RegionEntry;
use hopscope_session::slice::{Device, netns};
use hopscope_slice::filter::{Filter, Link};
use hopscope_slice::kinds::cgroup2;
use hopscope_slice::programs::{self, FILTER_INSNS, FILTER_SCRATCH, Options};
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
) -> anyhow::Result<Options> {
    let live = &args.live;
    let mut options = Options::new(regions::with_ends(&regions::points(regions)));
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

/// The expression, as instructions for the kernel; an empty one chooses every packet.
fn choose(options: &mut Options, expression: &str) -> anyhow::Result<()> {
    if !expression.is_empty() {
        let filter = Filter::compile(expression, Link::Network)?;
        options.filter = Some(filter.to_ebpf(FILTER_INSNS, FILTER_SCRATCH)?);
        options.only_tcp = filter.takes_only_tcp();
    }
    Ok(())
}

/// Packets beside measured functions: those of the expression, or, where there is none and it is
/// one process, those of this process.
pub fn beside_functions(
    regions: &[RegionEntry],
    expression: &str,
    pids: &[i32],
) -> anyhow::Result<Options> {
    let tgid = match (expression, pids) {
        ("", [pid]) => u32::try_from(*pid).ok(),
        _ => None,
    };
    let mut options = Options {
        cgroup: cgroup_root()?,
        tgid,
        ..Options::new(regions::with_ends(&regions::points(regions)))
    };
    choose(&mut options, expression)?;
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
    regions_of("--regions", &args.live.regions)
}

/// `name`: what the user gave `option`.
pub fn regions_of(option: &str, name: &str) -> anyhow::Result<Vec<RegionEntry>> {
    if let Some(regions) = regions::preset(name) {
        return Ok(regions);
    }
    let text = std::fs::read_to_string(name).with_context(|| {
        format!("{option} {name}: neither a preset (tx, rx, both, min, seven) nor a file that can be read")
    })?;
    regions::parse(&text).with_context(|| name.to_owned())
}

fn cgroup_root() -> anyhow::Result<PathBuf> {
    cgroup2().context("no cgroup2 file system is mounted, and none can be (mount -t cgroup2 none /sys/fs/cgroup, as root): hooks at sockets need one")
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
