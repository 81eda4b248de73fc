//! send(2) and recv(2).
use super::state::Connection;
use crate::buffer::{LEAST_BYTES, Pool};
use crate::info::TcpState;
use crate::tcp::context::Context;
use crate::tcp::seq::Seq;
use crate::{Readiness, RecvFlags, SendFlags, SocketError};

impl Connection {
    /// # Errors
    /// WouldBlock, BrokenPipe, or the connection's error, once.
    pub(crate) fn send(
        &mut self,
        cx: &mut Context,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Result<usize, SocketError> {
        if self.error.is_some() || self.shut_write {
            return Err(self.error.take().unwrap_or(SocketError::BrokenPipe));
        }
        if bytes.is_empty() {
            // What MSG_MORE held back is still held back.
            return Ok(0);
        }
        let room = self.low_water().saturating_sub(self.unsent_bytes()) as usize;
        self.moderate(cx.pool);
        let limit = (self.send_limit() as usize).min(self.send.buffer.len().saturating_add(room));
        let taken = self.send.buffer.append(cx.pool, bytes, limit);
        cx.count_pressures();
        if taken < bytes.len() && self.send.buffer.len() < limit {
            cx.counters.memory_limit_drop += 1;
        }
        self.send.end += taken as u32;
        self.send.more = flags.more && taken == bytes.len();
        self.send.hold = self.send.more;
        self.send.no_space = !self.is_writable();
        self.note_limit(cx.now);
        if taken == 0 && !bytes.is_empty() {
            self.send.no_space = true;
            return Err(SocketError::WouldBlock);
        }
        Ok(taken)
    }

    /// TCP_NOTSENT_LOWAT: so much may wait.
    fn low_water(&self) -> u32 {
        match self.options.not_sent_low_water {
            0 => u32::MAX,
            bytes => bytes,
        }
    }

    fn send_limit(&self) -> u32 {
        let limit = self.options.send_buffer.unwrap_or(self.send.limit);
        limit.min(self.send.pressed_limit)
    }

    /// Under pressure a buffer is not filled with what could not go out now (Linux sk_stream_moderate_sndbuf): a peer that does not read holds the
    /// least, one that does has what its window and cwnd let out, up to its share.
    fn moderate(&mut self, pool: &Pool) {
        self.send.pressed_limit = if pool.is_under_pressure() {
            let goes_out = u64::from(self.send.window.min(self.sender.cwnd()));
            (goes_out.min(pool.share_bytes()) as u32).max(LEAST_BYTES)
        } else {
            u32::MAX
        };
    }

    /// There was no memory at all, and nothing is in the buffer whose acknowledgement would wake the writer.
    pub(crate) fn is_starved(&self, pool: &Pool) -> bool {
        self.send.no_space && self.send.buffer.len() == 0 && pool.is_empty()
    }

    /// A third of the buffer is free (Linux sk_stream_is_writeable), and less than half of TCP_NOTSENT_LOWAT waits.
    pub(crate) fn is_writable(&self) -> bool {
        if self.send.starved {
            return false;
        }
        let len = self.send.buffer.len() as u32;
        let free = self.send_limit().saturating_sub(len);
        free >= len / 2 && u64::from(self.unsent_bytes()) * 2 < u64::from(self.low_water())
    }

    /// # Errors
    /// WouldBlock, or the connection's error, once.
    pub(crate) fn recv(
        &mut self,
        cx: &mut Context,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> Result<usize, SocketError> {
        if self.receive.buffer.readable() == 0 {
            return self.nothing_to_read();
        }
        if flags.peek {
            return Ok(self.receive.buffer.peek(0, into));
        }
        let copied = if flags.truncate {
            self.receive.buffer.discard(cx.pool, into.len())
        } else {
            self.receive.buffer.read(cx.pool, into)
        };
        let read = self.copied_seq();
        self.receive.space.adjust(cx.now, read, cx.config);
        if self.state != TcpState::Closed {
            self.after_read(cx, copied);
        }
        Ok(copied)
    }

    fn nothing_to_read(&mut self) -> Result<usize, SocketError> {
        if self.done {
            return Ok(0);
        }
        match self.error.take() {
            Some(error) => Err(error),
            None if self.shut_read => Ok(0),
            None => Err(SocketError::WouldBlock),
        }
    }

    /// The next byte to be read.
    pub(crate) fn copied_seq(&self) -> Seq {
        let fin = u32::from(self.done);
        self.receive.next - fin - self.receive.buffer.readable() as u32
    }

    /// tcp_poll.
    pub(crate) fn readiness(&self) -> Readiness {
        let readable = self.receive.buffer.readable() as u32;
        let low_water = self
            .options
            .receive_low_water
            .min(self.receive.space.limit / 2)
            .max(1);
        let closed = self.state == TcpState::Closed;
        Readiness {
            readable: self.shut_read || readable >= low_water,
            writable: self.shut_write || self.is_writable(),
            read_hangup: self.shut_read,
            hangup: closed || self.shut_read && self.shut_write,
            error: self.error.is_some(),
        }
    }
}
