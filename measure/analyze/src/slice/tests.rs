use super::*;
use crate::Quantile;
use Point::*;
use hopscope_event::slice::sample::{
    HIT, TAU_O, dropped, entry, over_veth, record, stamped, through_queue,
};
use hopscope_event::slice::{Point, RegionEntry, SliceEvent, SliceFlags, SliceRecord, StampWord};
use proptest::prelude::*;

fn sliced(record: &SliceRecord) -> (Slicer, PacketSlices) {
    let mut slicer = Slicer::new(&entry());
    let packet = slicer.slice(record);
    (slicer, packet)
}

fn names(slicer: &Slicer, packet: &PacketSlices) -> Vec<String> {
    let names = packet.pieces.iter().map(|p| slicer.name(p.name).to_owned());
    names.collect()
}

fn piece(slicer: &Slicer, packet: &PacketSlices, name: &str) -> Span {
    let mut pieces = packet.pieces.iter();
    let found = pieces.find(|p| slicer.name(p.name) == name);
    found
        .unwrap_or_else(|| panic!("{name} of {:?}", names(slicer, packet)))
        .span
}

#[test]
fn a_simple_region_loses_what_an_empty_one_reads() {
    let (slicer, packet) = sliced(&through_queue(1));
    let call = piece(&slicer, &packet, "tx.call");
    assert_eq!((call.raw, call.correction), (611, Some(u64::from(TAU_O))));
    assert_eq!(
        (call.corrected(), call.flags),
        (Some(611 - 70), PieceFlags::NONE)
    );
}

#[test]
fn a_region_with_probes_inside_loses_what_they_cost_too() {
    let (slicer, packet) = sliced(&through_queue(1));
    let driver = piece(&slicer, &packet, "tx.driver+tx.finish");
    assert_eq!((driver.raw, driver.correction), (511, Some(110 + 70)));
}

#[test]
fn the_whole_loses_each_hit_between_its_ends() {
    let (_, packet) = sliced(&through_queue(1));
    assert_eq!(packet.whole.raw, 3_796);
    let expected = 6 * HIT + 110 + TAU_O;
    assert_eq!(packet.whole.correction, Some(u64::from(expected)));
    assert_eq!(packet.whole.corrected(), Some(u64::from(3_796 - expected)));
}

#[test]
fn what_another_processor_spent_is_not_known_and_said() {
    let (slicer, packet) = sliced(&over_veth(1));
    let schedule = piece(&slicer, &packet, "rx.schedule");
    assert_eq!(schedule.correction, Some(u64::from(TAU_O)));
    assert!(schedule.flags.contains(PieceFlags::OTHER_CPU));
    assert!(packet.whole.flags.contains(PieceFlags::OTHER_CPU));
    let wake = piece(&slicer, &packet, "rx.wake");
    assert_eq!((wake.raw, wake.corrected()), (250, Some(0)));
    assert!(wake.flags.contains(PieceFlags::BELOW_ZERO));
}

/// Others' probes do not prolong the sleep of a packet's reader.
#[test]
fn a_wait_loses_only_what_is_the_packets_own() {
    let waited = |inner| {
        let stamps = [
            (RxSocket, 0, 0, 0),
            (RxCopy, 118_000, inner, 0),
            (RxCopied, 118_400, 40, 0),
        ];
        let (slicer, packet) = sliced(&stamped(record(1), &stamps));
        let wait = piece(&slicer, &packet, "rx.wake+rx.schedule+rx.resume");
        (wait, packet.whole)
    };
    let (wait, whole) = waited(48_000);
    // The end of the sender's call and the beginning of the reader's may be one thread's.
    let own = u64::from(2 * HIT + TAU_O);
    assert_eq!(wait.correction, Some(own));
    assert!(wait.flags.contains(PieceFlags::OTHERS_IN_WAIT));
    assert_eq!(whole.correction, Some(own + u64::from(HIT + 40)));
    assert!(whole.flags.intersects(PieceFlags::UNCERTAIN));
    let (wait, _) = waited(150);
    assert_eq!(wait.correction, Some(u64::from(150 + TAU_O)));
    assert!(!wait.flags.intersects(PieceFlags::UNCERTAIN));
}

#[test]
fn the_whole_of_a_packet_without_its_sender_is_or_longer() {
    let mut late = dropped(1);
    late.flags |= SliceFlags::TX_UNSEEN;
    let (_, packet) = sliced(&late);
    assert!(packet.whole.flags.contains(PieceFlags::HEAD_UNSEEN));
    let mut stats = SliceStats::default();
    stats.add(&packet);
    assert_eq!((stats.whole.head_unseen, stats.whole.times.len()), (1, 0));
    assert_eq!(stats.dropped.get(&late.drop_reason), Some(&1));
}

fn region(name: &str, from: Point, to: Point) -> RegionEntry {
    RegionEntry {
        name: name.into(),
        from,
        to,
    }
}

