//! Offloads between the engine's terms and a port's, which are virtio's (virtio 1.2, 5.1.6).
use hopscope_netio::{Offload, Outgoing};
use hopscope_stack_engine::frame::{RxChecksum, RxMeta, TxFrame};

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;

/// A checksum that is still to be computed never left this machine: the bytes are what was sent.
#[must_use]
pub fn received(offload: Offload) -> RxMeta {
    RxMeta {
        checksum: if offload.flags & NEEDS_CSUM == 0 {
            RxChecksum::Unknown
        } else {
            RxChecksum::Good
        },
        segment_bytes: if offload.gso_type == GSO_NONE {
            0
        } else {
            offload.gso_size
        },
        for_all: false,
    }
}

#[must_use]
pub fn outgoing(frame: TxFrame) -> Outgoing {
    let mut offload = Offload::default();
    if let Some(checksum) = frame.checksum {
        offload.flags = NEEDS_CSUM;
        offload.csum_start = checksum.start;
        offload.csum_offset = checksum.offset;
    }
    if let Some(segments) = frame.segmentation {
        offload.gso_type = if segments.ipv6 { GSO_TCPV6 } else { GSO_TCPV4 };
        offload.gso_size = segments.segment_bytes;
        offload.hdr_len = segments.header_bytes;
    }
    Outgoing {
        len: frame.len,
        offload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_stack_engine::frame::{PartialChecksum, Segmentation};

    #[test]
    fn segments_keep_their_size_both_ways() {
        let frame = TxFrame {
            len: 9_000,
            checksum: Some(PartialChecksum {
                start: 34,
                offset: 16,
            }),
            segmentation: Some(Segmentation {
                ipv6: false,
                segment_bytes: 1_448,
                header_bytes: 66,
            }),
            socket: None,
            payload_bytes: 8_934,
        };
        let offload = outgoing(frame).offload;
        assert_eq!((offload.csum_start, offload.csum_offset), (34, 16));
        assert_eq!((offload.gso_type, offload.hdr_len), (GSO_TCPV4, 66));
        let meta = received(offload);
        assert_eq!(
            (meta.checksum, meta.segment_bytes),
            (RxChecksum::Good, 1_448)
        );
    }

    #[test]
    fn a_whole_frame_is_verified() {
        let meta = received(Offload::default());
        assert_eq!(
            (meta.checksum, meta.segment_bytes),
            (RxChecksum::Unknown, 0)
        );
    }
}
