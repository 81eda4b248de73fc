//! Packets and recordings made by hand, for the tests of everything that reads them.
use super::{
    Constant, Counter, Counters, HookCost, HookEntry, InterfaceEntry, Point, RegionEntry,
    SliceBytes, SliceCalibration, SliceEntry, SliceEvent, SliceFlags, SliceRecord, SliceSummary,
    Sliced, StampWord,
};
use alloc::borrow::ToOwned;
use alloc::vec;
use alloc::vec::Vec;

pub const TAU_O: u32 = 70;
pub const HIT: u32 = 100;
pub const BEGIN: u32 = 40;
pub const BORDER: u32 = 150;

/// A record of no stamps: 10.0.0.1:40000 to 10.0.0.2:80, 64 bytes of data.
pub fn record(id: u64) -> SliceRecord {
    let mut record = SliceRecord::from_bytes(&[0; SliceRecord::BYTES]);
    record.id = id;
    record.t0_ns = 1_000_000_000 + 50_000 * id;
    record.tx_cookie = 11;
    record.rx_cookie = 12;
    (record.tx_tgid, record.tx_tid) = (123, 124);
    (record.rx_tgid, record.rx_tid) = (77, 77);
    (record.tx_ifindex, record.rx_ifindex) = (3, 4);
    (record.tx_netns, record.rx_netns) = (4_026_532_001, 4_026_532_002);
    record.source[..4].copy_from_slice(&[10, 0, 0, 1]);
    record.destination[..4].copy_from_slice(&[10, 0, 0, 2]);
    (record.source_port, record.destination_port) = (40_000, 80);
    record.tcp_seq = 1_000_000 + 64 * id as u32;
    record.tcp_ack = 2_000_000;
    (record.payload, record.ip_len) = (64, 116);
    (record.tcp_window, record.tcp_flags) = (502, 0x18);
    (record.protocol, record.family) = (6, 4);
    record.rx_returned = 64;
    record.tx_call_len = 64;
    record.tx_comm[..4].copy_from_slice(b"curl");
    record.rx_comm[..5].copy_from_slice(b"nginx");
    record
}

/// `record` with stamps: point, ns since the first, cost of probes since the stamp before, processor.
pub fn stamped(mut record: SliceRecord, stamps: &[(Point, u32, u16, u16)]) -> SliceRecord {
    for (point, delta, inner, cpu) in stamps {
        record.stamps[*point as usize] = StampWord::new(*delta, *inner, *cpu);
    }
    record.stamps_taken = record.taken().count() as u8;
    record
}

/// As over a pair of virtual devices without a queueing discipline, on one processor: the driver
/// returns after it has delivered the packet to the receiving side.
pub fn over_veth(id: u64) -> SliceRecord {
    use Point::*;
    stamped(
        record(id),
        &[
            (TxSyscall, 0, 0, 0),
            (TxTransport, 671, 0, 0),
            (TxIpOut, 1_762, 0, 0),
            (TxDevQueue, 2_503, 0, 0),
            (TxDriver, 2_784, 0, 0),
            (RxDriver, 3_084, 0, 0),
            (TxDone, 3_305, 0, 0),
            (RxCore, 3_685, 0, 0),
            (RxIp, 4_206, 0, 0),
            (RxTransport, 4_526, 0, 0),
            (RxSocket, 5_688, 0, 0),
            (RxWaking, 5_938, 200, 0),
            (RxSchedIn, 10_355, 0xfffe, 1),
            (RxCopy, 11_076, 0, 1),
            (RxCopied, 11_437, 0, 1),
            (RxReceived, 11_867, 0, 1),
            (RxReturn, 12_068, 0, 1),
        ],
    )
}

/// Sent through a queueing discipline and seen on egress only.
pub fn through_queue(id: u64) -> SliceRecord {
    use Point::*;
    let mut record = stamped(
        record(id),
        &[
            (TxSyscall, 0, 0, 1),
            (TxTransport, 611, 0, 1),
            (TxIpOut, 1_693, 0, 1),
            (TxDevQueue, 2_404, 0, 1),
            (TxQdiscEnqueue, 2_654, 0, 1),
            (TxQdiscDequeue, 2_994, 0, 1),
            (TxDriver, 3_285, 0, 1),
            (TxDone, 3_796, 110, 1),
        ],
    );
    (record.rx_tgid, record.rx_tid, record.rx_ifindex) = (0, 0, 0);
    record.rx_comm = [0; 16];
    record
}

/// Dropped by the kernel at the socket lookup.
pub fn dropped(id: u64) -> SliceRecord {
    use Point::*;
    let mut record = stamped(
        record(id),
        &[
            (RxDriver, 0, 0, 0),
            (RxCore, 600, 0, 0),
            (RxIp, 1_121, 0, 0),
        ],
    );
    record.flags = SliceFlags::DROPPED;
    record.drop_reason = 3;
    record.tx_comm = [0; 16];
    (record.tx_tgid, record.tx_tid, record.tx_ifindex) = (0, 0, 0);
    record.protocol = 17;
    record
}