#[test]
fn regions_that_overlap_share_a_piece() {
    let mut overlapping = entry();
    overlapping.regions = vec![
        region("tx.driver", TxDriver, TxDone),
        region("rx.driver", RxDriver, RxCore),
        region("rx.ip", RxCore, RxIp),
    ];
    let mut slicer = Slicer::new(&overlapping);
    let packet = slicer.slice(&over_veth(1));
    assert_eq!(
        names(&slicer, &packet)[4..8],
        [
            "tx.driver(..rx_driver)",
            "tx.driver&rx.driver",
            "rx.driver(tx_done..)",
            "rx.ip"
        ]
    );
    let time = |name: &str| {
        let mut regions = packet.regions.iter();
        let found = regions.find(|r| slicer.region(r.region) == name);
        found.map(|r| r.span).unwrap()
    };
    assert_eq!(time("tx.driver").raw, 3_305 - 2_784);
    let receiver = time("rx.driver");
    assert_eq!(receiver.raw, 3_685 - 3_084);
    assert_eq!(receiver.correction, Some(u64::from(TAU_O + HIT)));
    // A packet that was only sent is not in a region of the receiver.
    let packet = slicer.slice(&through_queue(1));
    let last = packet.pieces.last().unwrap();
    assert_eq!(slicer.name(last.name), "tx.driver");
}

#[test]
fn a_receiver_that_is_faster_than_the_driver_returns_is_out_of_order() {
    let mut fast = over_veth(1);
    fast.stamps[RxCore as usize] = StampWord::new(3_200, 0, 1);
    let (slicer, packet) = sliced(&fast);
    assert_eq!(
        names(&slicer, &packet)[4..8],
        [
            "tx.driver",
            "tx.finish(..rx_core)",
            "tx.finish&rx.ip",
            "rx.ip(tx_done..)"
        ]
    );
    assert_eq!((packet.out_of_order, packet.backwards), (1, 1));
    let sum: u64 = packet.pieces.iter().map(|p| p.span.raw).sum();
    assert_eq!(sum, packet.whole.raw);
}

/// A region has the name of its own two points where none between them was stamped, and is in nobody's way else.
#[test]
fn several_regions_in_one_have_the_name_of_one_that_is_the_same() {
    let mut named = entry();
    named.regions.extend([
        region("rx.unread", RxSocket, RxCopy),
        region("rx.driver", RxDriver, RxCore),
    ]);
    let mut slicer = Slicer::new(&named);
    let stamps = [
        (RxDriver, 0, 0, 0),
        (RxCore, 600, 0, 0),
        (RxSocket, 900, 0, 0),
        (RxCopy, 73_000_000, 0, 0),
    ];
    let packet = slicer.slice(&stamped(record(1), &stamps));
    assert_eq!(
        names(&slicer, &packet),
        ["rx.driver", "rx.ip+rx.transport+rx.socket", "rx.unread"]
    );
    assert!(packet.pieces.iter().all(|p| {
        let is_merged = p.span.flags.contains(PieceFlags::MERGED);
        is_merged == slicer.name(p.name).contains('+')
    }));
    let whole = slicer.slice(&over_veth(1));
    let (plain, as_before) = sliced(&over_veth(1));
    assert_eq!(names(&slicer, &whole), names(&plain, &as_before));
}

#[test]
fn a_queueing_discipline_that_was_not_used_is_bypassed() {
    let (slicer, packet) = sliced(&over_veth(1));
    let bypassed: Vec<_> = packet.bypassed.iter().map(|n| slicer.name(*n)).collect();
    assert_eq!(bypassed, ["tx.qdisc"]);
    assert!(sliced(&through_queue(1)).1.bypassed.is_empty());
    assert!(sliced(&dropped(1)).1.bypassed.is_empty());

    // Without hooks nothing is known of it, unless the kernel programs say so.
    let mut blind = entry();
    for hook in &mut blind.hooks {
        hook.missing = (hook.point == TxQdiscEnqueue).then(|| "not in this kernel".into());
    }
    let mut slicer = Slicer::new(&blind);
    let packet = slicer.slice(&over_veth(1));
    assert!(packet.bypassed.is_empty());
    let merged = "tx.qdisc_in+tx.qdisc+tx.dequeued";
    let span = piece(&slicer, &packet, merged);
    assert_eq!(span.raw, 2_784 - 2_503);
    assert!(span.flags.contains(PieceFlags::MERGED));
    let mut said = over_veth(1);
    said.flags |= SliceFlags::QDISC_BYPASSED;
    assert_eq!(slicer.slice(&said).bypassed.len(), 1);
}

#[test]
fn a_point_that_was_not_stamped_merges_its_slice_into_the_next() {
    let mut awake = over_veth(1);
    for point in [RxWaking, RxSchedIn] {
        awake.stamps[point as usize] = StampWord::default();
    }
    let (slicer, packet) = sliced(&awake);
    let merged = piece(&slicer, &packet, "rx.wake+rx.schedule+rx.resume");
    assert_eq!(merged.raw, 11_076 - 5_688);
}

