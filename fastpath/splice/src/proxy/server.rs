//! The proxy: its thread, its shutdown, and the summary.
use super::auto::EngineVerdict;
use super::kernel::{Engine, KernelCounts, Reader};
use super::shared::{Phase, Shared};
use super::worker::Worker;
use super::{EngineChoice, ProxyCounts, ProxyError, ProxyPlan};
use crate::echo::listen;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A proxy at work; [`ProxyServer::stop`] ends it.
pub struct ProxyServer {
    address: SocketAddr,
    descriptors: u64,
    no_kernel: Option<String>,
    kernel: Option<Reader>,
    shared: Arc<Shared>,
    /// Until it is waited for.
    thread: Option<JoinHandle<Result<(), ProxyError>>>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ProxyReport {
    #[serde(flatten)]
    pub counts: ProxyCounts,
    /// What the kernel's programs counted; `None` where there are none.
    pub kernel: Option<KernelCounts>,
    /// Why `auto` has one engine only.
    pub kernel_unavailable: Option<String>,
    pub choices_made: u64,
    /// The last of them.
    pub choices: Vec<EngineVerdict>,
}

impl ProxyServer {
    /// Listens and starts the thread; connections are taken from now on.
    ///
    /// # Errors
    /// Where the address cannot be had, or descriptors; and, for the kernel's engine alone, what it
    /// needs of the kernel.
    pub fn start(plan: &ProxyPlan) -> Result<ProxyServer, ProxyError> {
        let descriptors = listen::take_all_descriptors()?;
        let socket = listen::bound_to(plan.listen, plan.v6_only, false)?;
        let address = listen::local_address(&socket)?;
        let mut plan = plan.clone();
        let (engine, no_kernel) = match plan.engine {
            EngineChoice::User => (None, None),
            EngineChoice::Kernel => (Some(Engine::load(&plan)?), None),
            EngineChoice::Auto => match Engine::load(&plan) {
                Ok(engine) => (Some(engine), None),
                Err(error) => {
                    plan.engine = EngineChoice::User;
                    (None, Some(error.to_string()))
                }
            },
        };
        let kernel = match &engine {
            Some(engine) => Some(engine.reader()?),
            None => None,
        };
        let listener = listen::listening_at(address, plan.backlog, socket)?;
        let shared = Arc::new(Shared::new()?);
        let theirs = shared.clone();
        // It is no proxy before its thread watches the listener.
        let (say, said) = std::sync::mpsc::channel();
        let work = move || {
            let worker = Worker::new(plan, listener, engine, &theirs)?;
            // Whoever started it may be gone.
            let _ = say.send(());
            worker.run()
        };
        let thread = std::thread::Builder::new().name("proxy".into()).spawn(work);
        let server = ProxyServer {
            address,
            descriptors,
            no_kernel,
            kernel,
            shared,
            thread: Some(thread.map_err(ProxyError::system("starting a thread"))?),
        };
        match said.recv() {
            Ok(()) => Ok(server),
            // It has failed, and says with what.
            Err(_) => Err(server.stop().err().unwrap_or_else(|| ProxyError::System {
                doing: "starting a thread",
                why: "it ended at once".into(),
            })),
        }
    }

    /// With the port that the kernel chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many this process may have; a connection needs two.
    pub fn descriptors(&self) -> u64 {
        self.descriptors
    }

    /// Why `auto` has one engine only.
    pub fn kernel_unavailable(&self) -> Option<&str> {
        self.no_kernel.as_deref()
    }

    /// Whether the thread has ended: it failed, or had no connections left after [`ProxyServer::drain`].
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Choices since the last call.
    pub fn new_choices(&self) -> Vec<EngineVerdict> {
        self.shared.take_choices()
    }

    /// Accepts no new connections; open ones continue.
    ///
    /// # Errors
    /// The thread cannot be woken.
    pub fn drain(&self) -> Result<(), ProxyError> {
        self.shared.enter(Phase::Drain)
    }

    /// # Errors
    /// The kernel's counters cannot be read.
    pub fn report(&self) -> Result<ProxyReport, ProxyError> {
        let choices = self.shared.choices();
        Ok(ProxyReport {
            counts: self.shared.counters.read(),
            kernel: self.kernel.as_ref().map(Reader::read).transpose()?,
            kernel_unavailable: self.no_kernel.clone(),
            choices_made: choices.made,
            choices: choices.last.iter().cloned().collect(),
        })
    }

    /// Resets the connections that are open; the kernel's programs end with the thread.
    ///
    /// # Errors
    /// What the thread failed with.
    pub fn stop(mut self) -> Result<ProxyReport, ProxyError> {
        self.shared.enter(Phase::End)?;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is a fault of this program: let it be seen as one.
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        self.report()
    }
}
