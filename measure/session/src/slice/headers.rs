//! The headers of a packet, as far as its record has them, for a filter to look at.
use hopscope_event::slice::SliceRecord;
use std::ops::Range;

const TCP: u8 = 6;
const UDP: u8 = 17;

pub(super) struct Headers {
    pub bytes: Vec<u8>,
    /// Bytes that are not in the record.
    pub gaps: Vec<Range<usize>>,
}

/// Options are taken for the transport's: where they stood is not in the record.
pub(super) fn of(record: &SliceRecord) -> Headers {
    let mut headers = match record.family {
        6 => network_v6(record),
        _ => network_v4(record),
    };
    let Headers { bytes, gaps } = &mut headers;
    let begin = bytes.len();
    let transport = (record.ip_len as usize)
        .saturating_sub(begin)
        .saturating_sub(record.payload as usize);
    match record.protocol {
        TCP => {
            bytes.extend(record.source_port.to_be_bytes());
            bytes.extend(record.destination_port.to_be_bytes());
            bytes.extend(record.tcp_seq.to_be_bytes());
            bytes.extend(record.tcp_ack.to_be_bytes());
            let words = (transport / 4).clamp(5, 15) as u8;
            bytes.extend([words << 4, record.tcp_flags]);
            bytes.extend(record.tcp_window.to_be_bytes());
            bytes.extend([0; 4]);
            gaps.push(begin + 16..begin + 20);
        }
        UDP => {
            bytes.extend(record.source_port.to_be_bytes());
            bytes.extend(record.destination_port.to_be_bytes());
            bytes.extend((record.payload.wrapping_add(8) as u16).to_be_bytes());
            bytes.extend([0; 2]);
            gaps.push(begin + 6..begin + 8);
        }
        _ => {}
    }
    headers
}

fn network_v4(record: &SliceRecord) -> Headers {
    let mut bytes = vec![0x45, 0];
    bytes.extend((record.ip_len as u16).to_be_bytes());
    bytes.extend(record.ip_id.to_be_bytes());
    // Not a fragment: those have no ports, and the record has.
    bytes.extend([0, 0, 0, record.protocol, 0, 0]);
    bytes.extend(&record.source[..4]);
    bytes.extend(&record.destination[..4]);
    // Type of service, time to live, checksum.
    let gaps = vec![1..2, 8..9, 10..12];
    Headers { bytes, gaps }
}

fn network_v6(record: &SliceRecord) -> Headers {
    let mut bytes = vec![0x60, 0, 0, 0];
    let len = record.ip_len.saturating_sub(40) as u16;
    bytes.extend(len.to_be_bytes());
    bytes.extend([record.protocol, 0]);
    bytes.extend(record.source);
    bytes.extend(record.destination);
    // Traffic class and flow label, hop limit.
    let gaps = vec![1..4, 7..8];
    Headers { bytes, gaps }
}
