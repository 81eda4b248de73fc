//! Packets and runs joined, against a network function that knows which run handled which packet.
mod fifo;

use fifo::{BUSY, ENDS, NF, QUIET, SEQ, Setting, World};
use hopscope_analyze::join::{Joined, Joiner, PacketId, PacketIdCaptures};
use hopscope_analyze::{Match, NoMatch};
use hopscope_event::{Stamp, StampFlags, StreamIx, Tsc};

fn each(s: Setting) -> Option<PacketId> {
    Some(PacketId {
        captures: PacketIdCaptures::Each(vec![(NF, SEQ)]),
        bits: s.bits,
        swapped: s.swapped,
    })
}

fn ends(s: Setting) -> Option<PacketId> {
    let [first, last, count] = ENDS.map(|capture| (NF, capture));
    Some(PacketId {
        captures: PacketIdCaptures::Ends { first, last, count },
        bits: s.bits,
        swapped: s.swapped,
    })
}

#[test]
fn captured_numbers_find_every_run_whose_records_are_there() {
    for seed in 1..=20 {
        for base in [QUIET, BUSY] {
            for (threads, lost_runs, swapped, bits, first_seq) in [
                (1, 0, false, 32, 0),
                (3, 5, true, 32, 0),
                // Numbers that wrap within the packets under way.
                (2, 5, false, 16, 65_000),
                (2, 0, true, 16, 65_000),
            ] {
                let s = Setting {
                    seed,
                    threads,
                    lost_runs,
                    swapped,
                    bits,
                    first_seq,
                    ..base
                };
                let world = World::new(s);
                let joined = world.joined(each(s));
                for packet in &joined.packets {
                    match (world.truth_of(packet), packet.stamp.received) {
                        (Some(run), _) => {
                            assert_eq!((packet.matched, packet.run), (Match::Sequence, Some(run)));
                        }
                        (None, None) => {
                            assert_eq!(packet.matched, Match::None(NoMatch::NeverCameBack))
                        }
                        (None, Some(_)) => {
                            assert_eq!(packet.matched, Match::None(NoMatch::RecordsLost));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn ends_and_count_of_a_queue_are_exact_on_one_thread_and_say_where_they_are_not() {
    for seed in 1..=20 {
        for threads in [1, 2] {
            let s = Setting {
                seed,
                threads,
                ends: true,
                ..BUSY
            };
            let world = World::new(s);
            let joined = world.joined(ends(s));
            assert_eq!(joined.counts.without.iter().sum::<u64>(), 0);
            for packet in &joined.packets {
                let right = packet.run == world.truth_of(packet);
                match packet.matched {
                    Match::Sequence => assert!(right, "{packet:?}"),
                    Match::Order { .. } => assert_eq!(threads, 2),
                    Match::None(_) => panic!("{packet:?}"),
                }
            }
            let all = joined.counts.by_sequence == joined.counts.packets;
            assert_eq!(all, threads == 1, "{:?}", joined.counts);
        }
    }
}

#[test]
fn by_order_a_wrong_run_is_never_called_the_only_one_possible() {
    for seed in 1..=40 {
        for base in [QUIET, BUSY] {
            for threads in [1, 3] {
                for lost_runs in [0, 10] {
                    let s = Setting {
                        seed,
                        threads,
                        lost_runs,
                        ..base
                    };
                    let world = World::new(s);
                    let joined = world.joined(None);
                    for packet in &joined.packets {
                        let right = packet.run == world.truth_of(packet);
                        match packet.matched {
                            Match::Order { ambiguous_among: 1 } => assert!(right, "{packet:?}"),
                            Match::Order { ambiguous_among } => assert!(ambiguous_among > 1),
                            Match::Sequence => panic!("nothing was captured"),
                            Match::None(NoMatch::NeverCameBack) => {
                                assert_eq!(packet.stamp.received, None);
                            }
                            Match::None(why) => assert_eq!(
                                (why, world.truth_of(packet)),
                                (NoMatch::RecordsLost, None)
                            ),
                        }
                    }
                    let c = &joined.counts;
                    let received = c.by_order + c.ambiguous;
                    assert_eq!(c.packets, received + c.without.iter().sum::<u64>());
                    // At low load and without loss hardly anything is ambiguous.
                    if base.apart == QUIET.apart && threads == 1 && lost_runs == 0 {
                        assert!(c.by_order * 10 > received * 8, "{c:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn counts_of_a_queue_tell_every_run_or_nothing_wrong() {
    for seed in 1..=40 {
        for base in [QUIET, BUSY] {
            for (lost_runs, lost_before) in [(0, 0), (0, 4), (10, 0), (10, 4)] {
                let s = Setting {
                    seed,
                    ends: true,
                    lost_runs,
                    lost_before,
                    ..base
                };
                let world = World::new(s);
                let (joined, by_order) = (world.joined_by_count(), world.joined(None));
                for packet in &joined.packets {
                    if packet.matched == (Match::Order { ambiguous_among: 1 }) {
                        assert_eq!(packet.run, world.truth_of(packet), "{packet:?}");
                    }
                }
                let c = &joined.counts;
                assert_eq!(c.without, by_order.counts.without);
                match (lost_runs, lost_before) {
                    (0, 0) => assert_eq!((c.ambiguous, c.by_count), (0, c.by_order), "{c:?}"),
                    // A stretch without a pause may be all of a busy recording.
                    _ => assert!(c.ambiguous <= by_order.counts.ambiguous, "{c:?}"),
                }
            }
        }
    }
}

#[test]
fn what_was_not_under_way_with_any_run_is_said() {
    let mut world = World::new(QUIET);
    let before = Stamp {
        seq: 1 << 40,
        sent: Tsc(10),
        intended: Tsc(10),
        received: Some(Tsc(20)),
        ..Stamp::default()
    };
    let (a, b) = world
        .runs
        .windows(2)
        .find_map(|w| {
            let (end, start) = (w[0].end.0, w[1].start.0);
            (start > end + 1_000).then_some((end, start))
        })
        .expect("a pause at low load");
    let between = Stamp {
        sent: Tsc(a + 10),
        intended: Tsc(a + 10),
        received: Some(Tsc(b - 10)),
        ..before
    };
    let again = Stamp {
        flags: StampFlags::DUPLICATE,
        ..between
    };
    world.stamps = vec![before, between, again];
    let of = |joined: Joined| -> Vec<_> { joined.packets.iter().map(|p| p.matched).collect() };
    let expected = [
        NoMatch::OutsideRecording,
        NoMatch::NoRunMeanwhile,
        NoMatch::Duplicate,
    ];
    assert_eq!(of(world.joined(None)), expected.map(Match::None));
    let expected = [
        NoMatch::OutsideRecording,
        NoMatch::SequenceNotCaptured,
        NoMatch::Duplicate,
    ];
    assert_eq!(of(world.joined(each(QUIET))), expected.map(Match::None));
}

#[test]
fn two_streams_with_the_same_numbers_in_one_run_are_not_told_apart() {
    let world = World::new(QUIET);
    let mut joiner = Joiner::new(each(QUIET));
    for stamp in &world.stamps {
        joiner.packet(StreamIx(0), *stamp).expect("a few packets");
        joiner.packet(StreamIx(1), *stamp).expect("a few packets");
    }
    for run in &world.runs {
        joiner.run(run).expect("a few runs");
    }
    let joined = joiner.finish(&[]);
    let doubtful = Match::None(NoMatch::SequenceAmbiguous);
    assert!(
        joined
            .packets
            .iter()
            .all(|p| p.matched == doubtful && p.run.is_none())
    );
}
