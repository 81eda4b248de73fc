//! What TCP_INFO tells.
use super::limited::Limit;
use super::state::Connection;
use crate::info::{CongestionState, TcpState};
use crate::{Ns, TcpInfo};

impl Connection {
    pub(crate) fn info(&self, now: Ns) -> TcpInfo {
        let mut info = TcpInfo {
            probes: self.probes.out,
            backoff: self.probes.backoff,
            options_timestamps: self.ts.on,
            options_sack: self.sack,
            options_window_scaling: self.receive.wscale > 0 || self.send.wscale > 0,
            snd_wscale: self.send.wscale,
            rcv_wscale: self.receive.wscale,
            ato: self.ack.ato,
            snd_mss: self.sender.mss(),
            rcv_mss: self.ack.rcv_mss,
            advmss: self.receive.space.advmss,
            pmtu: u32::from(self.mtu),
            last_data_sent: now.since(self.last_data_sent),
            last_data_recv: now.since(self.ack.last_data),
            last_ack_recv: now.since(self.last_ack_received),
            rcv_rtt: self.receive.space.rtt(),
            rcv_space: self.receive.space.copied,
            rcv_ssthresh: self.receive.space.ssthresh,
            bytes_acked: self.totals.bytes_acked,
            bytes_received: self.totals.bytes_received,
            segs_out: self.totals.segs_out,
            segs_in: self.totals.segs_in,
            data_segs_in: self.totals.data_segs_in,
            notsent_bytes: self.unsent_bytes(),
            rcv_ooopack: self.totals.out_of_order,
            snd_wnd: self.send.window,
            rcv_wnd: self.receive_window(),
            ..empty(self.state)
        };
        (info.busy_time, info.rwnd_limited, info.sndbuf_limited) = self.limited.spans(now);
        self.sender.info(now, &mut info);
        info
    }
}

impl Connection {
    /// After each call and step that may have changed it.
    pub(crate) fn note_limit(&mut self, now: Ns) {
        let limit = self.limit();
        if limit != self.limited.now {
            self.limited.set(now, limit);
        }
    }

    fn limit(&self) -> Limit {
        let nxt = self.sender.snd_nxt();
        let unsent = self.unsent_bytes();
        if self.unsent() == 0 && self.sender.snd_una() == nxt {
            Limit::Idle
        } else if self.sender.is_cwnd_full() {
            Limit::Other
        } else if unsent > 0 {
            let next = unsent.min(self.sender.mss());
            match self.send_edge().since(nxt) < next as i32 {
                true => Limit::Window,
                false => Limit::Other,
            }
        } else if self.send.no_space {
            Limit::Buffer
        } else {
            Limit::Other
        }
    }
}

/// Of a socket without a connection.
pub(crate) fn empty(state: TcpState) -> TcpInfo {
    TcpInfo {
        state,
        ca_state: CongestionState::Open,
        retransmits: 0,
        probes: 0,
        backoff: 0,
        options_timestamps: false,
        options_sack: false,
        options_window_scaling: false,
        snd_wscale: 0,
        rcv_wscale: 0,
        rto: Ns(0),
        ato: Ns(0),
        snd_mss: 0,
        rcv_mss: 0,
        advmss: 0,
        pmtu: 0,
        unacked: 0,
        sacked: 0,
        lost: 0,
        retrans: 0,
        last_data_sent: Ns(0),
        last_data_recv: Ns(0),
        last_ack_recv: Ns(0),
        rtt: Ns(0),
        rttvar: Ns(0),
        min_rtt: Ns(0),
        snd_ssthresh: 0,
        snd_cwnd: 0,
        rcv_rtt: Ns(0),
        rcv_space: 0,
        rcv_ssthresh: 0,
        reordering: 0,
        total_retrans: 0,
        bytes_acked: 0,
        bytes_received: 0,
        bytes_sent: 0,
        bytes_retrans: 0,
        segs_out: 0,
        segs_in: 0,
        data_segs_out: 0,
        data_segs_in: 0,
        notsent_bytes: 0,
        delivered: 0,
        dsack_dups: 0,
        reord_seen: 0,
        rcv_ooopack: 0,
        busy_time: Ns(0),
        rwnd_limited: Ns(0),
        sndbuf_limited: Ns(0),
        snd_wnd: 0,
        rcv_wnd: 0,
    }
}
