//! What ICMP says of connections: believed if it quotes what is in flight, and never the end of an established one (RFC 5927).
use super::state::{Host, Tcp};
use crate::ip::IcmpError;
use crate::tcp::demux::Target;
use crate::tcp::seq::Seq;
use crate::tcp::sockets::Socket;
use crate::tcp::tuple::Tuple;
use std::net::SocketAddr;

impl Tcp {
    pub(crate) fn icmp_error(&mut self, host: &mut Host, error: &IcmpError) {
        let tuple = Tuple::new(
            SocketAddr::new(error.local, error.local_port()),
            SocketAddr::new(error.peer, error.peer_port()),
        );
        let hash = self.keys.tuple(&tuple);
        match self.find(hash, &tuple) {
            Some(Target::Connection(slot)) => self.error_of_socket(host, slot, error),
            Some(Target::Request(index)) => self.error_of_request(host, index, error),
            Some(Target::TimeWait(_)) => {}
            None => host.counters.icmp_in_errors += 1,
        }
    }

    fn error_of_socket(&mut self, host: &mut Host, slot: u32, error: &IcmpError) {
        let seq = Seq(error.seq());
        match self.sockets.get_mut(slot) {
            Some(Socket::Connecting(connecting)) if seq == connecting.iss => {
                // Linux (tcp_v4_err): while connecting, soft errors end the attempt, too; whoever tries several addresses goes on
                // to the next (RFC 5461, 4.1).
                if error.mtu.is_none() {
                    self.connecting_failed(host, slot, error.error);
                }
            }
            Some(Socket::Connection(connection)) if connection.is_in_flight(seq) => {
                if error.mtu.is_some() {
                    let mtu = host.ip.lower_mtu(host.now, error);
                    connection.lower_mtu(host.now, mtu);
                } else {
                    connection.soft_error = Some(error.error);
                }
                self.settle(host, slot);
            }
            _ => host.counters.out_of_window_icmps += 1,
        }
    }

    /// Linux drops the request: it counts as refused (tcp_req_err).
    fn error_of_request(&mut self, host: &mut Host, index: u32, error: &IcmpError) {
        let Some(request) = self.requests.get(index) else {
            return;
        };
        if Seq(error.seq()) != request.iss {
            host.counters.out_of_window_icmps += 1;
        } else if error.mtu.is_none() && error.hard {
            host.counters.listen_drops += 1;
            self.remove_request(index);
        }
    }
}
