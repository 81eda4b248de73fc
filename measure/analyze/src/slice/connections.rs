//! Packets without a sender and a reader (SYN, acknowledgements, FIN, RST) are of whose process the connection is:
//! what `bpf/connections.h` does in the kernel, for recordings.
use hopscope_event::slice::SliceRecord;
use std::collections::HashSet;

const TCP: u8 = 6;
/// Of each half: the least recently used connections are forgotten, and entered again by their next packet that
/// was sent or read.
const HALF: usize = 65_536;

type End = ([u8; 16], u16);

/// TCP connections whose packets were sent or read by a selected process.
#[derive(Debug, Default)]
pub struct Connections {
    recent: HashSet<[End; 2]>,
    older: HashSet<[End; 2]>,
}

impl Connections {
    /// Whether this packet is of the process: `is_its`, it sent or read it; or it is of such a connection. To be
    /// asked of every packet, in the order of the recording.
    pub fn has(&mut self, record: &SliceRecord, is_its: bool) -> bool {
        if record.protocol != TCP {
            return is_its;
        }
        let ends = ends(record);
        let is_known = self.recent.contains(&ends) || self.older.contains(&ends);
        if is_its || is_known {
            self.enter(ends);
        }
        is_its || is_known
    }

    fn enter(&mut self, ends: [End; 2]) {
        if self.recent.len() >= HALF {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(ends);
    }
}

/// Of both directions the same.
fn ends(record: &SliceRecord) -> [End; 2] {
    let mut ends = [
        (record.source, record.source_port),
        (record.destination, record.destination_port),
    ];
    ends.sort_unstable();
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::slice::sample;

    #[test]
    fn what_nobody_sent_or_read_is_of_its_connection() {
        let mut connections = Connections::default();
        let data = sample::record(1);
        let mut answer = data;
        std::mem::swap(&mut answer.source, &mut answer.destination);
        (answer.source_port, answer.destination_port) = (80, 40_000);
        let mut other = data;
        other.source_port += 1;
        assert!(!connections.has(&answer, false), "nothing is known of it");
        assert!(connections.has(&data, true));
        assert!(connections.has(&answer, false));
        assert!(!connections.has(&other, false));
    }

    #[test]
    fn datagrams_are_of_no_connection() {
        let mut connections = Connections::default();
        let mut datagram = sample::record(1);
        datagram.protocol = 17;
        assert!(connections.has(&datagram, true));
        assert!(!connections.has(&datagram, false));
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let mut connections = Connections::default();
        let used = sample::record(1);
        let mut record = used;
        for at in 0..4 * HALF as u32 {
            record.source[4..8].copy_from_slice(&(at + 1).to_ne_bytes());
            assert!(connections.has(&record, true));
            assert!(connections.has(&used, at == 0));
        }
        assert!(connections.recent.len() + connections.older.len() <= 2 * HALF);
    }
}
