//! What holds back what is to be sent, and for how long: tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited.
use crate::Ns;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    /// There is nothing to send, and all is acknowledged.
    #[default]
    Idle,
    /// Congestion control, the path or the writer.
    Other,
    Window,
    Buffer,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limited {
    pub(crate) now: Limit,
    since: Ns,
    other: Ns,
    window: Ns,
    buffer: Ns,
}

impl Limited {
    /// Busy in all; of it, limited by the peer's window; by the send buffer.
    pub(crate) fn spans(&self, now: Ns) -> (Ns, Ns, Ns) {
        let mut until_now = *self;
        until_now.set(now, self.now);
        let Limited {
            other,
            window,
            buffer,
            ..
        } = until_now;
        (other + window + buffer, window, buffer)
    }

    pub(crate) fn set(&mut self, now: Ns, limit: Limit) {
        let span = now.since(self.since);
        match self.now {
            Limit::Idle => {}
            Limit::Other => self.other = self.other + span,
            Limit::Window => self.window = self.window + span,
            Limit::Buffer => self.buffer = self.buffer + span,
        }
        (self.now, self.since) = (limit, now);
    }
}
