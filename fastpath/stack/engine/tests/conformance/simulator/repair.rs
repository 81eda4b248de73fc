//! How long a response takes whose segments are lost: the table of recovery times, kept beside this file.
use super::bulk::{connect, host, plain, transfer};
use super::goodput::compare;
use super::network::Network;
use super::path::Path;
use hopscope_stack_engine::config::Config;
use hopscope_stack_engine::{Ns, TcpConfig};
use std::fmt::Write;

/// Ten segments of 1448 bytes, in a window that is open, over 1 ms of round trip.
const BYTES: u64 = 14_480;

/// Which of the segments are lost, counted from 0; those above 9 are retransmissions.
const LOST: &[(&str, &[u64])] = &[
    ("none", &[]),
    ("first", &[0]),
    ("fifth", &[4]),
    ("last but one", &[8]),
    ("last", &[9]),
    ("last two", &[8, 9]),
    ("last five", &[5, 6, 7, 8, 9]),
    ("all but the last", &[0, 1, 2, 3, 4, 5, 6, 7, 8]),
    ("all", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("first and its retransmission", &[0, 10]),
    ("last and its probe", &[9, 10]),
    ("every second", &[0, 2, 4, 6, 8]),
];

/// The response's time in us, and time-outs. The connection has sent as much before, so that its round trip is known.
fn response(config: &Config, lost: &[u64]) -> (u64, u64) {
    let hosts = [host(config.clone(), 1), host(config.clone(), 2)];
    let mut network = Network::new(
        hosts,
        &Path {
            bits_per_s: 10_000_000_000,
            ..Path::default()
        },
        1,
    );
    let sockets = connect(&mut network, false);
    let first = transfer_open(&mut network, sockets);
    assert!(first.0 < 5_000, "without loss: {} us", first.0);
    network.directions[0].path.drop_data = lost.iter().map(|index| index + 10).collect();
    transfer_open(&mut network, sockets)
}

fn transfer_open(
    network: &mut Network,
    sockets: [hopscope_stack_engine::SocketId; 2],
) -> (u64, u64) {
    let outcome = transfer(network, sockets, BYTES, Ns::from_ms(100_000), false);
    assert!(outcome.finished, "{} of {BYTES} bytes", outcome.bytes);
    (outcome.time.0 / 1_000, outcome.sender.timeouts)
}

#[test]
fn recovery_time_table() {
    let mut table = format!(
        "# time of a response of ten segments over 1 ms of round trip, us, and time-outs\n{:30} {:>10} {:>4} {:>10} {:>4}\n",
        "lost", "linux", "rto", "lan", "rto"
    );
    let mut lan = plain();
    lan.tcp = TcpConfig::lan();
    for (name, lost) in LOST {
        let (linux, timeouts) = response(&plain(), lost);
        let (short, short_timeouts) = response(&lan, lost);
        writeln!(
            table,
            "{name:30} {linux:10} {timeouts:4} {short:10} {short_timeouts:4}"
        )
        .expect("a string");
    }
    compare(&table, include_str!("repair.txt"), "repair.txt");
}
