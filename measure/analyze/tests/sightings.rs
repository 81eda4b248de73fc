//! Latency of packets without stamps, from one place where their numbers were captured to another.
use hopscope_analyze::join::{PacketId, PacketIdCaptures, Place, Seen, Sightings, SightingsError};
use hopscope_analyze::{Captured, Match, NoMatch, Run, RunCall, RunIx};
use hopscope_event::{FunctionId, ThreadIx, Tsc};

const IN: FunctionId = FunctionId(1);
const MIDDLE: FunctionId = FunctionId(2);
const OUT: FunctionId = FunctionId(3);
/// Captured at entries; what is captured at a return has the place in its two highest bits.
const SEQ: u16 = 0;
const RETURNED: u16 = 2 << 10;

fn id() -> PacketId {
    PacketId {
        captures: PacketIdCaptures::Each(vec![
            (IN, SEQ),
            (MIDDLE, SEQ),
            (OUT, SEQ),
            (OUT, RETURNED),
        ]),
        bits: 16,
        swapped: false,
    }
}

/// Calls one after the other, each with its numbers.
fn run(thread: u32, calls: &[(FunctionId, u16, [u64; 2], &[u64])]) -> Run {
    let call = |(function, _, [entry, exit], _): &(FunctionId, u16, [u64; 2], &[u64])| RunCall {
        function: *function,
        depth: 0,
        parent: None,
        entry: Tsc(*entry),
        exit: Tsc(*exit),
        fused: false,
        own_ticks: 0,
        own_corrected: 0,
        off_cpu_ticks: 0,
    };
    let values = calls.iter().enumerate().flat_map(|(at, call)| {
        call.3
            .iter()
            .enumerate()
            .map(move |(element, value)| Captured {
                call: at as u32,
                capture: call.1,
                element: element as u16,
                value: *value,
            })
    });
    Run {
        ix: RunIx(0),
        thread: ThreadIx(thread),
        root: IN,
        start: Tsc(calls[0].2[0]),
        end: Tsc(calls[calls.len() - 1].2[1]),
        complete: true,
        calls: calls.iter().map(call).collect(),
        values: values.collect(),
        off_cpu_ticks: 0,
        calls_left_out: 0,
        outside: Vec::new(),
    }
}

fn seen(runs: &[Run], between: Option<(FunctionId, FunctionId)>) -> Result<Seen, SightingsError> {
    let mut sightings = Sightings::new(id())?;
    runs.iter().try_for_each(|run| sightings.run(run))?;
    sightings.finish(between)
}

/// Number, sent, latency, run.
fn packets(seen: &Seen) -> Vec<(u64, u64, Option<i64>, Option<u64>)> {
    let of = |p: &hopscope_analyze::Packet| {
        let latency = p.stamp.received.map(|at| at - p.stamp.sent);
        (p.stamp.seq, p.stamp.sent.0, latency, p.run.map(|run| run.0))
    };
    seen.joined.packets.iter().map(of).collect()
}

fn place(function: FunctionId) -> Place {
    Place {
        function,
        at_return: false,
    }
}

#[test]
fn first_to_last_place_within_a_run_and_across_threads() {
    let runs = [
        run(
            0,
            &[
                (IN, SEQ, [100, 110], &[1, 2, 3]),
                (MIDDLE, SEQ, [120, 130], &[1, 3]),
            ],
        ),
        run(1, &[(OUT, SEQ, [200, 230], &[1])]),
        run(1, &[(OUT, SEQ, [300, 330], &[3])]),
    ];
    let seen = seen(&runs, None).expect("two places");
    assert_eq!((seen.from, seen.to), (place(IN), place(OUT)));
    let expected = [
        (1, 100, Some(100), Some(1)),
        (2, 100, None, None),
        (3, 100, Some(200), Some(2)),
    ];
    assert_eq!(packets(&seen), expected);
    assert_eq!(seen.joined.packets[0].matched, Match::Sequence);
    assert_eq!(
        seen.joined.packets[1].matched,
        Match::None(NoMatch::NotSeenAgain)
    );
    assert_eq!((seen.between, seen.same_run, seen.only_at_to), (2, 0, 0));
    assert_eq!(seen.joined.counts.by_sequence, 2);
}

#[test]
fn boundaries_can_be_named_and_a_return_counts_at_its_exit() {
    let calls: &[(FunctionId, u16, [u64; 2], &[u64])] = &[
        (IN, SEQ, [100, 110], &[1]),
        (MIDDLE, SEQ, [120, 130], &[1]),
        (OUT, RETURNED, [140, 190], &[1]),
    ];
    let runs = [run(0, calls)];
    let middle = seen(&runs, Some((IN, MIDDLE))).expect("both captured it");
    assert_eq!(packets(&middle), [(1, 100, Some(20), Some(0))]);
    let returned = seen(&runs, Some((MIDDLE, OUT))).expect("both captured it");
    assert_eq!(packets(&returned), [(1, 120, Some(70), Some(0))]);
    assert!(returned.to.at_return);
    // Against the way packets take nothing is seen again.
    let back = seen(&runs, Some((OUT, IN))).expect_err("never in this order");
    assert_eq!(back, SightingsError::NoneInBoth);
}

#[test]
fn a_number_that_comes_again_is_another_packet_or_counted() {
    let in_out = |from: u64, numbers: &'static [u64], out: &'static [u64]| {
        run(
            0,
            &[
                (IN, SEQ, [from, from + 10], numbers),
                (OUT, SEQ, [from + 50, from + 60], out),
            ],
        )
    };
    // 16 bits: 65,537 is 1 again. Twice in one run: two packets that cannot be told apart.
    let runs = [
        in_out(100, &[1], &[1]),
        in_out(1_000, &[65_537, 7, 7], &[65_537, 7, 7]),
        run(0, &[(OUT, SEQ, [2_000, 2_010], &[9])]),
    ];
    let seen = seen(&runs, None).expect("two places");
    let expected = [
        (1, 100, Some(50), Some(0)),
        (1, 1_000, Some(50), Some(1)),
        (7, 1_000, Some(50), Some(1)),
    ];
    assert_eq!(packets(&seen), expected);
    assert_eq!((seen.between, seen.same_run, seen.only_at_to), (1, 1, 1));
}

#[test]
fn what_is_missing_for_a_latency_is_said() {
    let one = [run(0, &[(IN, SEQ, [100, 110], &[1, 2])])];
    assert_eq!(
        seen(&one, None).expect_err("one"),
        SightingsError::OnePlace(IN)
    );
    let none = [run(0, &[(IN, SEQ, [100, 110], &[])])];
    assert_eq!(
        seen(&none, None).expect_err("none"),
        SightingsError::NoneCaptured
    );
    let apart = [run(
        0,
        &[(IN, SEQ, [100, 110], &[1]), (OUT, SEQ, [120, 130], &[2])],
    )];
    assert_eq!(
        seen(&apart, None).expect_err("apart"),
        SightingsError::NoneInBoth
    );
    assert_eq!(
        seen(&one, Some((IN, OUT))).expect_err("not there"),
        SightingsError::NoneInBoth
    );
    let place = (IN, SEQ);
    let ends = PacketId {
        captures: PacketIdCaptures::Ends {
            first: place,
            last: place,
            count: place,
        },
        ..id()
    };
    assert_eq!(
        Sightings::new(ends).expect_err("ends"),
        SightingsError::Ends
    );
}
