//! Readers are told again of what came by TCP while redirected bytes were unread (`bpf/edges.bpf.c`). The kernel's iterator
//! over TCP's sockets goes through one network namespace and locks each of them: on a thread of its own, which may have to
//! wait for a reader that stopped in its call. It shares no descriptors: the keeper waits for the last one of a pipe.
use super::SpliceError;
use super::ends::run;
use crate::socket_options::netns_cookie;
use hopscope_bpf::object::{self, has_capabilities};
use hopscope_bpf::{BpfError, compiled};
use libbpf_rs::{Link, Object};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::close;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

static OBJECT: &[u8] = compiled!("edges");
const WHAT: &str = "telling readers of what came by TCP";

/// Cookies of network namespaces.
type Namespaces = HashSet<u64>;

/// Its thread ends with it, once it waits for nothing.
pub struct Edges {
    wanted: Sender<Namespaces>,
    done: Receiver<Result<(), SpliceError>>,
    is_busy: bool,
}

impl Edges {
    /// `map`: of ends.
    pub(super) fn of(map: BorrowedFd<'_>) -> Result<Edges, SpliceError> {
        let map = map.try_clone_to_owned();
        let map = map.map_err(|error| SpliceError::call(WHAT, error))?;
        let (wanted, wants) = mpsc::channel::<Namespaces>();
        let (finished, done) = mpsc::channel();
        let (began, beginning) = mpsc::channel();
        thread::spawn(move || {
            let (link, _object) = match alone_with(&map).and_then(|()| load(&map)) {
                Ok(loaded) => loaded,
                Err(error) => return began.send(Err(error)).is_ok(),
            };
            let _ = began.send(Ok(()));
            // Either end is gone where the accelerator is.
            wants.iter().all(|namespaces| {
                let given = give(&link, namespaces);
                finished.send(given).is_ok()
            })
        });
        let begun = beginning.recv();
        begun.unwrap_or_else(|_| Err(SpliceError::missing(WHAT, "thread")))?;
        Ok(Edges {
            wanted,
            done,
            is_busy: false,
        })
    }

    /// Whether it still does what it was told last.
    pub fn is_busy(&mut self) -> bool {
        if let Ok(given) = self.done.try_recv() {
            self.is_busy = false;
            if let Err(error) = given {
                log::warn!("{error}: readers that wait for edges (EPOLLET) may not see it");
            }
        }
        self.is_busy
    }

    /// Tells the readers of all ends there that have something to read by TCP and no redirected bytes before it. While it
    /// is busy nothing is told.
    pub fn give(&mut self, namespaces: Namespaces) {
        self.is_busy |= !self.is_busy() && self.wanted.send(namespaces).is_ok();
    }
}

fn load(ends: &OwnedFd) -> Result<(Link, Object), SpliceError> {
    let object = object::load(OBJECT, "splice_edges", has_capabilities, |open| {
        let is_ends = |name: &std::ffi::OsStr| name == "splice_ends";
        for mut map in open.maps_mut().filter(|map| is_ends(map.name())) {
            map.reuse_fd(ends.as_fd()).map_err(BpfError::call(WHAT))?;
        }
        Ok(())
    })?;
    let link = object::program(&object, "edges")?.attach();
    let link = link.map_err(SpliceError::bpf(WHAT))?;
    Ok((link, object))
}

/// This thread's table of descriptors is its own from here on, and has no other one.
fn alone_with(map: &OwnedFd) -> Result<(), SpliceError> {
    let failed = |error: io::Error| SpliceError::call(WHAT, error);
    unshare(CloneFlags::CLONE_FILES).map_err(|errno| failed(errno.into()))?;
    let all = std::fs::read_dir("/proc/thread-self/fd").map_err(failed)?;
    let names: Vec<_> = all.flatten().map(|entry| entry.file_name()).collect();
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    for number in numbers.filter(|number: &i32| *number != map.as_raw_fd()) {
        // That of the folder is closed already.
        let _ = close(number);
    }
    Ok(())
}

/// A namespace is found by the processes that are in it. This thread stays in the one that it entered last.
fn give(link: &Link, mut wanted: Namespaces) -> Result<(), SpliceError> {
    let mut seen = HashSet::new();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = pids.map(|pid| pid.path().join("ns/net"));
    for path in std::iter::once("/proc/self/ns/net".into()).chain(all) {
        if wanted.is_empty() {
            return Ok(());
        }
        // No process, or one that has ended.
        let Ok(namespace) = File::open(path) else {
            continue;
        };
        let is_new = namespace
            .metadata()
            .is_ok_and(|data| seen.insert(data.ino()));
        let entered = is_new.then(|| enter(namespace)).flatten();
        if entered.is_some_and(|cookie| wanted.remove(&cookie)) {
            run(link, WHAT)?;
        }
    }
    match wanted.is_empty() {
        true => Ok(()),
        false => Err(SpliceError::missing(WHAT, "process in a network namespace")),
    }
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
