use super::super::tcp_options::Timestamps;
use super::*;
use proptest::prelude::*;

pub(in super::super) fn header() -> impl Strategy<Value = Header> {
    let ports = (any::<u16>(), any::<u16>(), any::<u16>(), any::<u16>());
    (ports, any::<(u32, u32)>(), any::<u8>(), options()).prop_map(
        |((source_port, destination_port, window, urgent), (seq, ack), flags, options)| Header {
            source_port,
            destination_port,
            seq,
            ack,
            flags: Flags(flags),
            window,
            urgent,
            options,
        },
    )
}

fn options() -> impl Strategy<Value = TcpOptions> {
    (
        any::<Option<u16>>(),
        prop::option::of(0u8..=14),
        any::<bool>(),
        any::<Option<(u32, u32)>>(),
        prop::collection::vec(any::<(u32, u32)>(), 0..=4),
    )
        .prop_map(|(mss, window_scale, sack_permitted, timestamps, blocks)| {
            let mut options = TcpOptions {
                mss,
                window_scale,
                sack_permitted,
                timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
                ..TcpOptions::default()
            };
            for (left, right) in blocks {
                options.sack.push(left, right);
            }
            options
        })
}

proptest! {
    #[test]
    fn rfc9293_3_1_what_is_sent_is_received(mut header in header(), payload: Vec<u8>) {
        let mut bytes = vec![0xee; MAX_HEADER_BYTES];
        let len = header.emit(&mut bytes);
        prop_assert_eq!(len, header.len());
        bytes.truncate(len);
        bytes.extend(&payload);
        let segment = Segment::parse(&bytes).unwrap();
        let (options, malformed) = TcpOptions::parse(segment.options);
        prop_assert!(!malformed);
        header.options.sack.truncate(options.sack.as_slice().len());
        prop_assert_eq!(segment.payload, payload);
        let received = Header {
            source_port: segment.source_port,
            destination_port: segment.destination_port,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window,
            urgent: segment.urgent,
            options,
        };
        prop_assert_eq!(received, header);
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(segment) = Segment::parse(&bytes) {
            let (options, _) = TcpOptions::parse(segment.options);
            prop_assert!(options.window_scale.is_none_or(|s| s <= 14));
            prop_assert!(segment.options.len() <= 40);
        }
        let _ = TcpOptions::parse(&bytes);
    }
}

#[test]
fn rfc2018_3_three_blocks_beside_timestamps() {
    let mut options = TcpOptions {
        timestamps: Some(Timestamps::default()),
        ..TcpOptions::default()
    };
    for i in 0..4 {
        assert!(options.sack.push(i, i + 1));
    }
    assert!(!options.sack.push(9, 10));
    assert_eq!(options.len(), 40);
    options.timestamps = None;
    assert_eq!(options.len(), 36);
}

#[test]
fn rfc9293_must_7_a_bad_length_ends_the_options() {
    for (bytes, mss) in [
        (&[2, 4, 5, 180, 8, 0][..], Some(1460)),
        (&[2, 4, 5, 180, 8, 1], Some(1460)),
        (&[2, 4, 5, 180, 8, 10, 0, 0], Some(1460)),
        (&[2, 4, 5, 180, 3], Some(1460)),
        (&[2, 3, 5, 1], None),
        (&[5, 9, 0, 0, 0, 0, 0, 0, 0], None),
    ] {
        let (options, malformed) = TcpOptions::parse(bytes);
        assert!(malformed, "{bytes:?}");
        assert_eq!(options.mss, mss);
    }
}

#[test]
fn rfc9293_must_6_unknown_options_are_skipped() {
    let (options, malformed) = TcpOptions::parse(&[254, 6, 1, 2, 3, 4, 1, 3, 3, 99, 0, 77]);
    assert!(!malformed);
    assert_eq!(options.window_scale, Some(14), "RFC 7323, 2.3");
}

#[test]
fn rfc9293_3_1_data_offset_is_checked() {
    let mut bytes = [0u8; 24];
    for (offset, expected) in [
        (4, Err(Malformed::Length)),
        (5, Ok(4)),
        (6, Ok(0)),
        (7, Err(Malformed::Length)),
    ] {
        bytes[12] = offset << 4;
        assert_eq!(Segment::parse(&bytes).map(|s| s.payload.len()), expected);
    }
    assert_eq!(
        Segment::parse(&bytes[..19]).err(),
        Some(Malformed::Truncated)
    );
}
