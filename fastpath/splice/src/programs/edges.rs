//! Readers are told again of what came by TCP while redirected bytes were unread (`bpf/edges.bpf.c`). The kernel's iterator
//! over TCP's sockets goes through one network namespace and locks each of them: it may have to wait, beyond every signal,
//! for a reader that stopped in its call. So it runs in a process of its own, a thread for each time, and nobody waits for
//! it (`crate::edges`).
use super::SpliceError;
use crate::socket_options::netns_cookie;
use hopscope_bpf::object::{self, has_capabilities};
use hopscope_bpf::{BpfError, compiled};
use libbpf_rs::{Iter, Link, MapHandle, Object};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::thread;

static OBJECT: &[u8] = compiled!("edges");
const WHAT: &str = "telling readers of what came by TCP";

/// The whole life of that process: says on stdout that it is ready, or why not, takes the cookies of network namespaces on stdin, a line
/// each, and says each again once all readers there are told, with what stood in the way. `ends`, `gathered`: numbers of
/// the accelerator's maps.
///
/// # Errors
/// The kernel refuses the program, or there is no such map.
pub fn tell(ends: u32, gathered: u32) -> Result<(), SpliceError> {
    let (link, _object) = load(ends, gathered).inspect_err(|error| say(&error.to_string()))?;
    say("ready");
    let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Ok(cookie) = line.parse() else {
            continue;
        };
        threads.retain(|thread| !thread.is_finished());
        match begin(&link, cookie) {
            Ok(iter) => threads.push(thread::spawn(move || finish(iter, cookie))),
            Err(error) => say(&format!("{cookie} {error}")),
        }
    }
    // Whoever asked has gone.
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

/// Nobody may hear it any more.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn load(ends: u32, gathered: u32) -> Result<(Link, Object), SpliceError> {
    let map = |id| MapHandle::from_map_id(id).map_err(SpliceError::bpf(WHAT));
    let maps = [
        ("splice_ends", map(ends)?),
        ("splice_gathered", map(gathered)?),
    ];
    let object = object::load(OBJECT, "splice_edges", has_capabilities, |open| {
        for mut map in open.maps_mut() {
            let named = maps.iter().find(|(name, _)| map.name() == *name);
            if let Some((_, accelerators)) = named {
                map.reuse_fd(accelerators.as_fd())
                    .map_err(BpfError::call(WHAT))?;
            }
        }
        Ok(())
    })?;
    let link = object::program(&object, "edges")?.attach();
    let link = link.map_err(SpliceError::bpf(WHAT))?;
    Ok((link, object))
}

/// An iterator is of the namespace that it is made in, which is found by the processes that are in it. This thread stays in
/// the one that it entered last.
fn begin(link: &Link, cookie: u64) -> Result<Iter, SpliceError> {
    let mut seen = HashSet::new();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = pids.map(|pid| pid.path().join("ns/net"));
    for path in std::iter::once("/proc/thread-self/ns/net".into()).chain(all) {
        // No process, or one that has ended.
        let Ok(namespace) = File::open(path) else {
            continue;
        };
        let is_new = namespace
            .metadata()
            .is_ok_and(|data| seen.insert(data.ino()));
        if is_new && enter(namespace) == Some(cookie) {
            return Iter::new(link).map_err(SpliceError::bpf(WHAT));
        }
    }
    Err(SpliceError::missing(WHAT, "process in a network namespace"))
}

fn enter(namespace: File) -> Option<u64> {
    setns(namespace, CloneFlags::CLONE_NEWNET).ok()?;
    let socket = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    );
    netns_cookie(socket.ok()?).ok()
}

fn finish(mut iter: Iter, cookie: u64) {
    match iter.read_to_end(&mut Vec::new()) {
        Ok(_) => say(&cookie.to_string()),
        Err(error) => say(&format!("{cookie} {}", SpliceError::call(WHAT, error))),
    }
}
