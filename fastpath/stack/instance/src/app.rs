//! Who uses the engine's sockets.
use crate::InstanceError;
use crate::Ns;
use crate::sockets::Sockets;
use hopscope_stack_engine::Event;
use serde::Serialize;

mod chargen;
mod datagrams;
mod discard;
mod echo;
mod http;
mod server;

pub use chargen::Chargen;
pub use datagrams::{DatagramService, Datagrams};
pub use discard::Discard;
pub use echo::Echo;
pub use http::Http;
pub use server::{Next, Server, Service};

/// Bytes that are read or written by one call at most.
pub const PIECE_BYTES: usize = 65_536;

hopscope_event::sums! {
    /// What an app did.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
    pub struct AppCounts {
        pub accepted: u64,
        /// Connections that ended in order, and by an error.
        pub ended: u64,
        pub failed: u64,
        pub bytes_received: u64,
        pub bytes_sent: u64,
        /// Requests that were answered.
        pub answered: u64,
        /// Received bytes that were others than expected; requests that were none.
        pub corrupt: u64,
        pub datagrams_received: u64,
        pub datagrams_sent: u64,
        /// Not answered: they came from the port of another server.
        pub datagrams_refused: u64,
    }
}

pub trait App: Send {
    /// Opens its sockets.
    ///
    /// # Errors
    /// The engine refuses.
    fn start(&mut self, sockets: &mut Sockets<'_>) -> Result<(), InstanceError>;

    /// A socket of its own is ready for something, for the first time since it was not.
    fn event(&mut self, sockets: &mut Sockets<'_>, event: Event);

    /// When [`App::advance`] has something to do.
    fn deadline(&self) -> Option<Ns> {
        None
    }

    fn advance(&mut self, _sockets: &mut Sockets<'_>) {}

    /// Nothing is left to be done.
    fn is_over(&self) -> bool {
        false
    }

    fn counts(&self) -> AppCounts;
}

/// Which server it is, is known at run time.
impl App for Box<dyn App> {
    fn start(&mut self, sockets: &mut Sockets<'_>) -> Result<(), InstanceError> {
        (**self).start(sockets)
    }

    fn event(&mut self, sockets: &mut Sockets<'_>, event: Event) {
        (**self).event(sockets, event);
    }

    fn deadline(&self) -> Option<Ns> {
        (**self).deadline()
    }

    fn advance(&mut self, sockets: &mut Sockets<'_>) {
        (**self).advance(sockets);
    }

    fn is_over(&self) -> bool {
        (**self).is_over()
    }

    fn counts(&self) -> AppCounts {
        (**self).counts()
    }
}
