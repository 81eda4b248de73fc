//! The server side: one event loop a thread, each with a listener and an accept queue of its own
//! on the common port.
use super::{LoadError, limits, socket};
use crate::kernel_counters::KernelCounters;
use nix::errno::Errno;
use nix::sys::socket::{SockType, SockaddrStorage};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

mod datagrams;
mod peer;
mod stats;
mod worker;

pub use stats::{fetch, publish};

/// What a server does with the bytes that it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Sends them back.
    Echo,
    /// After every `request` bytes sends `response` bytes: the request repeated, or its beginning.
    Respond { request: usize, response: usize },
    /// Takes them; compares them with the stream of this seed.
    Sink { check: Option<u64> },
    /// Takes none and sends the stream of this seed until the client ends the connection.
    Source { seed: u64 },
}

#[derive(Debug, Clone)]
pub struct ServePlan {
    pub listen: SocketAddr,
    /// UDP instead of TCP; the service is then `Echo` or a sink.
    pub datagrams: bool,
    pub service: Service,
    pub threads: usize,
    /// Of each thread's accept queue. The kernel cuts it to net.core.somaxconn.
    pub backlog: i32,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What a server counted since its start.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct ServeCounts { $($(#[$doc])* pub $name: u64),* }

        impl ServeCounts {
            /// What was added since `before`.
            pub fn since(&self, before: &ServeCounts) -> ServeCounts {
                ServeCounts { $($name: self.$name.saturating_sub(before.$name)),* }
            }
        }

        /// One thread's; on cache lines of its own, since others only look now and then.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        struct Counters {
            $($name: AtomicU64,)*
            /// Odd while something is sent and not yet counted.
            sendings: AtomicU64,
        }

        impl Counters {
            fn add_to(&self, sum: &mut ServeCounts) {
                $(sum.$name += self.$name.load(Ordering::Relaxed);)*
            }
        }
    };
}

counts! {
    accepted,
    /// Ended by the client's FIN.
    ended,
    /// Ended by the client's RST.
    reset,
    /// Ended by another error.
    failed,
    /// `accept` failed, most often for want of file descriptors.
    accept_failed,
    /// Datagrams received, over UDP.
    datagrams,
    bytes_received,
    bytes_sent,
    /// Requests that came whole, each answered, where the service knows the size of a request.
    answered,
    /// Connections whose bytes were not those of the seed.
    corrupt,
}

impl Counters {
    /// Sends with `send` and counts how many bytes it took. To whoever has received them both has
    /// happened: see [`Counters::settle`].
    fn sent(&self, send: impl FnOnce() -> std::io::Result<usize>) -> std::io::Result<usize> {
        self.sendings.fetch_add(1, Ordering::AcqRel);
        let sent = send();
        if let Ok(n) = &sent {
            Counters::add(&self.bytes_sent, *n as u64);
        }
        self.sendings.fetch_add(1, Ordering::AcqRel);
        sent
    }

    /// Waits until what is being sent is counted; what is sent from now on may be or not.
    fn settle(&self) {
        let now = self.sendings.load(Ordering::Acquire);
        while now % 2 == 1 && self.sendings.load(Ordering::Acquire) == now {
            // Longer than it takes, unless its thread waits for this one's processor.
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }

    fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

/// A server at work. Dropping it does not end it; [`Server::stop`] does.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    before: Option<KernelCounters>,
    counters: Arc<Vec<Counters>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), LoadError>>>,
}

/// What a server says of itself: its counts, and the kernel's since its start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ServerReport {
    pub counts: ServeCounts,
    pub kernel: Option<KernelCounters>,
}

impl ServerReport {
    /// What was added since `before`, an earlier report of the same server.
    pub fn since(&self, before: &ServerReport) -> ServerReport {
        let kernel = self.kernel.as_ref().zip(before.kernel.as_ref());
        ServerReport {
            counts: self.counts.since(&before.counts),
            kernel: kernel.map(|(now, then)| now.since(then)),
        }
    }
}

impl Server {
    /// Listens and starts the threads; connections are accepted from now on.
    ///
    /// # Errors
    /// Where the address cannot be had, or descriptors or threads.
    pub fn start(plan: &ServePlan) -> Result<Server, LoadError> {
        let refuse = |errno| LoadError::Listen {
            listen: plan.listen,
            errno,
        };
        let kind = if plan.datagrams {
            SockType::Datagram
        } else {
            SockType::Stream
        };
        // Sockets that share a port do not mind others that share it too: a second server there
        // would take half of the connections. One that does not share is refused.
        let alone = socket::bound(plan.listen, kind, false).map_err(refuse)?;
        let address = local_address(&alone).map_err(refuse)?;
        drop(alone);
        let before = KernelCounters::now().ok();
        let (stop, mut threads) = (Arc::new(AtomicBool::new(false)), Vec::new());
        let counters: Vec<Counters> = (0..plan.threads).map(|_| Counters::default()).collect();
        let counters = Arc::new(counters);
        let mut sockets = Vec::new();
        for _ in 0..plan.threads {
            let fd = socket::bound(address, kind, true).map_err(refuse)?;
            if !plan.datagrams {
                socket::listen(&fd, plan.backlog).map_err(refuse)?;
            }
            sockets.push(fd);
        }
        for (number, fd) in sockets.into_iter().enumerate() {
            let (counters, stop) = (counters.clone(), stop.clone());
            let (service, datagrams) = (plan.service, plan.datagrams);
            let work = move || {
                if datagrams {
                    datagrams::run(fd.into(), service, &counters[number], &stop)
                } else {
                    worker::run(fd.into(), service, &counters[number], &stop)
                }
            };
            let spawned = std::thread::Builder::new().spawn(work);
            threads.push(spawned.map_err(LoadError::Thread)?);
        }
        Ok(Server {
            address,
            before,
            counters,
            stop,
            threads,
        })
    }

    /// With the port that the kernel chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whoever has an answer finds it counted.
    pub fn report(&self) -> ServerReport {
        let mut counts = ServeCounts::default();
        for counters in self.counters.iter() {
            counters.settle();
            counters.add_to(&mut counts);
        }
        let now = KernelCounters::now().ok();
        ServerReport {
            counts,
            kernel: now
                .zip(self.before.as_ref())
                .map(|(now, then)| now.since(then)),
        }
    }

    /// Whether a thread has ended by itself: it failed.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends all threads and connections.
    ///
    /// # Errors
    /// What a thread failed with, the first of them.
    pub fn stop(mut self) -> Result<ServerReport, LoadError> {
        // What ending the connections does to the kernel's counts is no client's doing.
        let kernel = self.report().kernel;
        self.stop.store(true, Ordering::Relaxed);
        for thread in std::mem::take(&mut self.threads) {
            // A panic of a thread is a fault of this program: let it be seen as one.
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(ServerReport {
            kernel,
            ..self.report()
        })
    }
}

fn local_address(fd: &OwnedFd) -> Result<SocketAddr, Errno> {
    let address: SockaddrStorage = nix::sys::socket::getsockname(fd.as_raw_fd())?;
    let v4 = address
        .as_sockaddr_in()
        .map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    let v6 = address
        .as_sockaddr_in6()
        .map(|v6| SocketAddr::from((v6.ip(), v6.port())));
    v4.or(v6).ok_or(Errno::EAFNOSUPPORT)
}

/// Takes as many file descriptors as this process may have; gives that number.
///
/// # Errors
/// Where the limit cannot be read or set.
pub fn take_all_descriptors() -> Result<u64, LoadError> {
    limits::take_all_descriptors()
}
