//! What tcpdump says of a packet, out of the record alone: addresses, flags, numbers, length.
use super::flows::Flows;
use hopscope_event::slice::{SliceRecord, Sliced};
use std::fmt::Write;
use std::net::SocketAddr;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

const FLAGS: [(u8, char); 8] = [
    (0x01, 'F'),
    (0x02, 'S'),
    (0x04, 'R'),
    (0x08, 'P'),
    (0x10, '.'),
    (0x20, 'U'),
    (0x40, 'E'),
    (0x80, 'W'),
];

/// Port after a point, as tcpdump writes it.
fn endpoint(address: SocketAddr, has_port: bool) -> String {
    if has_port {
        format!("{}.{}", address.ip(), address.port())
    } else {
        address.ip().to_string()
    }
}

pub(super) fn of(packet: &Sliced, quiet: bool, flows: &mut Flows) -> String {
    let record = &packet.record;
    let name = match record.family {
        4 => "IP",
        6 => "IP6",
        _ => "not IP",
    };
    let has_ports = matches!(record.protocol, TCP | UDP);
    let from = endpoint(record.source_address(), has_ports);
    let to = endpoint(record.destination_address(), has_ports);
    let mut text = format!("{name} {from} > {to}: ");
    let payload = record.payload;
    let _ = match (record.protocol, quiet) {
        (TCP, true) => write!(text, "tcp {payload}"),
        (TCP, false) => write!(text, "{}", tcp(record, flows)),
        (UDP, _) => write!(text, "UDP, length {payload}"),
        (ICMP | ICMPV6, _) => write!(text, "{}", icmp(packet)),
        (other, _) => write!(text, "ip-proto-{other}, length {payload}"),
    };
    text
}

fn tcp(record: &SliceRecord, flows: &mut Flows) -> String {
    let set = FLAGS.iter().filter(|(bit, _)| record.tcp_flags & bit != 0);
    let flags: String = set.map(|(_, letter)| *letter).collect();
    let flags = match flags.as_str() {
        "" => "none",
        flags => flags,
    };
    let numbers = flows.numbers(record);
    let mut text = format!("Flags [{flags}]");
    let (seq, payload) = (numbers.seq, record.payload);
    // SYN, FIN and RST take or name a number without data.
    let _ = match payload {
        0 if record.tcp_flags & 0x07 == 0 => Ok(()),
        0 => write!(text, ", seq {seq}"),
        _ => write!(text, ", seq {seq}:{}", seq.wrapping_add(payload)),
    };
    if record.tcp_flags & 0x10 != 0 {
        let _ = write!(text, ", ack {}", numbers.ack);
    }
    let _ = write!(text, ", win {}, length {payload}", record.tcp_window);
    text
}

/// Type and numbers of an echo are in the captured bytes only.
fn icmp(packet: &Sliced) -> String {
    let record = &packet.record;
    let six = record.protocol == ICMPV6;
    let name = if six { "ICMP6" } else { "ICMP" };
    let bytes = packet.network_bytes().unwrap_or_default();
    let header = if six {
        40
    } else {
        usize::from(bytes.first().map_or(5, |b| b & 15)) * 4
    };
    let length = (record.ip_len as usize).saturating_sub(header);
    let echo = match (six, bytes.get(header)) {
        (false, Some(8)) | (true, Some(128)) => "echo request",
        (false, Some(0)) | (true, Some(129)) => "echo reply",
        _ => return format!("{name}, length {length}"),
    };
    let half = |at: usize| {
        let pair = bytes.get(header + at..header + at + 2);
        pair.map_or("?".to_owned(), |p| {
            u16::from_be_bytes([p[0], p[1]]).to_string()
        })
    };
    format!(
        "{name} {echo}, id {}, seq {}, length {length}",
        half(4),
        half(6)
    )
}
