//! Timers of connections, requests and TIME-WAITs.
use super::state::{Host, Tcp, context};
use crate::Ns;
use crate::tcp::connection::NEVER;
use crate::tcp::sockets::Socket;

impl Tcp {
    pub(crate) fn poll_at(&self) -> Option<Ns> {
        let due = [
            self.timers.next(),
            self.request_timers.next(),
            self.time_waits.next_expiry(),
        ];
        due.into_iter().flatten().min()
    }

    pub(crate) fn advance(&mut self, host: &mut Host) {
        while let Some(slot) = self.timers.pop(host.now) {
            self.socket_due(host, slot);
        }
        while let Some(index) = self.request_timers.pop(host.now) {
            self.request_times_out(host, index);
        }
        while let Some(index) = self.time_waits.expired(host.now) {
            self.remove_time_wait(index);
        }
    }

    /// The timer may be early: deadlines that move back do not touch it.
    fn socket_due(&mut self, host: &mut Host, slot: u32) {
        match self.sockets.get_mut(slot) {
            Some(Socket::Connection(connection)) => {
                connection.armed = NEVER;
                if connection.deadline() <= host.now {
                    connection.on_time(&mut context!(self, host));
                }
                self.settle(host, slot);
            }
            Some(Socket::Connecting(connecting)) => {
                connecting.armed = NEVER;
                let verdict = connecting.on_time(&mut context!(self, host));
                self.connecting_goes_on(host, slot, verdict, None);
            }
            _ => {}
        }
    }

    pub(crate) fn arm_connecting(&mut self, slot: u32) {
        if let Some(Socket::Connecting(connecting)) = self.sockets.get_mut(slot)
            && connecting.deadline < connecting.armed
        {
            connecting.armed = connecting.deadline;
            self.timers.set(slot, connecting.deadline);
        }
    }
}
