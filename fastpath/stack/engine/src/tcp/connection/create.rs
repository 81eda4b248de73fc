//! A connection begins, established, with what the handshake agreed on.
use super::delayed_ack::DelayedAck;
use super::limited::Limited;
use super::sacks::Sacks;
use super::space::ReceiveSpace;
use super::state::{Connection, NEVER, Probes, Receive, Send, Timestamps, Totals};
use super::window::effective_mss;
use crate::Ns;
use crate::buffer::{ReceiveBuffer, SendBuffer};
use crate::info::TcpState;
use crate::ip::Hop;
use crate::tcp::challenge::InvalidLimit;
use crate::tcp::handshake::Agreed;
use crate::tcp::options::SocketOptions;
use crate::tcp::secrets::TIMESTAMP_TICK;
use crate::tcp::sender::{Sender, SenderConfig};
use crate::tcp::seq::Seq;
use crate::tcp::tuple::Tuple;
use crate::{Counters, TcpConfig};

/// Both SYNs are acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning {
    pub(crate) tuple: Tuple,
    pub(crate) hash: u32,
    pub(crate) agreed: Agreed,
    pub(crate) iss: Seq,
    pub(crate) irs: Seq,
    /// What our SYN advertised, in bytes.
    pub(crate) receive_window: u32,
    /// What the peer's last segment advertised, in bytes, and its sequence number.
    pub(crate) send_window: u32,
    pub(crate) wl1: Seq,
    /// Of the path, and the MSS that we announced.
    pub(crate) mtu: u16,
    pub(crate) advmss: u16,
    /// From our SYN to its acknowledgement, where it is known which one was answered.
    pub(crate) rtt: Option<Ns>,
    pub(crate) syn_retransmissions: u32,
}

impl Connection {
    pub(crate) fn new(
        now: Ns,
        config: &TcpConfig,
        counters: &mut Counters,
        options: SocketOptions,
        begin: &Beginning,
    ) -> Connection {
        let agreed = &begin.agreed;
        let option_bytes = if agreed.timestamps { 12 } else { 0 };
        let v4 = begin.tuple.peer.is_v4();
        let mss = effective_mss(
            begin.mtu,
            v4,
            agreed.peer_mss,
            option_bytes,
            begin.send_window,
        );
        let mut sending = SenderConfig::new(config, mss, agreed.sack, TIMESTAMP_TICK);
        sending.congestion = options.congestion;
        let first = begin.iss + 1;
        let mut sender = Sender::new(&sending, first, now);
        sender.handshake_rtt(now, begin.rtt, begin.syn_retransmissions);
        counters.tcp_curr_estab += 1;
        let advmss = u32::from(begin.advmss).saturating_sub(option_bytes).max(36);
        let limit = options
            .receive_buffer
            .unwrap_or(config.receive_buffer.initial);
        let next = begin.irs + 1;
        let space = ReceiveSpace::new(
            now,
            limit,
            options.receive_buffer.is_some(),
            options.window_clamp,
            begin.receive_window,
            advmss,
            next,
        );
        // Linux tcp_initialize_rcv_mss: what a peer that says nothing sends, until it is seen.
        let rcv_mss = advmss.min(mss).min(begin.receive_window / 2).clamp(88, 536);
        let send_limit = sender.wanted_buffer_bytes().max(config.send_buffer.initial);
        let mut connection = Connection {
            tuple: begin.tuple,
            hash: begin.hash,
            state: TcpState::Established,
            orphan: false,
            abandoned: false,
            reset_behind: false,
            counted: false,
            shut_read: false,
            shut_write: false,
            done: false,
            event: false,
            time_wait: false,
            queued: false,
            attached: true,
            established: true,
            connect_pending: false,
            sack: agreed.sack,
            mtu: begin.mtu,
            error: None,
            soft_error: None,
            sender,
            send: Send {
                buffer: SendBuffer::default(),
                end: first,
                fin: false,
                more: false,
                hold: false,
                force: false,
                no_space: false,
                window: begin.send_window,
                wl1: begin.wl1,
                max_window: begin.send_window,
                wscale: agreed.snd_wscale,
                small: begin.iss,
                limit: send_limit.min(config.send_buffer.max),
                pressed_limit: u32::MAX,
                starved: false,
                peer_mss: agreed.peer_mss,
            },
            receive: Receive {
                buffer: ReceiveBuffer::default(),
                next,
                window: begin.receive_window,
                wup: next,
                wscale: agreed.rcv_wscale,
                fin: None,
                sacks: Sacks::default(),
                space,
            },
            ack: DelayedAck::new(rcv_mss),
            ts: Timestamps {
                on: agreed.timestamps,
                offset: agreed.ts_offset,
                recent: agreed.ts_recent,
                recent_at: now,
            },
            probes: Probes::default(),
            tail: None,
            invalid: InvalidLimit::default(),
            fin_wait_deadline: None,
            armed: NEVER,
            last_ack_received: now,
            last_data_sent: now,
            totals: Totals::default(),
            limited: Limited::default(),
            options,
            hop: Hop::default(),
        };
        connection.ack.last_data = now;
        connection.ack.set_quick(options.quick_ack);
        connection.restart_keep_alive(now);
        connection
    }
}
