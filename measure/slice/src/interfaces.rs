//! Names of interfaces in every network namespace that can be found: a packet's way may lead through
//! several, and numbers of interfaces are each namespace's own.
use hopscope_event::slice::InterfaceEntry;
use nix::net::if_::if_nameindex;
use nix::sched::{CloneFlags, setns};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// More are left without names: their interfaces are shown by number.
const NAMESPACES_MAX: usize = 1024;

/// Of the namespaces of all processes, and of those that `ip netns` knows.
pub fn names() -> Vec<InterfaceEntry> {
    let mut found: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let is_process = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
    };
    let of_processes = children("/proc").filter(is_process);
    let of_processes = of_processes.map(|path| path.join("ns/net"));
    for path in of_processes.chain(children("/run/netns")) {
        if found.len() < NAMESPACES_MAX
            && let Ok(namespace) = fs::metadata(&path)
        {
            found.entry(namespace.ino()).or_insert(path);
        }
    }
    let each = found
        .into_iter()
        // None where it may not be entered, or where the namespace is gone by now.
        .map(|(inode, path)| of_namespace(inode as u32, path).unwrap_or_default());
    each.flatten().collect()
}

fn children(of: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

/// A thread of its own goes there: namespaces are the threads' own.
///
/// # Errors
/// It may not, or the namespace is gone by now.
pub fn of_namespace(netns: u32, path: PathBuf) -> std::io::Result<Vec<InterfaceEntry>> {
    let there = std::thread::spawn(move || {
        setns(File::open(path)?, CloneFlags::CLONE_NEWNET)?;
        let interfaces = if_nameindex()?;
        let named = interfaces.iter().map(|interface| InterfaceEntry {
            netns,
            ifindex: interface.index(),
            name: interface.name().to_string_lossy().into_owned(),
        });
        std::io::Result::Ok(named.collect())
    });
    there
        .join()
        .unwrap_or_else(|_| Err(std::io::Error::other("its thread ended early")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_namespace_has_a_loopback_device() {
        let here = fs::metadata("/proc/self/ns/net").unwrap().ino() as u32;
        let names = names();
        // Entering one's own namespace takes privileges too.
        if nix::unistd::geteuid().is_root() {
            assert!(
                names
                    .iter()
                    .any(|i| i.netns == here && i.name == "lo" && i.ifindex == 1)
            );
        } else {
            assert!(names.is_empty());
        }
    }
}
