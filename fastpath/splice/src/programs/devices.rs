//! Devices at which a FIN is made the reset that TCP would have sent (`bpf/resets.h`): those by which connections that
//! take part send. A device is a number in a network namespace, which is found by the processes that are in it.
use super::{End, SpliceError};
use crate::socket_options::netns_cookie;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// LOOPBACK_IFINDEX of include/net/net_namespace.h.
const LOOPBACK: u32 = 1;
/// Between two looks whether devices are still there.
const LOOK: Duration = Duration::from_secs(1);
/// Between two trials of one that could not be watched, at least; and so many times what a trial takes.
const AGAIN: Duration = Duration::from_millis(100);
const AGAIN_SHARE: u32 = 50;
const WHAT: &str = "watching a device for connections that end";

/// Cookie of a network namespace, and a device's number there.
type Device = (u64, u32);

pub(super) struct Devices {
    watched: HashMap<Device, OwnedFd>,
    /// When they are tried again.
    failed: HashMap<Device, Instant>,
    looked: Instant,
}

impl Devices {
    /// With the loopback device of this process's network namespace.
    ///
    /// # Errors
    /// The kernel attaches no such program (before Linux 6.6), or that is not allowed.
    pub(super) fn start(program: BorrowedFd<'_>) -> Result<Devices, SpliceError> {
        let own = File::open("/proc/thread-self/ns/net").map_err(failed)?;
        let (cookie, link) = inside(own, |cookie| Ok((cookie, attach(program, LOOPBACK)?)))?;
        Ok(Devices {
            watched: HashMap::from([((cookie, LOOPBACK), link)]),
            failed: HashMap::new(),
            looked: Instant::now(),
        })
    }

    /// Has those of all ends watched, and marks ends whose device cannot be. `pids`: processes that may have made them.
    /// Why one cannot be watched is returned with each trial.
    pub(super) fn look(
        &mut self,
        program: BorrowedFd<'_>,
        ends: &mut [End],
        pids: impl Fn() -> Vec<u32>,
    ) -> Vec<SpliceError> {
        let begun = Instant::now();
        self.failed.retain(|_, next| *next > begun);
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.watched.retain(|_, link| is_attached(link));
        }
        let mut errors = Vec::new();
        for end in ends {
            let device = (end.netns, end.device);
            if self.watched.contains_key(&device) {
                continue;
            }
            if end.device != 0 && !self.failed.contains_key(&device) {
                let begun = Instant::now();
                match watch(program, device, &pids()) {
                    Ok(link) => {
                        self.watched.insert(device, link);
                        continue;
                    }
                    Err(error) => {
                        let pause = AGAIN.max(begun.elapsed() * AGAIN_SHARE);
                        self.failed.insert(device, Instant::now() + pause);
                        errors.push(error);
                    }
                }
            }
            end.flags |= End::FIN_UNSEEN;
        }
        errors
    }
}

fn failed(error: impl Into<io::Error>) -> SpliceError {
    SpliceError::call(WHAT, error.into())
}

/// A namespace that cannot be entered may be another one: the search goes on behind it.
fn watch(program: BorrowedFd<'_>, device: Device, pids: &[u32]) -> Result<OwnedFd, SpliceError> {
    let mut why = SpliceError::missing(WHAT, "process in its network namespace");
    let mut seen = HashSet::new();
    let all = pids.iter().map(|pid| format!("/proc/{pid}/ns/net"));
    for path in ["/proc/self/ns/net".to_owned()].into_iter().chain(all) {
        // It may have ended.
        let Ok(namespace) = File::open(path) else {
            continue;
        };
        if !seen.insert(namespace.metadata().map_err(failed)?.ino()) {
            continue;
        }
        let link = inside(namespace, |cookie| {
            let attached = (cookie == device.0).then(|| attach(program, device.1));
            attached.transpose()
        });
        match link {
            Ok(Some(link)) => return Ok(link),
            Ok(None) => {}
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// On a thread of its own: it stays in the namespace that it enters.
fn inside<T: Send>(
    namespace: File,
    run: impl FnOnce(u64) -> Result<T, SpliceError> + Send,
) -> Result<T, SpliceError> {
    std::thread::scope(|scope| {
        let entered = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET).map_err(failed)?;
            let socket = socket(
                AddressFamily::Inet,
                SockType::Datagram,
                SockFlag::SOCK_CLOEXEC,
                None,
            );
            run(netns_cookie(socket.map_err(failed)?).map_err(failed)?)
        });
        let ended = entered.join();
        ended.unwrap_or_else(|_| Err(SpliceError::missing(WHAT, "result of its thread")))
    })
}

/// After other programs there, whose verdicts it keeps. It is detached with its last descriptor.
fn attach(program: BorrowedFd<'_>, device: u32) -> Result<OwnedFd, SpliceError> {
    // SAFETY: without options the call takes numbers only.
    let link = unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            device.cast_signed(),
            libbpf_sys::BPF_TCX_EGRESS,
            std::ptr::null(),
        )
    };
    if link < 0 {
        return Err(failed(io::Error::from_raw_os_error(-link)));
    }
    // SAFETY: it was opened above, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Its device is still there: the kernel says 0 of one that is gone (tcx_link_fill_info, kernel/bpf/tcx.c).
fn is_attached(link: &OwnedFd) -> bool {
    let mut info = libbpf_sys::bpf_link_info::default();
    let mut bytes = size_of::<libbpf_sys::bpf_link_info>() as u32;
    // SAFETY: `info` has room for `bytes`.
    let error = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(link.as_raw_fd(), (&raw mut info).cast(), &raw mut bytes)
    };
    // SAFETY: of a link of tcx this is the part that the kernel writes; all of its bits are numbers.
    error == 0 && unsafe { info.__bindgen_anon_1.tcx.ifindex } != 0
}
