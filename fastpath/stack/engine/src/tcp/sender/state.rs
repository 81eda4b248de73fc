//! The sending half's state, and what is told of it.
use super::config::SenderConfig;
use super::entry::{EntryState, Order};
use super::min_rtt::MinRtt;
use super::prr::Prr;
use super::rack::Rack;
use super::reno::Reno;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::send_log::SendLog;
use super::undo::Undo;
use super::usage::Usage;
use super::window::Window;
use crate::config::Congestion;
use crate::info::CongestionState;
use crate::tcp::seq::Seq;
use crate::{Ns, TcpInfo};

/// Duplicate ACKs, or segments SACKed above a hole, that make it lost (RFC 5681, 3.2).
pub(super) const DUPTHRESH: u32 = 3;
/// Upper bound of `reordering` (Linux tcp_max_reordering).
pub(super) const MAX_REORDERING: u32 = 300;

/// Of [`SenderConfig`], what is needed later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) sack: bool,
    pub(super) rack: bool,
    pub(super) tail_loss_probe: bool,
    pub(super) f_rto: bool,
    pub(super) max_ack_delay: Ns,
    pub(super) timestamp_tick: Ns,
}

/// Deadlines. While something is in flight, either `retransmission` or `probe` is set (RFC 8985, 7.2).
#[derive(Debug, Default)]
pub(super) struct Timers {
    pub(super) retransmission: Option<Ns>,
    pub(super) probe: Option<Ns>,
    pub(super) reordering: Option<Ns>,
}

/// A tail loss probe that is not answered yet (RFC 8985, 7.4).
#[derive(Debug, Clone, Copy)]
pub(super) struct TailProbe {
    /// TLP.end_seq.
    pub(super) end: Seq,
    /// TLP.is_retrans.
    pub(super) is_retransmission: bool,
}

/// After a time-out: was it spurious? (RFC 5682)
#[derive(Debug, Default)]
pub(super) struct FRto {
    pub(super) active: bool,
    /// Step 2b: new bytes instead of retransmissions until the next ACK.
    pub(super) only_new: bool,
}

#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) bytes_sent: u64,
    pub(super) bytes_acked: u64,
    pub(super) bytes_retransmitted: u64,
    pub(super) bytes_dsacked: u64,
    pub(super) segments_sent: u32,
    pub(super) segments_retransmitted: u32,
    pub(super) segments_delivered: u32,
    pub(super) dsacks: u32,
    pub(super) reorderings: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(super) settings: Settings,
    pub(super) board: Scoreboard,
    pub(super) log: SendLog,
    /// Of the newest transmission.
    pub(super) order: Order,
    pub(super) rtt: Rtt,
    pub(super) min_rtt: MinRtt,
    pub(super) rack: Rack,
    pub(super) window: Window,
    pub(super) usage: Usage,
    pub(super) state: CongestionState,
    /// snd_nxt when the last recovery began: it ends when snd_una is there (RFC 6582, recover; Linux high_seq).
    pub(super) recovery_point: Seq,
    /// Without RACK: holes below are marked already.
    pub(super) marked_below: Seq,
    pub(super) prr: Prr,
    pub(super) undo: Undo,
    pub(super) reno: Reno,
    pub(super) probe: Option<TailProbe>,
    pub(super) f_rto: FRto,
    pub(super) timers: Timers,
    /// How far apart segments were found reordered, at least DUPTHRESH (Linux tp->reordering).
    pub(super) reordering: u32,
    pub(super) retransmits: u32,
    pub(super) retransmitting_since: Option<Ns>,
    pub(super) last_sent: Ns,
    /// As `last_sent`, or when cwnd was last reduced for idleness since.
    pub(super) idle_from: Ns,
    pub(super) last_acked: Ns,
    pub(super) totals: Totals,
}

impl Sender {
    /// `first`: the sequence number of the first byte (ISS + 1).
    pub(crate) fn new(config: &SenderConfig, first: Seq, now: Ns) -> Sender {
        Sender {
            settings: Settings {
                sack: config.sack,
                rack: config.rack,
                tail_loss_probe: config.tail_loss_probe,
                f_rto: config.f_rto,
                max_ack_delay: config.max_ack_delay,
                timestamp_tick: config.timestamp_tick,
            },
            board: Scoreboard::new(first),
            log: SendLog::default(),
            order: Order::default(),
            rtt: Rtt::new(config.rto_initial, config.rto_min, config.rto_max, first),
            min_rtt: MinRtt::new(now),
            rack: Rack::default(),
            window: Window::new(
                config.congestion,
                config.hystart,
                config.mss,
                config.initial_window,
                first,
            ),
            usage: Usage::new(now, first),
            state: CongestionState::Open,
            recovery_point: first - 1,
            marked_below: first,
            prr: Prr::default(),
            undo: Undo::default(),
            reno: Reno::default(),
            probe: None,
            f_rto: FRto::default(),
            timers: Timers::default(),
            reordering: DUPTHRESH,
            retransmits: 0,
            retransmitting_since: None,
            last_sent: now,
            idle_from: now,
            last_acked: now,
            totals: Totals::default(),
        }
    }

