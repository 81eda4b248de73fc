//! Every cell of the reference table, to the nanosecond and the notification; and what the table shows.
use super::super::*;
use golden::CELLS;

mod golden;

const SEED: u64 = 1;

fn cell(suppression: Suppression, load: Load, name: &str) -> SimResult {
    let column = COLUMNS.into_iter().find(|column| column.name == name);
    let outcome = reference(column.expect("a column"), load, suppression, SEED);
    outcome.expect("a cell")
}

#[test]
fn every_cell_is_the_same_on_every_machine() {
    assert_eq!(CELLS.len(), 2 * LOADS.len() * COLUMNS.len());
    let mut changed = Vec::new();
    for &(suppression, mpps, burst, name, golden) in CELLS {
        let o = cell(suppression, Load { mpps, burst }, name);
        assert!(o.conserved(), "{name} at {mpps}: {o:?}");
        let now = [o.kicks, o.calls, o.p50.0, o.p99.0, o.lasted.0];
        if now != golden {
            changed.push(format!(
                "({suppression:?}, {mpps:?}, {burst}, {name:?}, {now:?}),"
            ));
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

/// What the adaptive policy promises, at every load and with either suppression.
#[test]
fn adaptive_is_no_worse_than_it_promises() {
    for suppression in [Suppression::Flag, Suppression::Index] {
        for load in LOADS {
            let of = |name| cell(suppression, load, name);
            let (adaptive, tam, plain) = (of("adaptive"), of("tam"), of("plain"));
            let place = format!("{suppression:?} {load:?}");
            assert!(adaptive.kicks <= tam.kicks, "{place}");
            assert!(adaptive.p50 <= plain.p50, "{place}");
            let fastest = COLUMNS.iter().map(|column| of(column.name).lasted).min();
            let fastest = fastest.expect("columns").0 as f64;
            assert!(fastest / adaptive.lasted.0 as f64 >= 0.97, "{place}");
        }
    }
}

/// A timer's price: what AHC adds at a packet a millisecond is its time, and nothing is saved for it.
#[test]
fn ahc_pays_its_time_at_low_load() {
    let of = |name| cell(Suppression::Flag, LOADS[0], name);
    assert_eq!(of("ahc").p50.0 - of("plain").p50.0, 50_000);
    assert_eq!(of("tam").p50, of("plain").p50);
}

/// Where two-end aggregation does not win: beside an event index at saturation, and at its own limit of a
/// whole ring, after which both ends take turns.
#[test]
fn tam_does_not_win_everywhere() {
    let of = |load, name| cell(Suppression::Index, load, name);
    for load in [LOADS[1], LOADS[2], LOADS[4], LOADS[5], LOADS[6]] {
        assert!(
            of(load, "tam").kicks > of(load, "event-idx").kicks,
            "{load:?}"
        );
    }
    let saturated = LOADS[7];
    assert!(of(saturated, "tam").mpps() < 0.7 * of(saturated, "event-idx").mpps());
    let limited = Column {
        name: "tam:64",
        kick: PolicyKind::Tam { limit: 64 },
        call: PolicyKind::Batch { limit: u32::MAX },
    };
    let limited = reference(limited, saturated, Suppression::Index, SEED).expect("a cell");
    assert!(limited.mpps() > 0.97 * of(saturated, "event-idx").mpps());
}

fn deferred(load: Load, entries: u32, us: u64) -> SimResult {
    let mut setup = super::setup("event-idx", "batch", load.mpps, load.burst);
    setup.suppression = Suppression::Index;
    setup.defer = Some(super::defer(entries, us));
    run(&setup).expect("a fair setup")
}

/// Loads, entries and microseconds that kicks are deferred by; kicks, calls, p50 and p99 in ns.
#[test]
fn deferring_saves_kicks_for_latency() {
    for (mpps, entries, us, golden) in [
        (0.001, 4, 10, [19_809, 19_809, 9_800, 9_879]),
        (0.2, 4, 10, [3_877, 5_870, 8_410, 18_425]),
        (0.5, 4, 10, [1_497, 2_031, 8_286, 17_822]),
        (0.5, 16, 50, [875, 906, 18_067, 49_901]),
        (1.0, 8, 20, [617, 718, 8_967, 19_209]),
        (1.6, 16, 50, [139, 227, 9_573, 19_876]),
    ] {
        let load = Load { mpps, burst: 1 };
        let o = deferred(load, entries, us);
        assert_eq!(
            [o.kicks, o.calls, o.p50.0, o.p99.0],
            golden,
            "{mpps} {entries}:{us}"
        );
        let asked_at_once = cell(Suppression::Index, load, "event-idx");
        assert!(o.kicks <= asked_at_once.kicks && o.p50 >= asked_at_once.p50);
    }
}
