//! Whom a received segment belongs to.
use super::state::{Host, Tcp, context};
use crate::SocketId;
use crate::ip::Packet;
use crate::tcp::connecting;
use crate::tcp::connection::Connection;
use crate::tcp::context::Context;
use crate::tcp::demux::Target;
use crate::tcp::replies::{self, Reply};
use crate::tcp::secrets::timestamp;
use crate::tcp::segment::Segment;
use crate::tcp::sockets::Socket;
use crate::tcp::time_wait::Verdict;
use crate::tcp::tuple::Tuple;
use crate::wire::tcp;
use crate::wire::tcp_options::Timestamps;
use std::net::SocketAddr;

impl Tcp {
    /// `segment_bytes` as [`crate::frame::RxMeta`] has it.
    pub(crate) fn receive(
        &mut self,
        host: &mut Host,
        packet: &Packet,
        segment: &tcp::Segment,
        segment_bytes: u16,
    ) -> Option<SocketId> {
        let local = SocketAddr::new(packet.destination, segment.destination_port);
        let peer = SocketAddr::new(packet.source, segment.source_port);
        let tuple = Tuple::new(local, peer);
        let (segment, malformed) = Segment::new(segment, segment_bytes);
        host.counters.options_malformed += u64::from(malformed);
        let hash = self.keys.tuple(&tuple);
        match self.find(hash, &tuple) {
            Some(Target::Connection(slot)) => {
                self.deliver(host, slot, &segment);
                self.sockets.id(slot)
            }
            Some(Target::Request(index)) => self.request_arrives(host, index, &segment),
            Some(Target::TimeWait(index)) => {
                self.time_wait_arrives(host, index, &segment);
                None
            }
            None => self.stranger_arrives(host, &tuple, hash, &segment),
        }
    }

    pub(crate) fn find(&self, hash: u32, tuple: &Tuple) -> Option<Target> {
        self.demux.find(hash, |target| match target {
            Target::Connection(slot) => match self.sockets.get(slot) {
                Some(Socket::Connection(connection)) => connection.tuple == *tuple,
                Some(Socket::Connecting(connecting)) => connecting.tuple == *tuple,
                _ => false,
            },
            Target::Request(index) => self.requests.get(index).is_some_and(|r| r.tuple == *tuple),
            Target::TimeWait(index) => self
                .time_waits
                .get(index)
                .is_some_and(|t| t.tuple == *tuple),
        })
    }

    pub(crate) fn deliver(&mut self, host: &mut Host, slot: u32, segment: &Segment) {
        match self.sockets.get_mut(slot) {
            Some(Socket::Connection(connection)) => {
                let snd_una = connection.sender.snd_una();
                connection.input(&mut context!(self, host), segment);
                if connection.sender.snd_una() != snd_una {
                    host.ip.confirm(host.now, connection.hop);
                }
                self.settle(host, slot);
            }
            Some(Socket::Connecting(connecting)) => {
                let verdict = connecting.arrives(&mut context!(self, host), segment);
                self.connecting_goes_on(host, slot, verdict, Some(segment));
            }
            _ => {}
        }
    }

    pub(crate) fn connecting_goes_on(
        &mut self,
        host: &mut Host,
        slot: u32,
        verdict: connecting::Verdict,
        segment: Option<&Segment>,
    ) {
        match verdict {
            connecting::Verdict::Nothing => self.arm_connecting(slot),
            connecting::Verdict::Failed(error) => self.connecting_failed(host, slot, error),
            connecting::Verdict::Established(begin) => {
                let Some(Socket::Connecting(from)) = self.sockets.get(slot) else {
                    return;
                };
                let (write, read) = (from.shut_write, from.shut_read);
                let options = from.options;
                let config = &self.config.tcp;
                let mut connection =
                    Connection::new(host.now, config, host.counters, options, &begin);
                connection.event = true;
                connection.connect_pending = true;
                connection.ack.now = true;
                connection.shut_early(read, write);
                self.sockets
                    .put(slot, Socket::Connection(Box::new(connection)));
                self.timers.clear(slot);
                self.take_rest(host, slot, segment);
                self.settle(host, slot);
            }
        }
    }

