//! After each step of a connection: its events, its place in the output queue, its timer, and its end.
use super::state::{Host, Tcp};
use crate::Ns;
use crate::buffer::Pool;
use crate::info::TcpState;
use crate::tcp::connection::{Connection, NEVER};
use crate::tcp::demux::Target;
use crate::tcp::sockets::Socket;
use crate::tcp::time_wait::TimeWait;

/// A timer that is earlier than the deadline by less than this stays: deadlines of a busy connection move with each segment. Of an idle
/// one it is cleared, which costs less than its state, fetched from memory when the timer expires for nothing.
const EARLY: Ns = Ns::from_ms(2_000);

impl Tcp {
    pub(crate) fn settle(&mut self, host: &mut Host, slot: u32) {
        let Some(Socket::Connection(connection)) = self.sockets.get_mut(slot) else {
            return;
        };
        let event = std::mem::take(&mut connection.event);
        let counts = matches!(
            connection.state,
            TcpState::Established | TcpState::CloseWait
        );
        if connection.established && !counts {
            connection.established = false;
            host.counters.tcp_curr_estab = host.counters.tcp_curr_estab.saturating_sub(1);
        }
        if connection.state == TcpState::Closed || connection.time_wait {
            self.end(host, slot);
        } else {
            if !connection.queued && connection.wants_output() {
                connection.queued = true;
                self.output.push_back(slot);
            }
            let deadline = connection.deadline();
            if deadline < connection.armed {
                connection.armed = deadline;
                self.timers.set(slot, deadline);
            } else if deadline.since(connection.armed) > EARLY {
                connection.armed = deadline;
                match deadline {
                    NEVER => self.timers.clear(slot),
                    _ => self.timers.set(slot, deadline),
                }
            }
        }
        if event {
            self.sockets.event(slot);
        }
    }

    /// The connection leaves the demultiplexing table; its socket stays until it is closed.
    fn end(&mut self, host: &mut Host, slot: u32) {
        let Some(connection) = self.sockets.connection_mut(slot) else {
            return;
        };
        if connection.attached {
            connection.attached = false;
            self.timers.clear(slot);
            self.detach(host, slot);
        }
        let Some(connection) = self.sockets.connection_mut(slot) else {
            return;
        };
        connection.finish();
        if connection.orphan {
            self.orphans -= u32::from(connection.counted);
            connection.send.buffer.clear(host.pool);
            connection.receive.buffer.clear(host.pool);
            self.sockets.free(slot);
        }
    }

    fn detach(&mut self, host: &mut Host, slot: u32) {
        let Some(connection) = self.sockets.connection(slot) else {
            return;
        };
        let (hash, tuple) = (connection.hash, connection.tuple);
        let exclusive = connection.options.is_exclusive();
        let target = Target::Connection(slot);
        let room = self.time_waits.len() < self.config.tcp.time_wait_max as usize;
        if connection.time_wait && !room {
            host.counters.time_wait_overflow += 1;
        }
        if connection.time_wait && room {
            let owes_ack = connection.ack.now;
            let entry = time_wait(connection);
            host.counters.time_waited += 1;
            let expires = host.now + self.config.tcp.time_wait;
            let index = self.time_waits.insert(entry, expires);
            self.demux.replace(hash, target, Target::TimeWait(index));
            // Of the FIN that led here: the connection itself sends no more.
            if owes_ack {
                self.send_time_wait_ack(host, index);
            }
        } else {
            self.demux.remove(hash, target);
            self.ports
                .disconnect(tuple.local, tuple.local_port, exclusive);
        }
    }

    /// Those that had no memory at all try again in their order, as many as there are chunks. Slots of others, which took the place of one that
    /// was closed, are passed over.
    pub(crate) fn feed_starved(&mut self, pool: &Pool) {
        for _ in 0..pool.left() {
            let Some(slot) = self.starved.pop_front() else {
                return;
            };
            if let Some(connection) = self.sockets.connection_mut(slot)
                && std::mem::take(&mut connection.send.starved)
            {
                connection.send.no_space = false;
                self.sockets.event(slot);
            }
        }
    }
}

fn time_wait(connection: &Connection) -> TimeWait {
    let snd_nxt = connection.sender.snd_nxt();
    let mut entry = TimeWait::new(
        connection.tuple,
        connection.hash,
        snd_nxt,
        connection.receive.next,
    );
    let window = connection.receive_window() >> connection.receive.wscale;
    let ts = &connection.ts;
    entry.window = window.min(65_535) as u16;
    entry.exclusive = connection.options.is_exclusive();
    let (header, peer) = (&connection.options.header, connection.tuple.peer.into());
    entry.hop_limit = header.hop_limit(peer);
    entry.traffic_class = header.traffic_class(peer);
    entry.stamps = ts.on.then_some((ts.offset, ts.recent, ts.recent_at));
    entry
}
