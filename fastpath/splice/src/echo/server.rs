//! The server: its threads, their shutdown, and the summary.
use super::counts::Counters;
use super::kernel::{Engine, KernelCounts};
use super::worker::Worker;
use super::{EchoCounts, EchoError, EchoPlan, Mode, listen, uring};
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::Serialize;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A server at work; [`EchoServer::stop`] ends it.
pub struct EchoServer {
    address: SocketAddr,
    descriptors: u64,
    counters: Arc<Vec<Counters>>,
    kernel: Option<super::kernel::Reader>,
    stop: Arc<EventFd>,
    threads: Vec<JoinHandle<Result<(), EchoError>>>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct EchoReport {
    #[serde(flatten)]
    pub counts: EchoCounts,
    /// What the kernel's programs counted; `None` where there are none.
    pub kernel: Option<KernelCounts>,
}

impl EchoServer {
    /// Listens and starts the threads; connections are served from now on.
    ///
    /// # Errors
    /// Where the address cannot be had, descriptors or threads, or what the mode needs of the kernel.
    pub fn start(plan: &EchoPlan) -> Result<EchoServer, EchoError> {
        let descriptors = listen::take_all_descriptors()?;
        let sockets = listen::bound_sockets(plan)?;
        let first = sockets.first().ok_or(EchoError::System {
            doing: "starting a server",
            why: "it needs a thread".into(),
        })?;
        let address = listen::local_address(first)?;
        let stop = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC);
        let stop = Arc::new(stop.map_err(EchoError::system("making an eventfd"))?);
        let counters: Vec<Counters> = sockets.iter().map(|_| Counters::default()).collect();
        let mut server = EchoServer {
            address,
            descriptors,
            counters: Arc::new(counters),
            kernel: None,
            stop,
            threads: Vec::new(),
        };
        for (number, socket) in sockets.into_iter().enumerate() {
            server.thread(plan, number, socket)?;
        }
        Ok(server)
    }

    fn thread(&mut self, plan: &EchoPlan, number: usize, socket: OwnedFd) -> Result<(), EchoError> {
        let (counters, stop) = (self.counters.clone(), self.stop.clone());
        let is_uring = plan.mode == Mode::Uring;
        // What the kernel refuses is said before the server is.
        let engine = match plan.mode {
            Mode::Kernel => {
                let (kernel, v6_only) = (&plan.kernel, plan.v6_only);
                Some(Engine::load(kernel, &socket, self.address, v6_only)?)
            }
            _ => None,
        };
        let listener = listen::listening(plan, socket)?;
        if let Some(engine) = &engine {
            self.kernel = Some(engine.reader()?);
        }
        // A ring belongs to the thread that makes it, and the server is none before it is there.
        let (say, said) = std::sync::mpsc::channel();
        let work = move || {
            if !is_uring {
                let worker = Worker::new(listener, engine, &stop, &counters[number]);
                let _ = say.send(Ok(()));
                return worker?.run();
            }
            match uring::ring() {
                Ok(ring) => {
                    let _ = say.send(Ok(()));
                    uring::run(ring, listener, &stop, &counters[number])
                }
                Err(error) => {
                    let _ = say.send(Err(error));
                    Ok(())
                }
            }
        };
        let thread = std::thread::Builder::new().name("echo".into()).spawn(work);
        self.threads
            .push(thread.map_err(EchoError::system("starting a thread"))?);
        said.recv().unwrap_or_else(|_| {
            Err(EchoError::System {
                doing: "starting a thread",
                why: "it ended at once".into(),
            })
        })
    }

    /// With the port that the kernel chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many this process may have.
    pub fn descriptors(&self) -> u64 {
        self.descriptors
    }

    /// Whether a thread has ended by itself: it failed.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// # Errors
    /// The kernel's counters cannot be read.
    pub fn report(&self) -> Result<EchoReport, EchoError> {
        let mut counts = EchoCounts::default();
        for counters in self.counters.iter() {
            counters.add_to(&mut counts);
        }
        let kernel = match &self.kernel {
            Some(reader) => Some(reader.read()?),
            None => None,
        };
        Ok(EchoReport { counts, kernel })
    }

    /// Ends all threads and connections; the kernel's programs end with the last of them.
    ///
    /// # Errors
    /// What a thread failed with, the first of them.
    pub fn stop(mut self) -> Result<EchoReport, EchoError> {
        self.stop
            .write(1)
            .map_err(EchoError::system("stopping threads"))?;
        for thread in std::mem::take(&mut self.threads) {
            // A panic of a thread is a fault of this program: let it be seen as one.
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        self.report()
    }
}
