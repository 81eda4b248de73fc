//! An active open, until it is established: SYN-SENT, and SYN-RECEIVED where both ends open at once (RFC 9293, 3.10.7.3).
use super::connection::{Beginning, NEVER, backed_off_from};
use super::context::Context;
use super::handshake::{self, Agreed};
use super::options::SocketOptions;
use super::replies::{self, Reply};
use super::secrets::{self, timestamp};
use super::segment::Segment;
use super::seq::Seq;
use super::tuple::{Address, Tuple};
use crate::info::TcpState;
use crate::wire::tcp::Flags;
use crate::wire::tcp_options::Timestamps;
use crate::{Ns, SocketError};

/// Between a reset for a half-open connection and the SYN that may find it gone (Linux TCP_TIMEOUT_MIN: two ticks).
const AFTER_RESET: Ns = Ns::from_ms(2);

#[derive(Debug)]
pub(crate) struct Connecting {
    pub(crate) tuple: Tuple,
    pub(crate) hash: u32,
    pub(crate) options: SocketOptions,
    /// By bind(2): it stays when the attempt fails.
    pub(crate) bound: Option<(Address, u16)>,
    pub(crate) iss: Seq,
    pub(crate) ts_offset: u32,
    /// What the SYN advertises, and its scale.
    pub(crate) window: u32,
    pub(crate) wscale: u8,
    pub(crate) mtu: u16,
    pub(crate) advmss: u16,
    pub(crate) retransmissions: u8,
    pub(crate) first_sent: Ns,
    pub(crate) last_sent: Ns,
    pub(crate) deadline: Ns,
    pub(crate) armed: Ns,
    /// The peer's SYN, once it came without ACK.
    crossed: Option<Crossed>,
    /// The owner shut writing down: FIN follows the handshake.
    pub(crate) shut_write: bool,
    pub(crate) shut_read: bool,
}

#[derive(Debug, Clone, Copy)]
struct Crossed {
    agreed: Agreed,
    irs: Seq,
    window: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict {
    Nothing,
    Established(Beginning),
    Failed(SocketError),
}

impl Connecting {
    pub(crate) fn new(
        tuple: Tuple,
        hash: u32,
        options: SocketOptions,
        iss: Seq,
        ts_offset: u32,
    ) -> Connecting {
        Connecting {
            tuple,
            hash,
            options,
            bound: None,
            iss,
            ts_offset,
            window: 0,
            wscale: 0,
            mtu: 0,
            advmss: 0,
            retransmissions: 0,
            first_sent: Ns(0),
            last_sent: Ns(0),
            deadline: NEVER,
            armed: NEVER,
            crossed: None,
            shut_write: false,
            shut_read: false,
        }
    }

    pub(crate) fn state(&self) -> TcpState {
        match self.crossed {
            None => TcpState::SynSent,
            Some(_) => TcpState::SynReceived,
        }
    }

    /// SYN, or SYN-ACK after the peer's SYN.
    pub(crate) fn send_syn(&mut self, cx: &mut Context) {
        let stamp = timestamp(cx.now, self.ts_offset);
        let mut header = replies::header(&self.tuple, self.iss, Seq(0), Flags::SYN);
        header.window = self.window.min(65_535) as u16;
        match &self.crossed {
            None => {
                let stamps = Timestamps {
                    value: stamp,
                    echo: 0,
                };
                header.options = handshake::offer(cx.config, self.advmss, self.wscale, stamps);
            }
            Some(crossed) => {
                header.flags = Flags::SYN.and(Flags::ACK);
                header.ack = (crossed.irs + 1).0;
                header.options = handshake::answer(&crossed.agreed, self.advmss, stamp);
            }
        }
        self.last_sent = cx.now;
        self.reply(cx, header);
    }

    fn reply(&self, cx: &mut Context, header: crate::wire::tcp::Header) {
        cx.reply(Reply {
            tuple: self.tuple,
            header,
            hop_limit: self.options.header.hop_limit(self.tuple.peer.into()),
            traffic_class: self.options.header.traffic_class(self.tuple.peer.into()),
        });
    }

    /// The first one, or again after RTO.
    pub(crate) fn start(&mut self, cx: &mut Context) {
        self.first_sent = cx.now;
        self.deadline = cx.now + cx.config.rto_initial;
        self.bound_deadline();
        self.send_syn(cx);
    }

    /// The timer expired.
    pub(crate) fn on_time(&mut self, cx: &mut Context) -> Verdict {
        if cx.now < self.deadline {
            return Verdict::Nothing;
        }
        let passed = cx.now.since(self.first_sent);
        let user = self.options.user_timeout;
        let most = backed_off_from(
            cx.config.rto_initial,
            self.options.syn_count,
            cx.config.rto_max,
        );
        if passed >= most || user.0 > 0 && passed >= user {
            cx.counters.abort_on_timeout += 1;
            return Verdict::Failed(SocketError::TimedOut);
        }
        cx.counters.timeouts += 1;
        cx.counters.tcp_retrans_segs += 1;
        self.retransmissions = self.retransmissions.saturating_add(1);
        self.send_syn(cx);
        let rto = cx.config.rto_initial.0 << self.retransmissions.min(30);
        self.deadline = cx.now + Ns(rto).min(cx.config.rto_max);
        self.bound_deadline();
        Verdict::Nothing
    }