    /// The segment that completed an active open may have data, or FIN.
    fn take_rest(&mut self, host: &mut Host, slot: u32, segment: Option<&Segment>) {
        let Some(connection) = self.sockets.connection_mut(slot) else {
            return;
        };
        if let Some(segment) = segment
            && segment.len() > u32::from(segment.flags.syn())
        {
            let mut rest = *segment;
            rest.seq = segment.data_start();
            rest.flags = tcp::Flags(segment.flags.0 & !tcp::Flags::SYN.0);
            connection.take_text(&mut context!(self, host), &rest);
        }
    }

    fn time_wait_arrives(&mut self, host: &mut Host, index: u32, segment: &Segment) {
        let expires = host.now + self.config.tcp.time_wait;
        match self.time_waits.arrives(host.now, index, segment, expires) {
            Verdict::Drop => {}
            Verdict::Close => self.remove_time_wait(index),
            Verdict::Acknowledge { paws } => {
                host.counters.paws_estab += u64::from(paws);
                self.acknowledge_in_time_wait(host, index, segment);
            }
            Verdict::Reopen { after } => {
                let Some(entry) = self.time_waits.get(index) else {
                    return;
                };
                let (tuple, hash) = (entry.tuple, entry.hash);
                let Some(listener) = self.listeners.find(tuple.local, tuple.local_port, hash)
                else {
                    return self.acknowledge_in_time_wait(host, index, segment);
                };
                host.counters.time_wait_recycled += 1;
                self.remove_time_wait(index);
                self.syn_arrives(host, listener, &tuple, hash, segment, Some(after));
            }
        }
    }

    fn acknowledge_in_time_wait(&mut self, host: &mut Host, index: u32, segment: &Segment) {
        let interval = self.config.tcp.invalid_ack_interval;
        let Some(entry) = self.time_waits.get_mut(index) else {
            return;
        };
        if !segment.is_answered_always() && !entry.invalid.allows(host.now, interval) {
            host.counters.ack_skipped_time_wait += 1;
            return;
        }
        self.send_time_wait_ack(host, index);
    }

    pub(crate) fn send_time_wait_ack(&mut self, host: &mut Host, index: u32) {
        let Some(entry) = self.time_waits.get(index) else {
            return;
        };
        let mut header =
            replies::header(&entry.tuple, entry.snd_nxt, entry.rcv_nxt, tcp::Flags::ACK);
        header.window = entry.window;
        header.options.timestamps = entry.stamps.map(|(offset, recent, _)| Timestamps {
            value: timestamp(host.now, offset),
            echo: recent,
        });
        let reply = Reply {
            tuple: entry.tuple,
            header,
            hop_limit: entry.hop_limit,
            traffic_class: entry.traffic_class,
        };
        context!(self, host).reply(reply);
    }

    /// Frees its tuple and its port.
    pub(crate) fn remove_time_wait(&mut self, index: u32) {
        if let Some(entry) = self.time_waits.remove(index) {
            self.demux.remove(entry.hash, Target::TimeWait(index));
            let tuple = &entry.tuple;
            self.ports
                .disconnect(tuple.local, tuple.local_port, entry.exclusive);
        }
    }

    /// LISTEN, or CLOSED (RFC 9293, 3.10.7.1 and 2).
    fn stranger_arrives(
        &mut self,
        host: &mut Host,
        tuple: &Tuple,
        hash: u32,
        segment: &Segment,
    ) -> Option<SocketId> {
        if segment.flags.rst() {
            return None;
        }
        let listener = self.listeners.find(tuple.local, tuple.local_port, hash);
        let flags = segment.flags;
        match listener {
            Some(slot) if flags.syn() && !flags.ack() => {
                if !flags.fin() {
                    self.syn_arrives(host, slot, tuple, hash, segment, None);
                }
                self.sockets.id(slot)
            }
            Some(slot) if flags.ack() && !flags.syn() => {
                if !self.cookie_arrives(host, slot, tuple, hash, segment) {
                    refuse(&mut context!(self, host), tuple, segment);
                }
                self.sockets.id(slot)
            }
            Some(_) if !flags.ack() => None,
            _ => {
                refuse(&mut context!(self, host), tuple, segment);
                None
            }
        }
    }
}

pub(crate) fn refuse(cx: &mut Context, tuple: &Tuple, segment: &Segment) {
    if !segment.flags.rst() {
        cx.reply(replies::reset_of(tuple, segment));
    }
}
