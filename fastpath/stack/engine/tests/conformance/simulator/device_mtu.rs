//! A device that drops what is longer than its MTU, which is lowered and raised amid transfers; the engine hears of it some frames later.
use super::bulk::{connect, host, plain, transfer};
use super::network::Network;
use super::path::Path;
use hopscope_stack_engine::config::TxOffload;
use hopscope_stack_engine::{Config, Ns};

const MTUS: [u16; 8] = [1_000, 1_500, 576, 1_400, 900, 1_499, 1_280, 1_500];
const BYTES: u64 = 400_000;

fn offloading() -> Config {
    Config {
        offload: TxOffload {
            checksum: true,
            segmentation_v4: true,
            segmentation_v6: true,
        },
        ..plain()
    }
}

/// One transfer for each MTU: the first frames of each are too long, or shorter than they need to be.
fn changes(config: &Config, ipv6: bool) {
    let hosts = [host(config.clone(), 1), host(config.clone(), 2)];
    let mut network = Network::new(hosts, &Path::default(), 1);
    let sockets = connect(&mut network, ipv6);
    for mtu in MTUS {
        network.directions[0].path.mtu = usize::from(mtu);
        network.tell_mtu = Some((0, 2, mtu));
        let outcome = transfer(&mut network, sockets, BYTES, Ns::from_ms(60_000), false);
        assert!(outcome.finished, "MTU {mtu}: {outcome:?}");
        let now = network.now;
        let path_mtu = network.hosts[0].engine.path_mtu(now, sockets[0]);
        assert_eq!(path_mtu, Ok(mtu));
    }
    let dropped = network.directions[0].counters.too_long;
    assert!(dropped > 0, "no frame was too long");
    assert_eq!(network.hosts[0].engine.counters().timeouts, 0, "time-outs");
}

#[test]
fn transfers_go_on() {
    for config in [plain(), offloading()] {
        changes(&config, false);
    }
}

#[test]
fn transfers_go_on_by_ipv6() {
    changes(&plain(), true);
}
