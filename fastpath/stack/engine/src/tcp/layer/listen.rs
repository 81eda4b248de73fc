//! Passive opens: SYN queue, SYN cookies, accept queue.
use super::input::refuse;
use super::state::{Host, Tcp, context};
use crate::config::SynCookies;
use crate::tcp::challenge::InvalidLimit;
use crate::tcp::connection::{Beginning, Connection, initial_window, window_scale};
use crate::tcp::cookies::{options_of_stamp, stamp_with_options};
use crate::tcp::demux::Target;
use crate::tcp::handshake;
use crate::tcp::request::{Request, Verdict};
use crate::tcp::secrets::{self, timestamp};
use crate::tcp::segment::Segment;
use crate::tcp::seq::Seq;
use crate::tcp::sockets::Socket;
use crate::tcp::tuple::Tuple;
use crate::{Ns, SocketId};
use std::net::IpAddr;

/// How long after a cookie was sent one may come back.
const COOKIE_LIFETIME: Ns = Ns::from_ms(120_000);

impl Tcp {
    /// `iss`: of a connection that takes a TIME-WAIT's place.
    pub(crate) fn syn_arrives(
        &mut self,
        host: &mut Host,
        slot: u32,
        tuple: &Tuple,
        hash: u32,
        segment: &Segment,
        iss: Option<Seq>,
    ) {
        let config = &self.config.tcp;
        let Some(listener) = self.sockets.listener_mut(slot) else {
            return;
        };
        if listener.is_full() {
            host.counters.listen_overflows += 1;
            host.counters.listen_drops += 1;
            return;
        }
        let many = listener.has_many_requests(config.syn_backlog);
        let cookie = iss.is_none()
            && match config.syn_cookies {
                SynCookies::Always => true,
                SynCookies::WhenFull => many,
                SynCookies::Never => false,
            };
        if many && !cookie {
            host.counters.req_q_full_drop += 1;
            host.counters.listen_drops += 1;
            return;
        }
        if cookie {
            host.counters.req_q_full_do_cookies += u64::from(many);
            host.counters.syncookies_sent += 1;
            listener.cookie_sent = Some(host.now);
        }
        let Some(mut request) = self.request(host, slot, tuple, hash, segment) else {
            return;
        };
        let offset = request.agreed.ts_offset;
        let mut stamp = timestamp(host.now, offset);
        if !cookie {
            request.iss = iss.unwrap_or_else(|| self.secrets.isn(host.now, tuple));
            context!(self, host).reply(request.syn_ack(stamp));
            self.insert_request(slot, request);
            return;
        }
        let mss = request.agreed.peer_mss;
        request.iss = self.cookies.make(host.now, tuple, request.irs, mss);
        if request.agreed.timestamps {
            stamp = stamp_with_options(stamp, &segment.options);
        } else {
            // Nothing would bring them back.
            request.agreed.window_scaling = false;
            request.agreed.sack = false;
        }
        context!(self, host).reply(request.syn_ack(stamp));
    }

    fn request(
        &mut self,
        host: &mut Host,
        slot: u32,
        tuple: &Tuple,
        hash: u32,
        segment: &Segment,
    ) -> Option<Request> {
        let config = &self.config.tcp;
        let listener = self.sockets.listener_mut(slot)?;
        let options = &listener.options;
        let mtu = host.ip.mtu(host.now, IpAddr::from(tuple.peer));
        let advmss = handshake::announced_mss(mtu, tuple.peer.is_v4(), options);
        let limit = options
            .receive_buffer
            .unwrap_or(config.receive_buffer.initial);
        let wscale = window_scale(limit.max(config.receive_buffer.max));
        let ts_offset = self.secrets.timestamp_offset(tuple);
        let agreed = handshake::agree(config, options, &segment.options, wscale, ts_offset);
        Some(Request {
            tuple: *tuple,
            hash,
            listener: listener.id,
            agreed,
            iss: Seq(0),
            irs: segment.seq,
            window: initial_window(limit, options.window_clamp, u32::from(advmss)),
            advmss,
            hop_limit: options.header.hop_limit(tuple.peer.into()),
            traffic_class: options.header.traffic_class(tuple.peer.into()),
            retransmissions: 0,
            timeouts: 0,
            acked: false,
            sent: host.now,
            invalid: InvalidLimit::default(),
        })
    }

