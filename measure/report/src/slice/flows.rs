//! Sequence numbers relative to the first packet that was seen of a connection, as tcpdump shows
//! them.
use hopscope_event::slice::SliceRecord;
use std::collections::HashMap;
use std::net::SocketAddr;

const SYN: u8 = 2;
/// Connections beyond are shown with absolute numbers.
const FLOWS_MAX: usize = 1 << 16;

/// Where the two directions of a connection begin; by the direction seen first.
#[derive(Clone, Copy)]
struct Begin {
    seq: u32,
    ack: u32,
}

/// Relative numbers unless said otherwise: they need packets in the order of time.
#[derive(Default)]
pub(super) struct Flows {
    is_absolute: bool,
    known: HashMap<(SocketAddr, SocketAddr), Begin>,
}

/// What is shown of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub seq: u32,
    pub ack: u32,
}

impl Flows {
    pub(super) fn new(is_absolute: bool) -> Flows {
        Flows {
            is_absolute,
            ..Flows::default()
        }
    }

    /// The first packet of a connection is shown as it is.
    pub(super) fn numbers(&mut self, record: &SliceRecord) -> Numbers {
        let (from, to) = (record.source_address(), record.destination_address());
        let absolute = Numbers {
            seq: record.tcp_seq,
            ack: record.tcp_ack,
        };
        if self.is_absolute {
            return absolute;
        }
        let is_new = record.tcp_flags & SYN != 0 && record.tcp_flags & 0x10 == 0;
        if let Some(begin) = self.known.get(&(from, to)).filter(|_| !is_new) {
            return Numbers {
                seq: record.tcp_seq.wrapping_sub(begin.seq),
                ack: record.tcp_ack.wrapping_sub(begin.ack),
            };
        }
        if let Some(begin) = self.known.get(&(to, from)).copied().filter(|_| !is_new) {
            // The answer to a SYN shows its own number as it is, and what it acknowledges.
            if record.tcp_flags & SYN != 0 {
                let answered = Begin {
                    ack: record.tcp_seq,
                    ..begin
                };
                self.known.insert((to, from), answered);
                return Numbers {
                    seq: record.tcp_seq,
                    ack: record.tcp_ack.wrapping_sub(begin.seq),
                };
            }
            return Numbers {
                seq: record.tcp_seq.wrapping_sub(begin.ack),
                ack: record.tcp_ack.wrapping_sub(begin.seq),
            };
        }
        if self.known.len() < FLOWS_MAX {
            let begin = Begin {
                seq: record.tcp_seq,
                ack: record.tcp_ack.wrapping_sub(1),
            };
            self.known.remove(&(to, from));
            self.known.insert((from, to), begin);
        }
        absolute
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::slice::sample::record;

    fn packet(back: bool, flags: u8, seq: u32, ack: u32) -> SliceRecord {
        let mut packet = record(1);
        if back {
            std::mem::swap(&mut packet.source, &mut packet.destination);
            std::mem::swap(&mut packet.source_port, &mut packet.destination_port);
        }
        (packet.tcp_flags, packet.tcp_seq, packet.tcp_ack) = (flags, seq, ack);
        packet
    }

    #[test]
    fn a_connection_from_its_beginning() {
        let mut flows = Flows::default();
        let mut shown = |back, flags, seq, ack| {
            let numbers = flows.numbers(&packet(back, flags, seq, ack));
            (numbers.seq, numbers.ack)
        };
        assert_eq!(shown(false, SYN, 500, 0), (500, 0));
        assert_eq!(shown(true, SYN | 0x10, 9_000, 501), (9_000, 1));
        assert_eq!(shown(false, 0x10, 501, 9_001), (1, 1));
        assert_eq!(shown(false, 0x18, 501, 9_001), (1, 1));
        assert_eq!(shown(true, 0x10, 9_001, 565), (1, 65));
        // The same ports again.
        assert_eq!(shown(false, SYN, 70, 0), (70, 0));
    }

    #[test]
    fn absolute_whatever_came_before() {
        let mut flows = Flows::new(true);
        for back in [false, true, false] {
            let numbers = flows.numbers(&packet(back, 0x18, 500, 800));
            assert_eq!((numbers.seq, numbers.ack), (500, 800));
        }
    }

    #[test]
    fn a_connection_from_its_middle() {
        let mut flows = Flows::default();
        let mut shown = |back, seq, ack| {
            let numbers = flows.numbers(&packet(back, 0x18, seq, ack));
            (numbers.seq, numbers.ack)
        };
        assert_eq!(shown(false, 500, 800), (500, 800));
        assert_eq!(shown(true, 800, 564), (1, 64));
        assert_eq!(shown(false, 564, 864), (64, 65));
    }
}
