//! A port that takes everything and gives nothing: what is measured with it ends before the kernel.
use crate::lengths::GSO_FRAME_LEN;
use crate::{Capabilities, Counters, Fill, PacketIo, PortError, Visit};

/// Frames are counted, and gone.
pub struct DiscardPort {
    slot: Box<[u8]>,
    counters: Counters,
}

impl Default for DiscardPort {
    fn default() -> DiscardPort {
        DiscardPort {
            slot: vec![0; GSO_FRAME_LEN].into(),
            counters: Counters::default(),
        }
    }
}

impl PacketIo for DiscardPort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_frame_len: self.slot.len(),
            offload: true,
        }
    }

    fn receive(&mut self, _max: usize, _visit: Visit<'_>) -> Result<usize, PortError> {
        Ok(0)
    }

    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError> {
        let max = self.slot.len();
        for sent in 0..count {
            let Some(len) = fill(&mut self.slot).checked("discard:", max)? else {
                return Ok(sent);
            };
            self.counters.sent += 1;
            self.counters.sent_bytes += len as u64;
        }
        Ok(count)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(0)
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        Ok(self.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outgoing;

    #[test]
    fn frames_are_counted_and_a_burst_ends_where_it_says() {
        let mut port = DiscardPort::default();
        let lengths = [60, GSO_FRAME_LEN, 0, 60];
        let mut next = lengths.iter();
        let mut fill = |_: &mut [u8]| Outgoing {
            len: *next.next().unwrap(),
            ..Outgoing::default()
        };
        assert_eq!(port.send(4, &mut fill).unwrap(), 2);
        let counters = port.counters().unwrap();
        assert_eq!(
            (counters.sent, counters.sent_bytes),
            (2, 60 + GSO_FRAME_LEN as u64)
        );
        let too_long = port.send(1, &mut |_| Outgoing {
            len: GSO_FRAME_LEN + 1,
            ..Outgoing::default()
        });
        assert!(matches!(too_long, Err(PortError::TooLong { .. })));
        assert_eq!(
            port.receive(10, &mut |_| panic!("nothing comes")).unwrap(),
            0
        );
    }
}