#[test]
fn a_region_around_others_is_told_apart_from_its_parts() {
    let mut nested = entry();
    nested.regions = vec![
        region("all", TxSyscall, TxDone),
        region("ip", TxIpOut, TxDevQueue),
        region("again", TxIpOut, TxDevQueue),
    ];
    let mut slicer = Slicer::new(&nested);
    let mut few = through_queue(1);
    for point in [TxTransport, TxQdiscEnqueue, TxQdiscDequeue, TxDriver] {
        few.stamps[point as usize] = StampWord::default();
    }
    let packet = slicer.slice(&few);
    assert_eq!(
        names(&slicer, &packet),
        ["all(..tx_ip_out)", "ip", "all(tx_dev_queue..)"]
    );
    let all = packet.regions.iter().find(|r| r.region == 0).unwrap().span;
    assert_eq!(all.raw, 3_796);
    assert_eq!(all.correction, packet.whole.correction);
}

#[test]
fn a_stamp_that_did_not_fit_is_this_or_longer() {
    let late = stamped(record(1), &[(RxIp, 5, 0, 0), (RxCopy, u32::MAX, 0, 0)]);
    let (_, packet) = sliced(&late);
    assert!(packet.whole.flags.contains(PieceFlags::SATURATED));
    let mut stats = SliceStats::default();
    stats.add(&packet);
    assert_eq!((stats.whole.saturated, stats.whole.times.len()), (1, 0));
    assert_eq!(stats.sums, (0, 0));
}

#[test]
fn without_constants_nothing_is_taken_out() {
    let mut bare = entry();
    bare.calibration = Default::default();
    let packet = Slicer::new(&bare).slice(&through_queue(1));
    assert_eq!(
        (packet.whole.corrected(), packet.whole.best()),
        (None, 3_796)
    );
}

#[test]
fn of_events_only_what_an_empty_region_counts_is_taken_out() {
    let mut counted = entry();
    counted.event = SliceEvent::Counter("context-switches".into());
    let mut slicer = Slicer::new(&counted);
    let packet = slicer.slice(&through_queue(1));
    let span = piece(&slicer, &packet, "tx.driver+tx.finish");
    assert_eq!(span.correction, Some(u64::from(TAU_O)));
    assert!(span.flags.contains(PieceFlags::COST_UNKNOWN));
    assert_eq!(piece(&slicer, &packet, "tx.call").flags, PieceFlags::NONE);
    assert_eq!(packet.whole.correction, Some(u64::from(TAU_O)));
}

#[test]
fn packets_of_one_stamp_or_none_have_no_pieces() {
    for stamps in [&[][..], &[(RxIp, 7, 0, 0)]] {
        let (_, packet) = sliced(&stamped(record(1), stamps));
        assert_eq!((packet.pieces.len(), packet.whole.raw), (0, 0));
        let mut stats = SliceStats::default();
        stats.add(&packet);
        assert_eq!((stats.packets, stats.whole.times.len()), (1, 0));
    }
}

#[test]
fn statistics_are_those_of_the_corrected_times() {
    let mut slicer = Slicer::new(&entry());
    let mut stats = SliceStats::default();
    for n in 0..100 {
        let times = &[(RxIp, 0, 0, 0), (RxTransport, 200 + n, 0, 0)];
        stats.add(&slicer.slice(&stamped(record(1), times)));
    }
    let row = &stats.pieces[&NameIx(0)];
    let least = u64::from(200 - TAU_O);
    assert_eq!(row.min, Some(least));
    assert_eq!(row.times.max(), Quantile::Ticks(least + 99));
    assert_eq!(row.times.quantile(500), Quantile::Ticks(least + 49));
    assert!((row.mean() - (least as f64 + 49.5)).abs() < 1e-9);
    assert!((row.stddev() - 29.011_491_975_882_016).abs() < 1e-9);
}

proptest! {
    /// Whatever the bytes of a file say.
    #[test]
    fn pieces_make_up_the_whole(
        words in proptest::collection::vec(any::<u64>(), Point::MAX),
        flags in any::<u32>(),
        regions in proptest::collection::vec((0u8..19, 0u8..19), 0..6),
    ) {
        let mut record = record(1);
        record.flags = SliceFlags(flags);
        for (place, word) in record.stamps.iter_mut().zip(words) {
            // Every other one taken, mostly.
            *place = StampWord(if word & 1 == 0 { word } else { 0 });
        }
        let mut entry = entry();
        if !regions.is_empty() {
            entry.regions = regions.iter().enumerate().map(|(at, (from, to))| RegionEntry {
                name: format!("r{at}"),
                from: Point::from_id(*from.min(to)).unwrap(),
                to: Point::from_id(*from.max(to)).unwrap(),
            }).collect();
        }
        let mut slicer = Slicer::new(&entry);
        let packet = slicer.slice(&record);
        let taken = record.taken().count();
        prop_assert_eq!(packet.pieces.len(), taken.saturating_sub(1));
        let sum: u64 = packet.pieces.iter().map(|p| p.span.raw).sum();
        prop_assert_eq!(sum, packet.whole.raw);
        for piece in &packet.pieces {
            prop_assert!(piece.span.best() <= piece.span.raw);
            prop_assert!(!slicer.name(piece.name).is_empty());
        }
        let mut stats = SliceStats::default();
        stats.add(&packet);
    }
}
