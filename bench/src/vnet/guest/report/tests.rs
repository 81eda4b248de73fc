use super::*;
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::vnet::cpu_usage::Thread;
use crate::vnet::guest::device::number_of;
use crate::vnet::guest::device::{BATCH, EACH};
use crate::vnet::guest::traffic::{PING, RR};
use crate::vnet::guest::window::{Queue, Run};
use hopscope_guest::Accelerator;

fn figures() -> Figures {
    Figures {
        accelerator: Accelerator::Emulated {
            reason: "no /dev/kvm".into(),
        },
        ..Figures::default()
    }
}

fn run(value: f64, calls: f64) -> Run {
    let queue = Queue {
        packets: 1000.0,
        kicks: 100.0,
        calls,
    };
    Run {
        value,
        p50_us: Some(1.0),
        p99_us: None,
        tx: queue,
        rx: queue,
        interrupts: 10.0,
        back: Thread::default(),
        failed: 0.0,
        retransmitted: None,
        ends_agree: true,
    }
}

/// `batch` has so much of `each`, and calls so many times less, in each of seven rounds.
fn compared(traffic: Traffic, offload: bool, ratio: [f64; 7], fewer: f64, figures: &mut Figures) {
    for ratio in ratio {
        for (name, run) in [
            (EACH, run(100.0, 900.0)),
            (BATCH, run(100.0 * ratio, 900.0 / fewer)),
        ] {
            figures
                .runs
                .add(offload, traffic, number_of(name).unwrap(), run);
        }
    }
}

const MIXED: [f64; 7] = [0.9, 0.95, 0.97, 0.98, 0.99, 1.0, 1.01];
const SLOWER: [f64; 7] = [0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96];

#[test]
fn without_a_guest_nothing_is_claimed() {
    let mut figures = figures();
    figures
        .not_measured
        .push(NotMeasured::new("the guest", "no kernel"));
    let summary = summary(figures);
    assert!(!summary.complete);
    for field in [
        "guest_tx_calls_fewer",
        "guest_tcp_worst_ratio",
        "recovery_ms",
    ] {
        assert_eq!(summary.fields[field], Value::Null, "{field}");
    }
    let goals = summary.fields["goals"].as_array().unwrap();
    assert!(goals.iter().all(|goal| goal["met"].is_null()), "{goals:?}");
    assert!(summary.table.contains("no kernel"), "{}", summary.table);
    let left_out = summary.fields["left_out"].to_string();
    assert!(left_out.contains("no /dev/kvm"), "{left_out}");
}

#[test]
fn the_worst_row_is_the_one_that_is_slower_for_certain() {
    let mut figures = figures();
    compared(OUT_LARGE, false, MIXED, 30.0, &mut figures);
    compared(INTO_LARGE, false, MIXED, 10.0, &mut figures);
    let held = Headline::of(&figures);
    assert_eq!(held.tcp.len(), 2);
    let verdicts: Vec<&str> = held.goals.iter().map(Goal::verdict).collect();
    assert_eq!(verdicts[..4], ["met", "missed", "met", "met"]);
    compared(RR, true, SLOWER, 30.0, &mut figures);
    let slower = Headline::of(&figures);
    let worst = slower.tcp_worst.clone().unwrap();
    assert_eq!(worst.name(), "TCP_RR, offload");
    assert_eq!(slower.goals[2].verdict(), "missed");
    // Pings are no TCP.
    compared(PING, false, [0.1; 7], 1.0, &mut figures);
    assert_eq!(Headline::of(&figures).tcp.len(), 3);
    let summary = summary(figures);
    let fields = &summary.fields;
    assert_eq!(fields["guest_tcp_worst"], "TCP_RR, offload");
    assert!((fields["guest_tx_calls_fewer"].as_f64().unwrap() - 30.0).abs() < 1e-6);
    assert_eq!(fields["calls_per_packet"]["each"]["tx"], 0.9);
    assert!(!summary.complete, "no recovery");
    let first = summary.table.lines().nth(1).unwrap();
    assert!(summary.table.contains("TCP_RR, offload"), "{first}");
}
