//! Offloads, and connections that share a bottleneck.
use super::bulk::{bulk, connect, connect_to, host, plain, transfer};
use super::network::Network;
use super::path::Path;
use hopscope_stack_engine::config::{Config, TxOffload};
use hopscope_stack_engine::{Ns, RecvFlags, SendFlags};

const BYTES: u64 = 2 << 20;

fn offloading() -> Config {
    let mut config = plain();
    config.offload = TxOffload {
        checksum: true,
        segmentation_v4: true,
        segmentation_v6: true,
    };
    config
}

/// Segments of 64 KiB that the device cuts, each piece lost for itself.
#[test]
fn segmentation_offload_over_loss() {
    for loss in [0.0, 0.01] {
        let path = Path {
            loss,
            ..Path::default()
        };
        let outcome = bulk(offloading(), &path, 3, BYTES);
        assert!(outcome.finished, "{} bytes", outcome.bytes);
        let frames = outcome.sender.tcp_out_segs;
        assert!(frames >= BYTES / 1448, "OutSegs counts segments: {frames}");
    }
}

/// As between two local devices: frames arrive as they were sent.
#[test]
fn merged_frames_are_received_whole() {
    for ipv6 in [false, true] {
        let hosts = [host(offloading(), 1), host(offloading(), 2)];
        let path = Path {
            loss: 0.005,
            ..Path::default()
        };
        let mut network = Network::new(hosts, &path, 4);
        network.merged = true;
        let sockets = connect(&mut network, ipv6);
        let outcome = transfer(&mut network, sockets, BYTES, Ns::from_ms(100_000), true);
        assert!(outcome.finished, "{} bytes", outcome.bytes);
        assert!(
            outcome.forward.sent < BYTES / 1448 / 2,
            "{} frames",
            outcome.forward.sent
        );
    }
}

/// Two connections of the same age have shares of a bottleneck that do not starve either.
#[test]
fn two_connections_share_a_bottleneck() {
    let path = Path {
        bits_per_s: 100_000_000,
        queue_bytes: 125_000,
        delay: Ns::from_ms(5),
        ..Path::default()
    };
    let mut network = Network::new([host(plain(), 1), host(plain(), 2)], &path, 5);
    let both = [80, 81].map(|port| connect_to(&mut network, false, port));
    let mut read = [0_u64; 2];
    let mut into = vec![0; 65_536];
    let end = network.now + Ns::from_ms(2_000);
    network.run(end, |network| {
        let now = network.now;
        for (sockets, read) in both.iter().zip(&mut read) {
            let [sender, receiver] = &mut network.hosts;
            while sender
                .engine
                .send(now, sockets[0], &into, SendFlags::default())
                .is_ok()
            {}
            while let Ok(count) =
                receiver
                    .engine
                    .recv(now, sockets[1], &mut into, RecvFlags::default())
            {
                *read += count as u64;
            }
        }
        false
    });
    let total = read[0] + read[1];
    // Of 25 MB in 2 s.
    assert!(total > 20_000_000, "{read:?} bytes");
    let least = *read.iter().min().expect("two");
    assert!(least * 5 > total, "{read:?}: one starves");
}