/// An Ethernet frame of a TCP segment over IPv4 with as many bytes of data as the record says.
pub fn frame(record: &SliceRecord) -> SliceBytes {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let ip_len = 40 + record.payload as u16;
    bytes.extend([0x45, 0]);
    bytes.extend(ip_len.to_be_bytes());
    bytes.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend(&record.source[..4]);
    bytes.extend(&record.destination[..4]);
    bytes.extend(record.source_port.to_be_bytes());
    bytes.extend(record.destination_port.to_be_bytes());
    bytes.extend(record.tcp_seq.to_be_bytes());
    bytes.extend(record.tcp_ack.to_be_bytes());
    bytes.extend([0x50, record.tcp_flags]);
    bytes.extend(record.tcp_window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend((0..record.payload).map(|at| b'a' + (at % 26) as u8));
    SliceBytes {
        original_len: bytes.len() as u32,
        link_len: 14,
        bytes,
    }
}

pub fn without_bytes(record: SliceRecord) -> Sliced {
    Sliced {
        record,
        bytes: None,
    }
}

fn constant(mode: u32) -> Constant {
    Constant {
        mode,
        low: mode - mode / 8,
        high: mode + mode / 8,
        samples: 20_000,
    }
}

/// Regions in a row, the whole way.
pub fn regions() -> Vec<RegionEntry> {
    use Point::*;
    let region = |(name, from, to): (&str, Point, Point)| RegionEntry {
        name: name.to_owned(),
        from,
        to,
    };
    [
        ("tx.call", TxSyscall, TxTransport),
        ("tx.transport", TxTransport, TxIpOut),
        ("tx.ip", TxIpOut, TxDevQueue),
        ("tx.qdisc_in", TxDevQueue, TxQdiscEnqueue),
        ("tx.qdisc", TxQdiscEnqueue, TxQdiscDequeue),
        ("tx.dequeued", TxQdiscDequeue, TxDriver),
        ("tx.driver", TxDriver, RxDriver),
        ("tx.finish", RxDriver, TxDone),
        ("rx.backlog", TxDone, RxCore),
        ("rx.ip", RxCore, RxIp),
        ("rx.transport", RxIp, RxTransport),
        ("rx.socket", RxTransport, RxSocket),
        ("rx.wake", RxSocket, RxWaking),
        ("rx.schedule", RxWaking, RxSchedIn),
        ("rx.resume", RxSchedIn, RxCopy),
        ("rx.copy", RxCopy, RxCopied),
        ("rx.receive", RxCopied, RxReceived),
        ("rx.return", RxReceived, RxReturn),
    ]
    .map(region)
    .into()
}

/// Of [`regions`], each hook there, calibrated with [`TAU_O`], [`HIT`] and [`BEGIN`].
pub fn entry() -> SliceEntry {
    let mut points: Vec<Point> = regions().iter().map(|region| region.from).collect();
    points.push(Point::RxReturn);
    points.sort_unstable();
    let hook = |point: &Point| HookEntry {
        point: *point,
        hooks: vec![alloc::format!("tp_btf/{point}")],
        missing: None,
        missed_runs: Some(0),
    };
    let cost = |point: &Point| HookCost {
        point: *point,
        hit: constant(HIT),
    };
    SliceEntry {
        backend: "tracepoint".into(),
        event: SliceEvent::Time,
        filter: "tcp port 80".into(),
        hooks: points.iter().map(hook).collect(),
        regions: regions(),
        calibration: SliceCalibration {
            tau_o: Some(constant(TAU_O)),
            clock_only_hit: Some(constant(HIT - 2)),
            hits: points.iter().map(cost).collect(),
            begin: Some(constant(BEGIN)),
            hand_over: Some(constant(180)),
            border_out: Some(constant(BORDER)),
            border_in: Some(constant(BORDER)),
        },
        points,
        slots: 4096,
        kernel: "Linux 6.18.0".into(),
        duty_of: 1,
        drop_reasons: ["NOT_DROPPED_YET", "CONSUMED", "NOT_SPECIFIED", "NO_SOCKET"]
            .map(Into::into)
            .into(),
        interfaces: [(4_026_532_001, 3, "veth0"), (4_026_532_002, 4, "veth1")]
            .map(|(netns, ifindex, name)| InterfaceEntry {
                netns,
                ifindex,
                name: name.into(),
            })
            .into(),
    }
}

/// Only counters that counted are in it.
pub fn summary(written: u64) -> SliceSummary {
    let counted = [
        (Counter::Seen, written + 13),
        (Counter::Unmatched, 10),
        (Counter::NoSlot, 2),
        (Counter::Created, written + 1),
        (Counter::Written, written),
        (Counter::Aged, 1),
        (Counter::Hits, 16 * written),
        (Counter::CostNs, 1_600 * written),
    ];
    let named = counted.map(|(counter, value)| (counter.name().to_owned(), value));
    SliceSummary {
        counters: Counters(named.into()),
        in_flight: 0,
        hooks: entry().hooks,
        duration_ns: 1_500_000_000,
        attached_ns: 1_500_000_000,
    }
}