    fn insert_request(&mut self, slot: u32, request: Request) {
        let (hash, sent) = (request.hash, request.sent);
        let index = self.requests.insert(request);
        self.demux.insert(hash, Target::Request(index));
        self.request_timers
            .set(index, sent + self.config.tcp.rto_initial);
        if let Some(listener) = self.sockets.listener_mut(slot) {
            listener.requests += 1;
        }
    }

    pub(crate) fn remove_request(&mut self, index: u32) -> Option<Request> {
        let request = self.requests.remove(index)?;
        self.request_timers.clear(index);
        self.demux.remove(request.hash, Target::Request(index));
        if let Ok(slot) = self.sockets.index(request.listener)
            && let Some(listener) = self.sockets.listener_mut(slot)
        {
            listener.requests = listener.requests.saturating_sub(1);
        }
        Some(request)
    }

    pub(crate) fn request_arrives(
        &mut self,
        host: &mut Host,
        index: u32,
        segment: &Segment,
    ) -> Option<SocketId> {
        let interval = self.config.tcp.invalid_ack_interval;
        let request = self.requests.get_mut(index)?;
        let stamp = timestamp(host.now, request.agreed.ts_offset);
        let listener = self.sockets.index(request.listener).ok();
        match request.arrives(segment) {
            Verdict::Drop => {}
            Verdict::SynAck => {
                if request.invalid.allows(host.now, interval) {
                    request.retransmissions = request.retransmissions.saturating_add(1);
                    host.counters.tcp_retrans_segs += 1;
                    let reply = request.syn_ack(stamp);
                    context!(self, host).reply(reply);
                } else {
                    host.counters.ack_skipped_syn_recv += 1;
                }
            }
            Verdict::Acknowledge { paws } => {
                host.counters.paws_estab += u64::from(paws);
                if segment.is_answered_always() || request.invalid.allows(host.now, interval) {
                    let reply = request.acknowledgement(stamp);
                    context!(self, host).reply(reply);
                } else {
                    host.counters.ack_skipped_syn_recv += 1;
                }
            }
            Verdict::Refuse => {
                host.counters.tcp_attempt_fails += 1;
                host.counters.embryonic_rsts += 1;
                let tuple = request.tuple;
                self.remove_request(index);
                refuse(&mut context!(self, host), &tuple, segment);
            }
            Verdict::Reset => {
                let tuple = request.tuple;
                refuse(&mut context!(self, host), &tuple, segment);
            }
            Verdict::Complete => return self.request_completes(host, index, segment),
        }
        listener.and_then(|slot| self.sockets.id(slot))
    }

    fn request_completes(
        &mut self,
        host: &mut Host,
        index: u32,
        segment: &Segment,
    ) -> Option<SocketId> {
        let request = *self.requests.get(index)?;
        let Some(slot) = self.sockets.index(request.listener).ok() else {
            self.remove_request(index);
            refuse(&mut context!(self, host), &request.tuple, segment);
            return None;
        };
        let listener = self.sockets.listener_mut(slot)?;
        let deferred = listener.options.defer_accept;
        let bare = segment.len() == 0;
        if deferred.0 > 0 && bare && host.now.since(request.sent) < deferred {
            self.requests.get_mut(index)?.acked = true;
            return self.sockets.id(slot);
        }
        if listener.is_full() {
            host.counters.listen_overflows += 1;
            host.counters.listen_drops += 1;
            if self.config.tcp.abort_on_overflow {
                host.counters.embryonic_rsts += 1;
                self.remove_request(index);
                refuse(&mut context!(self, host), &request.tuple, segment);
            } else {
                self.requests.get_mut(index)?.acked = true;
            }
            return self.sockets.id(slot);
        }
        self.remove_request(index);
        let rtt = match request.retransmissions {
            0 => Some(host.now.since(request.sent)),
            _ => segment.timestamps().filter(|s| s.echo != 0).and_then(|s| {
                let made = secrets::timestamp_age(host.now, request.agreed.ts_offset, s.echo)?;
                Some(host.now.since(made))
            }),
        };
        self.establish(host, slot, &request, rtt, segment)
    }

