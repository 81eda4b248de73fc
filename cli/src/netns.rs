//! Ports in other network namespaces.
use anyhow::Context;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::path::PathBuf;

/// Opens something in the namespace of that name or path, or here.
pub(crate) fn within<T: Send>(
    netns: Option<&str>,
    open: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let Some(netns) = netns else {
        return open();
    };
    let path = if netns.contains('/') {
        PathBuf::from(netns)
    } else {
        PathBuf::from("/run/netns").join(netns)
    };
    let file = File::open(&path).with_context(|| format!("--netns {netns}: {}", path.display()))?;
    // Namespaces are the threads' own: this one goes there alone, and ends there.
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            setns(file, CloneFlags::CLONE_NEWNET).with_context(|| format!("entering {netns}"))?;
            open()
        });
        there
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
