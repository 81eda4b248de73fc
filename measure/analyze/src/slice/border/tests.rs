use super::*;
use hopscope_event::slice::sample::{self, BORDER, over_veth, record, stamped};
use hopscope_event::slice::{Point, SliceRecord};

const READER: u32 = 77;
/// Of `over_veth`: from its first stamp to the return of the receiving call.
const RETURN: u64 = 12_068;

fn call(function: u32, from_ns: u64, to_ns: u64) -> TimedCall {
    TimedCall {
        thread: ThreadIx(0),
        function: FunctionId(function),
        depth: 0,
        entry: Tsc(from_ns),
        from_ns,
        to_ns,
    }
}

fn numbers(calls: &[TimedCall]) -> Vec<u32> {
    calls.iter().map(|call| call.function.0).collect()
}

fn borders(packets: &[SliceRecord], calls: &[TimedCall], keep: usize) -> Borders {
    let mut calls_of = SystemCalls::default();
    for packet in packets {
        calls_of.packet(packet);
    }
    let mut borders = Borders::new(&sample::entry().calibration, calls_of, Some(keep));
    for packet in packets {
        borders.want(packet);
    }
    for call in calls {
        borders.call(READER, *call);
    }
    borders
}

fn is_reader(tid: u32) -> bool {
    tid == READER
}

/// A request, read by the reader; its call returns at `t0_ns + RETURN`.
fn request(n: u64) -> SliceRecord {
    let mut request = over_veth(n);
    request.t0_ns = n * 1_000_000;
    request.rx_call_seq = request.tcp_seq;
    request
}

/// Two requests, and their responses, which the reader sends 100 µs after them.
fn exchanges() -> Vec<SliceRecord> {
    let response = |n: u64| {
        let stamps = [(Point::TxSyscall, 0, 0, 0), (Point::TxTransport, 500, 0, 0)];
        let mut response = stamped(record(10 + n), &stamps);
        response.t0_ns = n * 1_000_000 + 100_000;
        (response.tx_tid, response.rx_tid) = (READER, 0);
        response
    };
    vec![request(1), response(1), request(2), response(2)]
}

#[test]
fn each_request_has_the_functions_between_its_return_and_the_next_call() {
    let packets = exchanges();
    let calls = [
        call(1, 1_000_100, 1_012_900),
        call(2, 1_013_000, 1_050_000),
        call(3, 1_060_000, 1_160_000),
        call(4, 2_013_000, 2_020_000),
        call(5, 2_200_000, 2_210_000),
    ];
    let mut borders = borders(&packets, &calls, 100);
    let first = borders.of(&packets[0], is_reader);
    assert_eq!(first.before_send, None);
    let after = first.after_receive.unwrap();
    assert_eq!(numbers(&after.around), [1]);
    assert_eq!(numbers(&after.calls), [2, 3]);
    // The function around the receiving call stamps its exit first.
    let border = after.border.unwrap();
    assert_eq!(border.raw, 12_900 - RETURN);
    assert_eq!(
        border.corrected(),
        Some(12_900 - RETURN - u64::from(BORDER))
    );
    let before = borders.of(&packets[1], is_reader).before_send.unwrap();
    assert_eq!(
        (numbers(&before.around), numbers(&before.calls)),
        (vec![3], vec![2])
    );
    assert_eq!(before.border.unwrap().raw, 100_000 - 60_000);
    let second = borders.of(&packets[2], is_reader).after_receive.unwrap();
    assert_eq!(numbers(&second.calls), [4]);
    let counts = borders.counts();
    assert_eq!((counts.crossing, counts.unmeasured_tx), (0, 2));
}

#[test]
fn packets_of_one_call_have_the_same_functions() {
    let mut packets = [request(1), request(1)];
    packets[1].tcp_seq += 64;
    packets[0].rx_returned = 128;
    packets[1].rx_returned = 128;
    packets[1].rx_call_seq = packets[0].rx_call_seq;
    let end = packets[0].t0_ns + RETURN;
    let mut borders = borders(&packets, &[call(1, end + 10, end + 20)], 100);
    for packet in &packets {
        let after = borders.of(packet, is_reader).after_receive.unwrap();
        assert_eq!(numbers(&after.calls), [1]);
        // Less than an empty border reads.
        let border = after.border.unwrap();
        assert_eq!((border.raw, border.corrected()), (10, Some(0)));
        assert!(border.flags.contains(PieceFlags::BELOW_ZERO));
    }
}

