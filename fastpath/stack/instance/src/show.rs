//! The engine's state as JSON: names as `ss` and `nstat` have them.
use crate::Ns;
use crate::app::AppCounts;
use hopscope_netio::Counters as PortCounters;
use hopscope_stack_engine::{Connection, Counters, Engine, TcpInfo, TcpState};
use serde_json::{Map, Value, json};

/// ss(8).
pub(crate) fn state(state: TcpState) -> &'static str {
    match state {
        TcpState::Established => "ESTAB",
        TcpState::SynSent => "SYN-SENT",
        TcpState::SynReceived => "SYN-RECV",
        TcpState::FinWait1 => "FIN-WAIT-1",
        TcpState::FinWait2 => "FIN-WAIT-2",
        TcpState::TimeWait => "TIME-WAIT",
        TcpState::Closed => "UNCONN",
        TcpState::CloseWait => "CLOSE-WAIT",
        TcpState::LastAck => "LAST-ACK",
        TcpState::Listen => "LISTEN",
        TcpState::Closing => "CLOSING",
    }
}

/// Groups of /proc/net/snmp and netstat, each with its counters.
pub(crate) fn counters(counters: &Counters) -> Value {
    let mut groups: Map<String, Value> = Map::new();
    for (group, name, value) in counters.rows() {
        let entry = groups.entry(group).or_insert_with(|| json!({}));
        entry[name] = value.into();
    }
    Value::Object(groups)
}

pub(crate) fn port(counters: &PortCounters) -> Value {
    json!({
        "received": counters.received, "received_bytes": counters.received_bytes,
        "receive_dropped": counters.receive_dropped, "receive_cut": counters.receive_cut,
        "sent": counters.sent, "sent_bytes": counters.sent_bytes, "send_failed": counters.send_failed,
        "device_gone": counters.device_gone,
    })
}

pub(crate) fn app(counts: &AppCounts) -> Value {
    serde_json::to_value(counts).unwrap_or(Value::Null)
}

/// Up to `most` connections, and how many there are.
pub(crate) fn connections(engine: &Engine, now: Ns, most: usize) -> (Vec<Value>, usize) {
    let mut total = 0;
    let mut rows = Vec::new();
    for connection in engine.connections(now) {
        total += 1;
        if rows.len() < most {
            rows.push(row(&connection));
        }
    }
    (rows, total)
}

fn row(connection: &Connection) -> Value {
    let mut row = json!({
        "netid": format!("{:?}", connection.kind).to_lowercase(),
        "state": state(connection.state),
        "recv_q": connection.receive_queue, "send_q": connection.send_queue,
        "local": connection.local.to_string(),
        "peer": connection.peer.map(|peer| peer.to_string()),
    });
    if let Some(info) = &connection.info {
        row["info"] = self::info(info);
    }
    row
}

/// As `ss -ti`, times in microseconds where it has milliseconds.
fn info(info: &TcpInfo) -> Value {
    let us = |ns: Ns| ns.0 as f64 / 1e3;
    // Not limited yet: the kernel shows none.
    let ssthresh = (info.snd_ssthresh < 0x7fff_ffff).then_some(info.snd_ssthresh);
    let min_rtt = (info.min_rtt.0 > 0 && info.min_rtt.0 < u64::MAX / 2).then(|| us(info.min_rtt));
    let mut row = json!({
        "ca_state": format!("{:?}", info.ca_state).to_lowercase(),
        "ts": info.options_timestamps, "sack": info.options_sack,
        "wscale": [info.snd_wscale, info.rcv_wscale],
        "rto_us": us(info.rto), "backoff": info.backoff,
        "rtt_us": us(info.rtt), "rttvar_us": us(info.rttvar), "minrtt_us": min_rtt,
        "ato_us": us(info.ato),
        "mss": info.snd_mss, "pmtu": info.pmtu, "rcvmss": info.rcv_mss, "advmss": info.advmss,
        "cwnd": info.snd_cwnd, "ssthresh": ssthresh,
        "bytes_sent": info.bytes_sent, "bytes_retrans": info.bytes_retrans,
        "bytes_acked": info.bytes_acked, "bytes_received": info.bytes_received,
        "segs_out": info.segs_out, "segs_in": info.segs_in,
        "data_segs_out": info.data_segs_out, "data_segs_in": info.data_segs_in,
        "unacked": info.unacked, "retrans": [info.retrans, info.total_retrans],
        "lost": info.lost, "sacked": info.sacked, "dsack_dups": info.dsack_dups,
        "reordering": info.reordering, "reord_seen": info.reord_seen,
        "rcv_rtt_us": us(info.rcv_rtt), "rcv_space": info.rcv_space,
        "rcv_ssthresh": info.rcv_ssthresh, "rcv_ooopack": info.rcv_ooopack,
        "notsent": info.notsent_bytes, "snd_wnd": info.snd_wnd, "rcv_wnd": info.rcv_wnd,
        "lastsnd_ms": info.last_data_sent.0 / 1_000_000, "lastrcv_ms": info.last_data_recv.0 / 1_000_000,
        "lastack_ms": info.last_ack_recv.0 / 1_000_000,
    });
    let limits = [
        ("busy_ms", info.busy_time),
        ("rwnd_limited_ms", info.rwnd_limited),
        ("sndbuf_limited_ms", info.sndbuf_limited),
    ];
    for (name, span) in limits {
        row[name] = (span.0 / 1_000_000).into();
    }
    row
}
