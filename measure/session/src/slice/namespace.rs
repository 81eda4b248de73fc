//! Network namespaces and their interfaces.
use crate::error::{Context, Result};
use hopscope_event::slice::InterfaceEntry;
use hopscope_slice::interfaces;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `None`: this namespace, which takes no privileges.
pub fn interfaces_of(which: Option<&str>) -> Result<Vec<InterfaceEntry>> {
    let Some(which) = which else {
        let here = nix::net::if_::if_nameindex().with_context(|| "interfaces here")?;
        let entry = |interface: &nix::net::if_::Interface| InterfaceEntry {
            netns: 0,
            ifindex: interface.index(),
            name: interface.name().to_string_lossy().into_owned(),
        };
        return Ok(here.iter().map(entry).collect());
    };
    let (inode, path) = netns(which)?;
    let there = interfaces::of_namespace(inode, path);
    there.with_context(|| format!("--netns {which}: its interfaces"))
}

/// Inode and path of a namespace, by its path, its name in `ip netns`, or a process.
pub fn netns(which: &str) -> Result<(u32, PathBuf)> {
    let path = match which {
        _ if which.contains('/') => PathBuf::from(which),
        _ if which.bytes().all(|b| b.is_ascii_digit()) => {
            PathBuf::from(format!("/proc/{which}/ns/net"))
        }
        _ => Path::new("/run/netns").join(which),
    };
    let found = std::fs::metadata(&path);
    let found = found.with_context(|| format!("--netns {which}: {}", path.display()))?;
    Ok((found.ino() as u32, path))
}
