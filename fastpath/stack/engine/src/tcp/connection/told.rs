//! What TCP_INFO tells.
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
        self.sender.info(now, &mut info);
        info
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
        snd_wnd: 0,
        rcv_wnd: 0,
    }
}