    /// The handshake took `rtt` (`None`: SYN or SYN-ACK was retransmitted, and no timestamp told which one was answered), after so many
    /// retransmissions of SYN or SYN-ACK: RFC 6298, 5.7; RFC 5681, 3.1. As in Linux one of them is forgiven, since its time-out is
    /// often shorter than the path.
    pub(crate) fn handshake_rtt(&mut self, now: Ns, rtt: Option<Ns>, retransmissions: u32) {
        if let Some(rtt) = rtt {
            self.rtt.add(rtt, self.board.una(), self.board.nxt());
            self.min_rtt.add(now, rtt);
        }
        if retransmissions > 1 {
            self.window.begin_with_one_segment();
        }
    }

    pub(crate) fn set_congestion(&mut self, congestion: Congestion) {
        self.window.set_algorithm(congestion);
        self.undo.forget();
    }

    pub(crate) fn snd_una(&self) -> Seq {
        self.board.una()
    }

    pub(crate) fn snd_nxt(&self) -> Seq {
        self.board.nxt()
    }

    /// snd_nxt - snd_una.
    pub(crate) fn flight_bytes(&self) -> u32 {
        self.board.flight_bytes()
    }

    /// Payload bytes of a full segment.
    pub(crate) fn mss(&self) -> u32 {
        self.window.mss()
    }

    /// In bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd()
    }

    /// Smoothed round-trip time, once there is a sample.
    pub(crate) fn srtt(&self) -> Option<Ns> {
        self.rtt.srtt()
    }

    /// Retransmission time-out with its backoff, also for zero-window probes and keep-alive.
    pub(crate) fn rto(&self) -> Ns {
        self.rtt.rto()
    }

    /// Time-outs in a row without an ACK of anything new.
    pub(crate) fn retransmits(&self) -> u32 {
        self.retransmits
    }

    /// When the first retransmission since the last ACK of anything new was sent (for user time-out, RFC 9293, 3.8.3).
    pub(crate) fn retransmitting_since(&self) -> Option<Ns> {
        self.retransmitting_since
    }

    /// Bytes of a send buffer that never makes cwnd wait: twice what a round trip takes (Linux tcp_sndbuf_expand).
    pub(crate) fn wanted_buffer_bytes(&self) -> u32 {
        self.window
            .cwnd()
            .max(self.window.initial())
            .saturating_mul(2)
    }

    /// What RFC 6675 calls pipe, in bytes.
    pub(super) fn in_flight_bytes(&self) -> u32 {
        let bytes = self.board.in_flight_bytes();
        bytes.saturating_sub(self.reno.arrived_bytes)
    }

    /// Writes the fields that are the sender's.
    pub(crate) fn info(&self, now: Ns, info: &mut TcpInfo) {
        let segments = |of: &dyn Fn(EntryState, bool) -> bool| {
            let matching = self
                .board
                .entries()
                .filter(|e| of(e.state, e.retransmitted));
            matching.map(|e| u32::from(e.segments)).sum::<u32>()
        };
        info.ca_state = self.state;
        info.retransmits = self.retransmits.min(u32::from(u8::MAX)) as u8;
        info.backoff = self.rtt.backoff();
        info.rto = self.rtt.rto();
        info.snd_mss = self.mss();
        info.unacked = segments(&|_, _| true);
        info.sacked = self.board.sacked_segments();
        info.lost = segments(&|state, again| {
            state == EntryState::Lost || again && state == EntryState::InFlight
        });
        info.retrans = segments(&|state, again| again && state == EntryState::InFlight);
        info.last_data_sent = now.since(self.last_sent);
        info.rtt = self.rtt.srtt().unwrap_or(Ns(0));
        info.rttvar = self.rtt.rttvar();
        info.min_rtt = self.min_rtt.get().unwrap_or(Ns(0));
        info.snd_ssthresh = match self.window.ssthresh() {
            u32::MAX => i32::MAX as u32,
            bytes => bytes / self.mss(),
        };
        info.snd_cwnd = self.cwnd() / self.mss();
        info.reordering = self.reordering;
        info.total_retrans = self.totals.segments_retransmitted;
        info.bytes_acked = self.totals.bytes_acked;
        info.bytes_sent = self.totals.bytes_sent;
        info.bytes_retrans = self.totals.bytes_retransmitted;
        info.data_segs_out = self.totals.segments_sent;
        info.delivered = self.totals.segments_delivered;
        info.dsack_dups = self.totals.dsacks;
        info.reord_seen = self.totals.reorderings;
    }
}
