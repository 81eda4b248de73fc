//! Datagrams and ICMP errors to sockets.
use super::datagrams::counted;
use super::socket::Arrived;
use super::state::{Lower, Udp};
use crate::frame::Received;
use crate::ip::{IcmpError, Packet};
use crate::wire::udp::Datagram;
use crate::{SocketError, SocketId};
use std::net::SocketAddr;

impl Udp {
    /// Queues a datagram whose checksum is right at its socket, or has its sender told that there is none.
    pub(crate) fn receive(
        &mut self,
        lower: &mut Lower,
        packet: &Packet,
        datagram: &Datagram,
    ) -> Received {
        let local = SocketAddr::new(packet.destination, datagram.destination_port);
        let peer = SocketAddr::new(packet.source, datagram.source_port);
        let arrived = Arrived {
            peer,
            to: packet.destination,
            hop_limit: packet.hop_limit,
            traffic_class: packet.traffic_class,
        };
        let payload = datagram.payload();
        let mut received = Received {
            socket: None,
            payload_bytes: payload.len() as u32,
        };
        if lower.ip.is_local(packet.destination) {
            let shares = |i| self.get(i).is_ok_and(|s| s.options.reuse_port);
            match self.demux.find(local, peer, shares) {
                Some(index) => received.socket = self.enqueue(lower, index, arrived, payload),
                None => {
                    lower.counters.udp_no_ports += 1;
                    lower.ip.refuse_port(lower.now, packet, lower.counters);
                }
            }
            return received;
        }
        let all = self.demux.all(local, peer);
        if all.is_empty() {
            lower.counters.udp_no_ports += 1;
        }
        for index in all {
            received.socket = self.enqueue(lower, index, arrived, payload);
        }
        received
    }

    fn enqueue(
        &mut self,
        lower: &mut Lower,
        index: u32,
        arrived: Arrived,
        payload: &[u8],
    ) -> Option<SocketId> {
        let socket = self.get_mut(index).ok()?;
        let id = socket.id;
        let used = socket.received.counted_bytes();
        // One datagram always has room (__sock_queue_rcv_skb looks at what is used before).
        let full =
            used > 0 && used + counted(payload.len()) > socket.options.receive_buffer as usize;
        // Linux looks at nothing else: what comes after a shutdown for reading is queued, too.
        if full {
            lower.counters.udp_rcvbuf_errors += 1;
            lower.counters.udp_in_errors += 1;
            return Some(id);
        }
        let queued = socket.received.push(lower.pool, arrived, payload);
        lower.counters.memory_pressures = lower.pool.pressures();
        if !queued {
            lower.counters.udp_mem_errors += 1;
            lower.counters.memory_limit_drop += 1;
            lower.counters.udp_in_errors += 1;
            return Some(id);
        }
        lower.counters.udp_in_datagrams += 1;
        self.change(index);
        Some(id)
    }

    /// RFC 1122, 4.1.3.3. A path's MTU is believed where a socket has sent from the port; other errors are told to
    /// connected sockets, when they are hard (Linux, __udp4_lib_err without IP_RECVERR).
    pub(crate) fn icmp_error(&mut self, lower: &mut Lower, error: &IcmpError) {
        let local = SocketAddr::new(error.local, error.local_port());
        let peer = SocketAddr::new(error.peer, error.peer_port());
        let Some(index) = self.demux.find(local, peer, |_| false) else {
            lower.counters.icmp_in_errors += 1;
            return;
        };
        if error.mtu.is_some() {
            lower.ip.lower_mtu(lower.now, error);
        }
        let Ok(socket) = self.get_mut(index) else {
            return;
        };
        let told = error.hard || error.error == SocketError::MessageTooLong;
        if told && socket.peer == Some(peer) {
            socket.error = Some(error.error);
            self.change(index);
        }
    }
}
