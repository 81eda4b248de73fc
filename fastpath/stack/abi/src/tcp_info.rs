//! `struct tcp_info` of include/uapi/linux/tcp.h, whole.
use hopscope_stack_engine::{Ns, TcpInfo};

#[must_use]
pub fn bytes(info: &TcpInfo) -> Vec<u8> {
    let mut out = Vec::with_capacity(288);
    let options = u8::from(info.options_timestamps)
        | u8::from(info.options_sack) << 1
        | u8::from(info.options_window_scaling) << 2;
    out.extend([
        info.state as u8,
        info.ca_state as u8,
        info.retransmits,
        info.probes,
        info.backoff,
    ]);
    out.extend([options, info.snd_wscale | info.rcv_wscale << 4, 0]);
    let us = |span: Ns| (span.0 / 1_000) as u32;
    let ms = |span: Ns| (span.0 / 1_000_000) as u32;
    let words = |out: &mut Vec<u8>, words: &[u32]| {
        out.extend(words.iter().flat_map(|word| word.to_ne_bytes()))
    };
    let longs = |out: &mut Vec<u8>, longs: &[u64]| {
        out.extend(longs.iter().flat_map(|long| long.to_ne_bytes()))
    };
    words(
        &mut out,
        &[us(info.rto), us(info.ato), info.snd_mss, info.rcv_mss],
    );
    words(
        &mut out,
        &[info.unacked, info.sacked, info.lost, info.retrans, 0],
    );
    words(
        &mut out,
        &[
            ms(info.last_data_sent),
            0,
            ms(info.last_data_recv),
            ms(info.last_ack_recv),
        ],
    );
    words(
        &mut out,
        &[info.pmtu, info.rcv_ssthresh, us(info.rtt), us(info.rttvar)],
    );
    words(
        &mut out,
        &[
            info.snd_ssthresh,
            info.snd_cwnd,
            info.advmss,
            info.reordering,
        ],
    );
    words(
        &mut out,
        &[us(info.rcv_rtt), info.rcv_space, info.total_retrans],
    );
    // Pacing rates: none.
    longs(
        &mut out,
        &[u64::MAX, u64::MAX, info.bytes_acked, info.bytes_received],
    );
    words(
        &mut out,
        &[
            info.segs_out,
            info.segs_in,
            info.notsent_bytes,
            us(info.min_rtt),
        ],
    );
    words(&mut out, &[info.data_segs_in, info.data_segs_out]);
    // The delivery rate is not measured.
    let long_us = |span: Ns| span.0 / 1_000;
    let limits = [info.busy_time, info.rwnd_limited, info.sndbuf_limited];
    longs(&mut out, &[0]);
    longs(&mut out, &limits.map(long_us));
    words(&mut out, &[info.delivered, 0]);
    longs(&mut out, &[info.bytes_sent, info.bytes_retrans]);
    words(
        &mut out,
        &[info.dsack_dups, info.reord_seen, info.rcv_ooopack],
    );
    words(&mut out, &[info.snd_wnd, info.rcv_wnd, 0]);
    // Counters of time-outs and of accurate ECN.
    words(&mut out, &[0; 10]);
    out
}
