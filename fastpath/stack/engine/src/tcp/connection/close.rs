//! Ways in which a connection ends.
use super::state::Connection;
use crate::buffer::{LEAST_BYTES, Pool};
use crate::info::TcpState;
use crate::tcp::context::Context;
use crate::{HowToShut, Linger, SocketError};

impl Connection {
    /// shutdown(2).
    pub(crate) fn shut(&mut self, how: HowToShut) {
        let (read, write) = match how {
            HowToShut::Read => (true, false),
            HowToShut::Write => (false, true),
            HowToShut::Both => (true, true),
        };
        self.shut_read |= read;
        if write {
            self.shut_write = true;
            self.close_state();
        }
        self.event = true;
    }

    /// What was shut down before the connection was established.
    pub(crate) fn shut_early(&mut self, read: bool, write: bool) {
        self.shut_read |= read;
        if write {
            self.shut(HowToShut::Write);
        }
    }

    /// FIN follows what is written (RFC 9293, 3.10.4).
    fn close_state(&mut self) {
        self.state = match self.state {
            TcpState::Established => TcpState::FinWait1,
            TcpState::CloseWait => TcpState::LastAck,
            _ => return,
        };
        self.send.fin = true;
        self.send.more = false;
    }

    /// close(2). Nobody will read what is unread, so that the peer gets a reset (RFC 2525, 2.17).
    pub(crate) fn close(&mut self, cx: &mut Context) {
        self.orphan = true;
        self.shut_read = true;
        self.shut_write = true;
        if matches!(self.state, TcpState::Closed | TcpState::TimeWait) {
            return;
        }
        let unread = self.receive.buffer.readable() > 0;
        self.receive.buffer.clear(cx.pool);
        if unread {
            cx.counters.abort_on_close += 1;
            return self.reset_behind_output(cx);
        }
        if self.options.linger == Linger::Reset {
            cx.counters.abort_on_data += 1;
            return self.reset_behind_output(cx);
        }
        if self.state == TcpState::FinWait2 && !self.wait_for_fin(cx) {
            cx.counters.abort_on_linger += 1;
            return;
        }
        self.close_state();
    }

    /// In FIN-WAIT-2 without a socket. False: it does not wait there, but ended with a reset (TCP_LINGER2 below 0).
    pub(super) fn wait_for_fin(&mut self, cx: &mut Context) -> bool {
        let Some(timeout) = self.options.fin_timeout else {
            self.abort(cx);
            return false;
        };
        self.fin_wait_deadline = Some(cx.now + timeout);
        true
    }

    /// What was sent before and may go out does, as it has where calls send at once; the rest is lost.
    fn reset_behind_output(&mut self, cx: &mut Context) {
        if self.unsent() > 0 && self.wants_output() {
            self.reset_behind = true;
        } else {
            self.abort(cx);
        }
    }

    /// Nobody is left who would care, and it holds memory that others need (Linux tcp_check_oom).
    pub(crate) fn is_too_large(&self, pool: &Pool) -> bool {
        self.orphan && pool.is_tight() && self.send.buffer.len() > LEAST_BYTES as usize
    }

    /// With a reset, where the peer may still send something.
    pub(crate) fn abort(&mut self, cx: &mut Context) {
        let needed = matches!(
            self.state,
            TcpState::Established
                | TcpState::CloseWait
                | TcpState::FinWait1
                | TcpState::FinWait2
                | TcpState::SynReceived
        );
        let unsent =
            matches!(self.state, TcpState::LastAck | TcpState::Closing) && self.unsent() > 0;
        if needed || unsent {
            self.send_reset(cx);
        }
        // As tcp_set_state() of Linux, whoever resets.
        let was_open = matches!(self.state, TcpState::Established | TcpState::CloseWait);
        cx.counters.tcp_estab_resets += u64::from(was_open);
        self.send.buffer.clear(cx.pool);
        self.finish();
    }

    /// The connection is gone, and the owner learns why.
    pub(crate) fn fail(&mut self, cx: &mut Context, error: SocketError) {
        self.error = Some(error);
        self.send.buffer.clear(cx.pool);
        self.finish();
    }

    /// CLOSED. What is unread can still be read.
    pub(crate) fn finish(&mut self) {
        self.state = TcpState::Closed;
        self.shut_read = true;
        self.shut_write = true;
        self.ack.now = false;
        self.ack.deadline = None;
        self.fin_wait_deadline = None;
        self.probes = Default::default();
        self.tail = None;
        self.event = true;
    }
}
