//! What is sent, by what calls, over which way.
use super::cable::Kind;
use super::network::Network;
use super::run::SetUp;
use super::traffic::{SlicerIs, Traffic};
use anyhow::Result;
use hopscope_event::Ns;
use hopscope_netio::bridge::Impairments;
use hopscope_tests::counts;

type Case = (&'static str, Traffic, SetUp);

pub(super) fn all() -> Vec<Case> {
    let cases = [
        ways(),
        offload(),
        calls(),
        impaired(),
        threads(),
        leaving(),
        scarce(),
        interrupted(),
    ];
    cases.concat()
}

/// Software GSO cuts what is sent, GRO merges it again.
fn cut_and_merged() -> Result<Network> {
    Network::veth()?.offload("tso off gro on")
}

fn cut() -> Result<Network> {
    Network::veth()?.offload("tso off gro off")
}

fn whole_and_merged() -> Result<Network> {
    Network::veth()?.offload("tso on gro on")
}

fn whole() -> Result<Network> {
    Network::veth()?.offload("tso on gro off")
}

fn shaped() -> Result<Network> {
    Network::veth()?.shape("tbf rate 400mbit burst 64kb limit 4mb")
}

/// So slow that whoever writes is gone before most of it has left.
fn slow() -> Result<Network> {
    Network::veth()?.shape("tbf rate 20mbit burst 16kb limit 4mb")
}

fn taps() -> Result<Network> {
    Network::bridged(Kind::Tap, Impairments::default())
}

fn lossy() -> Result<Network> {
    let loss = Impairments {
        drop: 0.01,
        ..Impairments::default()
    };
    Network::bridged(Kind::Veth, loss)
}

fn reordering() -> Result<Network> {
    let reorder = Impairments {
        reorder: 0.05,
        reorder_by: 3,
        reorder_wait: Ns(2_000_000),
        ..Impairments::default()
    };
    Network::bridged(Kind::Veth, reorder)
}

fn duplicating() -> Result<Network> {
    let twins = Impairments {
        duplicate: 0.2,
        ..Impairments::default()
    };
    Network::bridged(Kind::Veth, twins)
}

fn duplicating_and_merged() -> Result<Network> {
    duplicating()?.offload("tso off gro on")
}

fn lossy_and_merged() -> Result<Network> {
    lossy()?.offload("tso off gro on")
}

fn reordering_and_merged() -> Result<Network> {
    reordering()?.offload("tso off gro on")
}

fn lossy_taps() -> Result<Network> {
    let loss = Impairments {
        drop: 0.01,
        reorder: 0.02,
        reorder_wait: Ns(2_000_000),
        ..Impairments::default()
    };
    Network::bridged(Kind::Tap, loss)
}

fn tcp() -> Traffic {
    Traffic {
        rounds: counts().pick(150, 20_000),
        ..Traffic::default()
    }
}

fn udp() -> Traffic {
    Traffic {
        protocol: "udp",
        ..tcp()
    }
}

fn six(traffic: Traffic) -> Traffic {
    Traffic {
        is_six: true,
        ..traffic
    }
}

fn sized(traffic: Traffic, size: u64) -> Traffic {
    Traffic { size, ..traffic }
}

fn bursts() -> Traffic {
    Traffic {
        rounds: counts().pick(10, 500),
        burst: 200,
        size: 3000,
        ..tcp()
    }
}

fn ways() -> Vec<Case> {
    let large = sized(tcp(), 6000);
    vec![
        ("tcp_small", tcp(), Network::veth),
        ("tcp_60000", sized(tcp(), 60_000), Network::veth),
        ("tcp_ipv6", six(large), Network::veth),
        ("tcp_stream", bursts(), Network::veth),
        ("tcp_stream_ipv6", six(bursts()), Network::veth),
        ("shaped", sized(tcp(), 3000), shaped),
        ("udp_small", udp(), Network::veth),
        ("udp_ipv6", six(udp()), Network::veth),
        ("udp_fragments", sized(udp(), 4000), Network::veth),
        ("loopback_tcp", large, Network::loopback),
        ("loopback_tcp_ipv6", six(large), Network::loopback),
        ("loopback_stream", bursts(), Network::loopback),
        ("loopback_udp", udp(), Network::loopback),
        ("loopback_udp_ipv6", six(udp()), Network::loopback),
        ("tap_tcp", large, taps),
        ("tap_tcp_ipv6", six(large), taps),
        ("tap_stream", bursts(), taps),
        ("tap_udp", udp(), taps),
    ]
}

fn offload() -> Vec<Case> {
    let large = sized(tcp(), 6000);
    vec![
        ("tso_and_gro", large, whole_and_merged),
        ("tso_without_gro", large, whole),
        ("tso_without_gro_ipv6", six(large), whole),
        ("gso_and_gro", large, cut_and_merged),
        ("gso_and_gro_ipv6", six(large), cut_and_merged),
        ("gso_without_gro", large, cut),
        ("gso_stream", bursts(), cut_and_merged),
        ("gso_stream_without_gro", bursts(), cut),
    ]
}

fn calls() -> Vec<Case> {
    let calls = |traffic: Traffic, writer, reader| Traffic {
        writer,
        reader,
        ..traffic
    };
    let flows = |traffic: Traffic| Traffic {
        flows: 4,
        ..traffic
    };
    let short_reads = Traffic {
        burst: 20,
        size: 1000,
        read: 10,
        ..bursts()
    };
    let burst = Traffic { burst: 16, ..udp() };
    vec![
        ("tcp_short_reads", short_reads, Network::veth),
        ("tcp_connections", flows(sized(tcp(), 2000)), Network::veth),
        ("write_read", calls(tcp(), "write", "read"), Network::veth),
        (
            "sendmsg_recvmsg",
            calls(tcp(), "sendmsg", "recvmsg"),
            Network::veth,
        ),
        (
            "sendmmsg_recvmmsg",
            calls(udp(), "sendmmsg", "recvmmsg"),
            Network::veth,
        ),
        ("epoll", calls(tcp(), "send", "epoll"), Network::veth),
        ("tcp_peek", calls(tcp(), "send", "peek"), Network::veth),
        ("udp_peek", calls(udp(), "send", "peek"), Network::veth),
        ("udp_burst", burst, Network::veth),
        ("udp_sockets", flows(udp()), Network::veth),
    ]
}

/// Packets are lost and overtaken on the way, and sent again.
fn impaired() -> Vec<Case> {
    let lost = |traffic: Traffic| Traffic {
        may_lose: true,
        ..traffic
    };
    let reordered = |traffic: Traffic| Traffic {
        may_reorder: true,
        ..traffic
    };
    let duplicated = |traffic: Traffic| Traffic {
        may_duplicate: true,
        ..traffic
    };
    let flows = Traffic {
        flows: 4,
        burst: 8,
        size: 2000,
        ..tcp()
    };
    let datagrams = Traffic {
        mode: "stream",
        rounds: counts().pick(1_000, 100_000),
        ..udp()
    };
    vec![
        ("loss", lost(bursts()), lossy),
        ("loss_ipv6", lost(six(bursts())), lossy),
        ("loss_and_gro", lost(bursts()), lossy_and_merged),
        ("loss_and_gro_ipv6", lost(six(bursts())), lossy_and_merged),
        ("loss_connections", lost(flows), lossy),
        ("loss_udp", lost(datagrams), lossy),
        ("reordered", reordered(bursts()), reordering),
        (
            "reordered_and_gro",
            reordered(bursts()),
            reordering_and_merged,
        ),
        (
            "reordered_and_gro_ipv6",
            reordered(six(bursts())),
            reordering_and_merged,
        ),
        ("reordered_connections", reordered(flows), reordering),
        ("reordered_udp", reordered(datagrams), reordering),
        ("duplicated", duplicated(bursts()), duplicating),
        (
            "duplicated_and_gro",
            duplicated(bursts()),
            duplicating_and_merged,
        ),
        (
            "duplicated_and_gro_ipv6",
            duplicated(six(bursts())),
            duplicating_and_merged,
        ),
        ("tap_loss", reordered(lost(bursts())), lossy_taps),
    ]
}

/// Several threads on one socket.
fn threads() -> Vec<Case> {
    let shared = |traffic: Traffic, writers, readers| Traffic {
        mode: "stream",
        rounds: counts().pick(2_000, 100_000),
        writers,
        readers,
        ..traffic
    };
    let parts = |traffic: Traffic| Traffic {
        read: 256,
        ..traffic
    };
    vec![
        ("tcp_writers", shared(tcp(), 4, 1), Network::veth),
        ("tcp_readers", parts(shared(tcp(), 1, 4)), Network::veth),
        ("udp_writers", shared(udp(), 4, 1), Network::veth),
        ("udp_readers", shared(udp(), 1, 4), Network::veth),
        ("udp_both", shared(udp(), 4, 4), Network::veth),
        ("udp_both_ipv6", shared(six(udp()), 4, 4), Network::veth),
        ("loopback_both", shared(udp(), 4, 4), Network::loopback),
    ]
}

/// One end is gone while packets are under way.
fn leaving() -> Vec<Case> {
    let leaves = |traffic: Traffic, mode| Traffic {
        mode,
        rounds: 200,
        size: 1000,
        ..traffic
    };
    let (writer, reader) = ("writer-leaves", "reader-leaves");
    // Each second one is closed with its data unread.
    let sockets = Traffic {
        mode: "sockets",
        rounds: counts().pick(400, 8_000),
        ..tcp()
    };
    vec![
        ("tcp_writer_leaves", leaves(tcp(), writer), slow),
        ("udp_writer_leaves", leaves(udp(), writer), slow),
        ("tcp_reader_leaves", leaves(tcp(), reader), slow),
        ("udp_reader_leaves", leaves(udp(), reader), slow),
        ("sockets_reused", sockets, Network::veth),
    ]
}

/// Not enough room for all that is recorded.
fn scarce() -> Vec<Case> {
    let few_slots = |traffic: Traffic| Traffic {
        options: &["-s", "64", "--slots", "64"],
        ..traffic
    };
    let ring_full = Traffic {
        options: &["-s", "2048"],
        slicer: SlicerIs::Stopped,
        mode: "stream",
        rounds: 20_000,
        size: 1400,
        ..udp()
    };
    let burst = Traffic { burst: 16, ..udp() };
    vec![
        ("few_slots_tcp", few_slots(bursts()), Network::veth),
        ("few_slots_udp", few_slots(burst), Network::veth),
        ("ring_full", ring_full, Network::veth),
    ]
}

/// Hooks that see some of the packets, and some of each packet's way.
fn interrupted() -> Vec<Case> {
    let long = |traffic: Traffic| Traffic {
        rounds: counts().pick(20_000, 400_000),
        flows: 2,
        slicer: SlicerIs::AtTimes,
        ..traffic
    };
    let duty = |traffic: Traffic| Traffic {
        options: &["-s", "64", "--duty", "1/2"],
        ..long(traffic)
    };
    let toggled = |traffic: Traffic| Traffic {
        slicer: SlicerIs::Toggled,
        ..long(traffic)
    };
    vec![
        ("duty_tcp", duty(tcp()), Network::veth),
        ("duty_udp", duty(udp()), Network::veth),
        ("toggled_tcp", toggled(tcp()), Network::veth),
        ("toggled_udp", toggled(udp()), Network::veth),
    ]
}
