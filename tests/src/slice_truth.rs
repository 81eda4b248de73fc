//! Every record of the kernel's path against what the programs at both ends know of their own calls:
//! a record that is wrong is a failure, one that is missing has a counter.
use hopscope_tests::Requirement::{Gcc, Netns, Root};
use hopscope_tests::{Suite, counts};

mod account;
mod calls;
mod check;
mod network;
mod run;

use network::Network;
use run::Traffic;

const NEEDS: &[hopscope_tests::Requirement] = &[Root, Gcc, Netns];

pub(crate) fn register(suite: &mut Suite) {
    for (name, traffic, set_up) in cases() {
        suite.case(name, NEEDS, move || run::checked(name, &traffic, set_up));
    }
}

type SetUp = fn(&Network) -> anyhow::Result<()>;

fn plain(_: &Network) -> anyhow::Result<()> {
    Ok(())
}

/// Software GSO cuts what is sent, GRO merges it again.
fn cut_and_merged(network: &Network) -> anyhow::Result<()> {
    network.offload("tso off gro on")
}

fn cut(network: &Network) -> anyhow::Result<()> {
    network.offload("tso off gro off")
}

fn whole_and_merged(network: &Network) -> anyhow::Result<()> {
    network.offload("tso on gro on")
}

fn shaped(network: &Network) -> anyhow::Result<()> {
    network.shape("tbf rate 400mbit burst 64kb limit 4mb")
}

fn cases() -> Vec<(&'static str, Traffic, SetUp)> {
    let rounds = counts().pick(150, 20_000);
    let few = counts().pick(10, 500);
    let tcp = Traffic {
        rounds,
        ..Traffic::default()
    };
    let udp = Traffic {
        protocol: "udp",
        ..tcp
    };
    let six = |traffic: Traffic| Traffic {
        is_six: true,
        ..traffic
    };
    let sized = |traffic: Traffic, size: u64| Traffic { size, ..traffic };
    let calls = |traffic: Traffic, writer, reader| Traffic {
        writer,
        reader,
        ..traffic
    };
    let stream = Traffic {
        rounds: few,
        burst: 200,
        size: 3000,
        ..tcp
    };
    let slow = Traffic {
        rounds: few,
        burst: 20,
        size: 1000,
        read: 10,
        ..tcp
    };
    let flows = |traffic: Traffic| Traffic {
        flows: 4,
        ..traffic
    };
    vec![
        ("slice_truth::tcp_small", tcp, plain),
        ("slice_truth::tcp_60000", sized(tcp, 60_000), plain),
        ("slice_truth::tcp_ipv6", six(sized(tcp, 6000)), plain),
        ("slice_truth::tcp_stream", stream, plain),
        ("slice_truth::tcp_stream_ipv6", six(stream), plain),
        ("slice_truth::tcp_short_reads", slow, plain),
        (
            "slice_truth::tcp_connections",
            flows(sized(tcp, 2000)),
            plain,
        ),
        (
            "slice_truth::tso_and_gro",
            sized(tcp, 6000),
            whole_and_merged,
        ),
        ("slice_truth::gso_and_gro", sized(tcp, 6000), cut_and_merged),
        (
            "slice_truth::gso_and_gro_ipv6",
            six(sized(tcp, 6000)),
            cut_and_merged,
        ),
        ("slice_truth::gso_without_gro", sized(tcp, 6000), cut),
        ("slice_truth::gso_stream", stream, cut_and_merged),
        ("slice_truth::shaped", sized(tcp, 3000), shaped),
        (
            "slice_truth::write_read",
            calls(tcp, "write", "read"),
            plain,
        ),
        (
            "slice_truth::sendmsg_recvmsg",
            calls(tcp, "sendmsg", "recvmsg"),
            plain,
        ),
        (
            "slice_truth::sendmmsg_recvmmsg",
            calls(udp, "sendmmsg", "recvmmsg"),
            plain,
        ),
        ("slice_truth::epoll", calls(tcp, "send", "epoll"), plain),
        ("slice_truth::tcp_peek", calls(tcp, "send", "peek"), plain),
        ("slice_truth::udp_peek", calls(udp, "send", "peek"), plain),
        ("slice_truth::udp_small", udp, plain),
        ("slice_truth::udp_ipv6", six(udp), plain),
        (
            "slice_truth::udp_burst",
            Traffic { burst: 16, ..udp },
            plain,
        ),
        ("slice_truth::udp_sockets", flows(udp), plain),
        ("slice_truth::udp_fragments", sized(udp, 4000), plain),
    ]
}