#[test]
fn a_call_that_returned_other_bytes_is_not_of_the_packet() {
    let mut packet = request(1);
    for (seq, returned, is_its) in [
        (packet.tcp_seq - 10, 11, true),
        (packet.tcp_seq - 10, 10, false),
        (packet.tcp_seq + 63, 5, true),
        (packet.tcp_seq + 64, 5, false),
        (packet.tcp_seq, -11, false),
    ] {
        (packet.rx_call_seq, packet.rx_returned) = (seq, returned);
        let mut borders = borders(&[packet], &[], 100);
        assert_eq!(
            borders.of(&packet, is_reader).after_receive.is_some(),
            is_its
        );
        assert_eq!(borders.counts().other_bytes, u64::from(!is_its));
    }
    // Sequence numbers wrap.
    (packet.tcp_seq, packet.rx_call_seq, packet.rx_returned) = (3, u32::MAX - 3, 8);
    assert!(windows::has_bytes_of(&packet));
}

#[test]
fn what_neither_holds_a_system_call_nor_lies_beside_it_is_counted() {
    let packets = exchanges();
    let copy = packets[0].t0_ns + 11_076;
    for crossing in [
        call(1, copy + 5, copy + 50_000),
        call(1, copy - 5, copy + 5),
    ] {
        let mut borders = borders(&packets, &[crossing], 100);
        assert_eq!(borders.counts().crossing, 1);
        let after = borders.of(&packets[0], is_reader).after_receive.unwrap();
        assert!(after.calls.is_empty() && after.around.is_empty() && after.border.is_none());
    }
}

#[test]
fn what_is_not_kept_is_counted() {
    let packets = exchanges();
    let calls: Vec<_> = (0..5)
        .map(|n| {
            call(
                n,
                1_020_000 + 10 * u64::from(n),
                1_020_005 + 10 * u64::from(n),
            )
        })
        .collect();
    let mut borders = borders(&packets, &calls, 3);
    let after = borders.of(&packets[0], is_reader).after_receive.unwrap();
    assert_eq!(
        (numbers(&after.calls), borders.counts().beyond),
        (vec![0, 1, 2], 2)
    );
}

#[test]
fn the_nearest_call_of_each_side_is_known_though_none_is_kept() {
    let packets = exchanges();
    let calls = [
        call(1, 1_013_000, 1_090_000),
        call(2, 1_014_000, 1_080_000),
        call(3, 1_060_000, 1_160_000),
        call(4, 1_095_000, 1_150_000),
    ];
    let mut calls_of = SystemCalls::default();
    packets.iter().for_each(|packet| calls_of.packet(packet));
    let mut borders = Borders::new(&sample::entry().calibration, calls_of, None);
    packets.iter().for_each(|packet| borders.want(packet));
    calls.iter().for_each(|call| borders.call(READER, *call));
    let after = borders.of(&packets[0], is_reader).after_receive.unwrap();
    assert_eq!(numbers(after.nearest.as_slice()), [1]);
    let before = borders.of(&packets[1], is_reader).before_send.unwrap();
    assert_eq!(numbers(before.nearest.as_slice()), [4]);
    assert!(after.calls.is_empty() && borders.counts().beyond == 0);
    assert_eq!(numbers(&before.around), [4]);
}

#[test]
fn a_side_without_its_stamp_is_counted() {
    let mut packet = request(1);
    packet.stamps[Point::RxReturn as usize] = Default::default();
    packet.tx_tid = READER;
    packet.stamps[Point::TxSyscall as usize] = Default::default();
    let mut borders = borders(&[packet], &[], 100);
    assert_eq!(borders.of(&packet, is_reader), Sides::default());
    let counts = borders.counts();
    assert_eq!((counts.no_return, counts.no_entry), (1, 1));
}
