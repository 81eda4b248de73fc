//! Goodput over paths that lose, reorder, duplicate and corrupt, as a table that is kept beside this file.
//! `HOPSCOPE_BLESS=1` writes it anew.
use super::bulk::{Outcome, bulk, plain};
use super::path::{Burst, Path};
use hopscope_stack_engine::Ns;
use hopscope_stack_engine::config::Congestion;
use std::fmt::Write;

const BYTES: u64 = 4 << 20;

fn paths() -> Vec<(&'static str, Path)> {
    let with = |change: fn(&mut Path)| {
        let mut path = Path::default();
        change(&mut path);
        path
    };
    vec![
        ("clean", with(|_| ())),
        ("loss 0.1 %", with(|path| path.loss = 0.001)),
        ("loss 1 %", with(|path| path.loss = 0.01)),
        ("loss 3 %", with(|path| path.loss = 0.03)),
        ("loss 10 %", with(|path| path.loss = 0.1)),
        (
            "bursts of 5, 1 %",
            with(|path| {
                path.burst = Some(Burst {
                    begin: 0.002,
                    end: 0.2,
                })
            }),
        ),
        (
            "reorder 2 % by 0.2 ms",
            with(|path| {
                path.reorder = 0.02;
                path.reorder_by = Ns::from_us(200);
            }),
        ),
        (
            "reorder 20 % by 0.2 ms",
            with(|path| {
                path.reorder = 0.2;
                path.reorder_by = Ns::from_us(200);
            }),
        ),
        ("duplicate 5 %", with(|path| path.duplicate = 0.05)),
        ("corrupt 1 %", with(|path| path.corrupt = 0.01)),
        ("jitter 0.5 ms", with(|path| path.jitter = Ns::from_us(500))),
        ("queue of 30 KB", with(|path| path.queue_bytes = 30_000)),
        (
            "20 ms, 100 Mbit/s",
            with(|path| {
                path.delay = Ns::from_ms(10);
                path.bits_per_s = 100_000_000;
            }),
        ),
        (
            "all of it, 1 % each",
            with(|path| {
                path.loss = 0.01;
                path.duplicate = 0.01;
                path.corrupt = 0.01;
                path.reorder = 0.01;
                path.reorder_by = Ns::from_us(300);
                path.jitter = Ns::from_us(100);
            }),
        ),
    ]
}

fn row(table: &mut String, name: &str, congestion: Congestion, outcome: &Outcome) {
    let sender = &outcome.sender;
    writeln!(
        table,
        "{name:24} {congestion:8} {rate:8.1} {lost:6} {retransmitted:6} {timeouts:4} {probes:4} {undone:4}",
        congestion = format!("{congestion:?}"),
        rate = outcome.mbit_per_s(),
        lost = outcome.forward.lost + outcome.forward.queue_dropped,
        retransmitted = sender.tcp_retrans_segs,
        timeouts = sender.timeouts,
        probes = sender.loss_probes,
        undone = sender.full_undo + sender.partial_undo + sender.dsack_undo + sender.loss_undo,
    )
    .expect("a string");
}

#[test]
fn goodput_table() {
    let mut table = format!(
        "# 4 MiB, 1 Gbit/s, 1 ms of round trip, queue of 250 KB unless the row says otherwise\n{:24} {:8} {:>8} {:>6} {:>6} {:>4} {:>4} {:>4}\n",
        "path", "control", "Mbit/s", "lost", "retr", "rto", "tlp", "undo"
    );
    for (name, path) in paths() {
        for congestion in [Congestion::Cubic, Congestion::NewReno] {
            let mut config = plain();
            config.tcp.congestion = congestion;
            let outcome = bulk(config, &path, 1, BYTES);
            assert!(
                outcome.finished,
                "{name}: {} of {BYTES} bytes",
                outcome.bytes
            );
            row(&mut table, name, congestion, &outcome);
        }
    }
    compare(&table, include_str!("goodput.txt"), "goodput.txt");
}

/// Deterministic, so that any difference is a change of behaviour.
pub fn compare(table: &str, kept: &str, file: &str) {
    if std::env::var_os("HOPSCOPE_BLESS").is_some() {
        let path = format!(
            "{}/tests/conformance/simulator/{file}",
            env!("CARGO_MANIFEST_DIR")
        );
        std::fs::write(path, table).expect("the table is written");
        return;
    }
    assert!(
        table == kept,
        "{file} differs; if the change is meant, HOPSCOPE_BLESS=1 writes it:\n{table}"
    );
}
