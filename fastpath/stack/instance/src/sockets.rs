//! The engine's sockets as an app sees them: at one time, with what it reads and writes recorded.
use crate::Ns;
use crate::events::What;
use hopscope_serving::events::EventLog;
use hopscope_stack_engine::{Engine, HowToShut, RecvFlags, SendFlags, SocketError, SocketId};
use std::net::SocketAddr;

pub struct Sockets<'a> {
    pub engine: &'a mut Engine,
    pub now: Ns,
    pub(crate) log: &'a mut EventLog,
}

impl Sockets<'_> {
    /// # Errors
    /// As [`Engine::recv`].
    pub fn recv(&mut self, id: SocketId, into: &mut [u8]) -> Result<usize, SocketError> {
        self.log.begin(What::Read);
        let done = self.engine.recv(self.now, id, into, RecvFlags::default());
        self.log.end(What::Read, count(done));
        done
    }

    /// Reads and leaves what was read where it is.
    ///
    /// # Errors
    /// As [`Engine::recv`].
    pub fn peek(&mut self, id: SocketId, into: &mut [u8]) -> Result<usize, SocketError> {
        self.log.begin(What::Read);
        let flags = RecvFlags {
            peek: true,
            ..RecvFlags::default()
        };
        let done = self.engine.recv(self.now, id, into, flags);
        self.log.end(What::Read, count(done));
        done
    }

    /// Takes as many bytes as `most` is long, without a copy.
    ///
    /// # Errors
    /// As [`Engine::recv`].
    pub fn discard(&mut self, id: SocketId, most: &mut [u8]) -> Result<usize, SocketError> {
        let flags = RecvFlags {
            truncate: true,
            ..RecvFlags::default()
        };
        self.log.begin(What::Read);
        let done = self.engine.recv(self.now, id, most, flags);
        self.log.end(What::Read, count(done));
        done
    }

    /// # Errors
    /// As [`Engine::send`].
    pub fn send(&mut self, id: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        self.log.begin(What::Write);
        let done = self.engine.send(self.now, id, bytes, SendFlags::default());
        self.log.end(What::Write, count(done));
        done
    }

    /// The oldest datagram, which stays, and whose it is.
    ///
    /// # Errors
    /// As [`Engine::recv_from`].
    pub fn peek_from(
        &mut self,
        id: SocketId,
        into: &mut [u8],
    ) -> Result<(usize, SocketAddr), SocketError> {
        self.log.begin(What::Read);
        let flags = RecvFlags {
            peek: true,
            ..RecvFlags::default()
        };
        let done = self.engine.recv_from(id, into, flags);
        self.log.end(What::Read, count(done.map(|(len, _)| len)));
        done
    }

    /// Throws the oldest datagram away, if there is one.
    pub fn discard_from(&mut self, id: SocketId) {
        let _ = self.engine.recv_from(id, &mut [], RecvFlags::default());
    }

    /// # Errors
    /// As [`Engine::send_to`].
    pub fn send_to(
        &mut self,
        id: SocketId,
        bytes: &[u8],
        peer: SocketAddr,
    ) -> Result<usize, SocketError> {
        self.log.begin(What::Write);
        let done = self.engine.send_to(self.now, id, bytes, Some(peer));
        self.log.end(What::Write, count(done));
        done
    }

    /// The other end reads the end of the stream.
    pub fn end_of_stream(&mut self, id: SocketId) {
        // A connection that is gone needs no end.
        let _ = self.engine.shutdown(self.now, id, HowToShut::Write);
    }

    pub fn close(&mut self, id: SocketId) {
        // Of an id of ours, which is valid until here.
        let _ = self.engine.close(self.now, id);
    }
}

/// Of nothing nothing is recorded.
fn count(done: Result<usize, SocketError>) -> u64 {
    done.unwrap_or(0) as u64
}