    fn bound_deadline(&mut self) {
        let user = self.options.user_timeout;
        if user.0 > 0 {
            self.deadline = self.deadline.min(self.first_sent + user);
        }
    }

    pub(crate) fn arrives(&mut self, cx: &mut Context, segment: &Segment) -> Verdict {
        match self.crossed {
            None => self.arrives_in_syn_sent(cx, segment),
            Some(crossed) => self.arrives_in_syn_received(cx, segment, crossed),
        }
    }

    /// RFC 9293, 3.10.7.3.
    fn arrives_in_syn_sent(&mut self, cx: &mut Context, segment: &Segment) -> Verdict {
        let flags = segment.flags;
        if flags.ack() {
            if segment.ack != self.iss + 1 || self.has_foreign_echo(cx.now, segment) {
                if !flags.rst() {
                    cx.reply(replies::reset_of(&self.tuple, segment));
                    // The peer had an old connection (RFC 9293, 3.5.1), and has none once the reset is there: SYN follows it (as in Linux).
                    if self.retransmissions == 0 {
                        self.deadline = self.deadline.min(cx.now + AFTER_RESET);
                    }
                }
                return Verdict::Nothing;
            }
            if flags.rst() {
                return Verdict::Failed(SocketError::Refused);
            }
        }
        // FIN with a SYN that has no ACK: the peer sends it again once both are established.
        if flags.rst() || !flags.syn() {
            return Verdict::Nothing;
        }
        let peer = &segment.options;
        let agreed = handshake::agree(cx.config, &self.options, peer, self.wscale, self.ts_offset);
        if !flags.ack() {
            return self.cross(cx, segment, agreed);
        }
        let rtt = self.rtt(cx, segment);
        // A window of SYN is never scaled (RFC 7323, 2.2).
        Verdict::Established(self.begin(
            agreed,
            segment.seq,
            u32::from(segment.window),
            segment.seq,
            rtt,
        ))
    }

    /// An echo of what we never sent is no answer of this connection's (RFC 7323, 3.2).
    fn has_foreign_echo(&self, now: Ns, segment: &Segment) -> bool {
        let echo = segment.timestamps().map_or(0, |s| s.echo);
        let first = timestamp(self.first_sent, self.ts_offset);
        let window = timestamp(now, self.ts_offset).wrapping_sub(first);
        echo != 0 && echo.wrapping_sub(first) > window
    }

    /// Simultaneous open.
    fn cross(&mut self, cx: &mut Context, segment: &Segment, agreed: Agreed) -> Verdict {
        self.crossed = Some(Crossed {
            agreed,
            irs: segment.seq,
            window: u32::from(segment.window),
        });
        self.send_syn(cx);
        Verdict::Nothing
    }

    fn arrives_in_syn_received(
        &mut self,
        cx: &mut Context,
        segment: &Segment,
        crossed: Crossed,
    ) -> Verdict {
        let flags = segment.flags;
        let next = crossed.irs + 1;
        let in_window = segment.end().from(next) && segment.seq.until(next + self.window);
        if !in_window || flags.syn() && !flags.ack() {
            if !flags.rst() {
                self.send_syn(cx);
            }
            return Verdict::Nothing;
        }
        if flags.rst() {
            let exact = segment.seq == next;
            return if exact {
                Verdict::Failed(SocketError::Reset)
            } else {
                Verdict::Nothing
            };
        }
        if !flags.ack() {
            return Verdict::Nothing;
        }
        if segment.ack != self.iss + 1 {
            cx.reply(replies::reset_of(&self.tuple, segment));
            return Verdict::Nothing;
        }
        let mut agreed = crossed.agreed;
        if let Some(stamps) = segment.timestamps().filter(|_| agreed.timestamps) {
            agreed.ts_recent = stamps.value;
        }
        let scale = if flags.syn() { 0 } else { agreed.snd_wscale };
        let window = u32::from(segment.window) << scale;
        let rtt = self.rtt(cx, segment);
        let _ = crossed.window;
        Verdict::Established(self.begin(agreed, crossed.irs, window, segment.seq, rtt))
    }

    /// Only of a SYN that was sent once, or of the one that the echo names.
    fn rtt(&self, cx: &Context, segment: &Segment) -> Option<Ns> {
        if self.retransmissions == 0 {
            return Some(cx.now.since(self.last_sent));
        }
        let stamps = segment.timestamps()?;
        let made = secrets::timestamp_age(cx.now, self.ts_offset, stamps.echo)?;
        (stamps.echo != 0).then(|| cx.now.since(made))
    }

    fn begin(
        &self,
        agreed: Agreed,
        irs: Seq,
        send_window: u32,
        wl1: Seq,
        rtt: Option<Ns>,
    ) -> Beginning {
        Beginning {
            tuple: self.tuple,
            hash: self.hash,
            agreed,
            iss: self.iss,
            irs,
            receive_window: self.window,
            send_window,
            wl1,
            mtu: self.mtu,
            advmss: self.advmss,
            rtt,
            syn_retransmissions: u32::from(self.retransmissions),
        }
    }
}
