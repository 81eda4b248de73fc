//! Who uses the engine's sockets.
use crate::InstanceError;
use crate::Ns;
use crate::sockets::Sockets;
use hopscope_eventloop::Poll;
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
        /// Connections, of programs also those that they make, from connect(2) on: `accepted` = `ended` + `failed` + those that are open.
        pub accepted: u64,
        /// Connections that ended in order, also by a shutdown while they connect, and by an error, also one of connecting.
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
        /// Of programs: not sent, or not taken any more; behind what is no header.
        pub datagrams_dropped: u64,
        pub datagrams_malformed: u64,
        /// That attached, and that were sent away.
        pub programs: u64,
        pub programs_refused: u64,
        /// Of programs: calls that failed.
        pub requests_refused: u64,
        /// A connection waited because there was no descriptor, or no row in its program's table.
        pub descriptors_missing: u64,
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

    /// Adds descriptors of its own to the loop's, with this source.
    ///
    /// # Errors
    /// They cannot be watched.
    fn watch(&mut self, _poll: &Poll, _source: u8) -> Result<(), InstanceError> {
        Ok(())
    }

    /// One of them is ready.
    fn ready(&mut self, _sockets: &mut Sockets<'_>) {}

    /// Turns without a look at descriptors, while there is something to do in each.
    fn turns(&self) -> u32 {
        64
    }

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

    fn watch(&mut self, poll: &Poll, source: u8) -> Result<(), InstanceError> {
        (**self).watch(poll, source)
    }

    fn ready(&mut self, sockets: &mut Sockets<'_>) {
        (**self).ready(sockets);
    }

    fn turns(&self) -> u32 {
        (**self).turns()
    }

    fn is_over(&self) -> bool {
        (**self).is_over()
    }

    fn counts(&self) -> AppCounts {
        (**self).counts()
    }
}