    /// An ACK without a request: of a SYN-ACK that was a cookie? False: no.
    pub(crate) fn cookie_arrives(
        &mut self,
        host: &mut Host,
        slot: u32,
        tuple: &Tuple,
        hash: u32,
        segment: &Segment,
    ) -> bool {
        let Some(listener) = self.sockets.listener_mut(slot) else {
            return false;
        };
        let recent = |at: Ns| host.now.since(at) <= COOKIE_LIFETIME;
        if !listener.cookie_sent.is_some_and(recent) {
            return false;
        }
        let full = listener.is_full();
        let (irs, iss) = (segment.seq - 1, segment.ack - 1);
        let Some(mss) = self.cookies.check(host.now, tuple, irs, iss) else {
            host.counters.syncookies_failed += 1;
            return false;
        };
        host.counters.syncookies_recv += 1;
        if full {
            host.counters.listen_overflows += 1;
            host.counters.listen_drops += 1;
            return true;
        }
        let Some(mut request) = self.request(host, slot, tuple, hash, segment) else {
            return false;
        };
        request.iss = iss;
        request.irs = irs;
        request.agreed.peer_mss = mss;
        if let Some(stamps) = segment.timestamps().filter(|_| self.config.tcp.timestamps) {
            let (scale, sack) = match stamps.echo {
                0 => (None, false),
                echo => options_of_stamp(echo),
            };
            let scaling = scale.is_some() && self.config.tcp.window_scaling;
            request.agreed.window_scaling = scaling;
            request.agreed.snd_wscale = scale.filter(|_| scaling).unwrap_or(0);
            let limit = self.config.tcp.receive_buffer;
            request.agreed.rcv_wscale = if scaling {
                window_scale(limit.initial.max(limit.max))
            } else {
                0
            };
            request.agreed.sack = sack && self.config.tcp.sack;
        }
        self.establish(host, slot, &request, None, segment);
        true
    }

    /// The connection waits to be accepted, and has what came with the segment.
    fn establish(
        &mut self,
        host: &mut Host,
        listener: u32,
        request: &Request,
        rtt: Option<Ns>,
        segment: &Segment,
    ) -> Option<SocketId> {
        let options = self.sockets.listener_mut(listener)?.options;
        let begin = Beginning {
            tuple: request.tuple,
            hash: request.hash,
            agreed: request.agreed,
            iss: request.iss,
            irs: request.irs,
            receive_window: request.window,
            send_window: u32::from(segment.window) << request.agreed.snd_wscale,
            wl1: segment.seq,
            // It may have changed since the SYN.
            mtu: host.ip.mtu(host.now, IpAddr::from(request.tuple.peer)),
            advmss: request.advmss,
            rtt,
            syn_retransmissions: u32::from(request.retransmissions),
        };
        let connection =
            Connection::new(host.now, &self.config.tcp, host.counters, options, &begin);
        let exclusive = options.is_exclusive();
        let ipv6 = self.sockets.is_ipv6(listener);
        let Some(slot) = self
            .sockets
            .insert(Socket::Connection(Box::new(connection)), ipv6)
        else {
            host.counters.listen_drops += 1;
            host.counters.tcp_curr_estab = host.counters.tcp_curr_estab.saturating_sub(1);
            return None;
        };
        self.demux.insert(request.hash, Target::Connection(slot));
        let tuple = &request.tuple;
        self.ports.connect(tuple.local, tuple.local_port, exclusive);
        host.counters.tcp_passive_opens += 1;
        self.sockets.listener_mut(listener)?.accepts.push_back(slot);
        self.sockets.event(listener);
        self.deliver(host, slot, segment);
        self.sockets.id(slot)
    }

    /// A SYN-ACK was not answered.
    pub(crate) fn request_times_out(&mut self, host: &mut Host, index: u32) {
        let config = &self.config.tcp;
        let Some(request) = self.requests.get_mut(index) else {
            return;
        };
        if request.timeouts >= config.synack_retries
            || self.sockets.index(request.listener).is_err()
        {
            self.remove_request(index);
            return;
        }
        // TCP_DEFER_ACCEPT: the peer is silent because it has nothing to say; it is asked again when that time is over.
        let listener = self.sockets.index(request.listener).ok();
        let deferred = listener.and_then(|slot| self.sockets.listener_mut(slot));
        let until = request.sent + deferred.map_or(Ns(0), |l| l.options.defer_accept);
        if request.acked && host.now < until {
            self.request_timers.set(index, until);
            return;
        }
        request.timeouts += 1;
        let rto = Ns(config.rto_initial.0 << request.timeouts.min(30)).min(config.rto_max);
        request.retransmissions = request.retransmissions.saturating_add(1);
        host.counters.timeouts += 1;
        host.counters.tcp_retrans_segs += 1;
        let reply = request.syn_ack(timestamp(host.now, request.agreed.ts_offset));
        self.request_timers.set(index, host.now + rto);
        context!(self, host).reply(reply);
    }
}
