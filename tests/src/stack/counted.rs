//! What is of no connection counts once, however many engines are on the device, and what they send themselves never.
use super::cable::{KERNEL, KERNEL_V6, STACK, STACK_V6, Way, files, namespace, whole};
use super::serving::{Serving, counter};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, hopscope, hopscope_bin, programs};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(20);

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3};
    let needs = &[Netns, Python3];
    suite.case("stack::each_frame_counts_once", needs, || counts("1"));
    suite.case("stack::each_frame_counts_once_over_engines", needs, || {
        counts("3")
    });
    suite.case(
        "stack::engines_do_not_hear_themselves",
        &[Netns],
        hears_nothing_of_its_own,
    );
    suite.case(
        "stack::instances_of_one_device_are_apart",
        &[Netns],
        instances_are_apart,
    );
}

/// Where the kernel segments for a device that does not, its segments are of no socket, and a group's sockets would receive them.
fn hears_nothing_of_its_own() -> Result<()> {
    const BODY: usize = 400_000;
    namespace()?;
    Way::Packet.make()?;
    whole("near")?;
    let own = [format!("--app=http:{BODY}"), "--port=80".into()];
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let serving = Serving::of_engines(Way::Packet, "--engines=3", &own)?;
    for stack in [STACK, STACK_V6].repeat(4) {
        let answer = answer_of(stack)?;
        ensure!(answer > BODY, "{answer}");
    }
    let words = ["stack", "stats", "--json", "--control", serving.control()];
    let stats: Value = serde_json::from_str(&hopscope(&words)?.expect_code(0)?.stdout)?;
    ensure!(counter(&stats, "/counters/Tcp/OutSegs") as usize > 8 * BODY / 1_500);
    ensure!(
        counter(&stats, "/counters/Hopscope/FramesForeign") == 0,
        "{stats}"
    );
    // Answers of neighbours, which several may need.
    let passed_on = counter(&stats, "/share/received");
    ensure!(passed_on <= 20, "{passed_on} passed on: {stats}");
    serving.stop().map(drop)
}

/// Its length.
fn answer_of(stack: &str) -> Result<usize> {
    let mut stream = TcpStream::connect((stack, 80))?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer.len())
}

/// Each is process 1 of a PID namespace, as in a container: what shares a device's frames is not told apart by that.
fn instances_are_apart() -> Result<()> {
    const OTHER: &str = "10.0.0.3";
    namespace()?;
    Way::Packet.make()?;
    let start = |stack: &str| -> Result<Target> {
        let path = |name: &str| files().join(format!("{stack}-{name}"));
        let ready = path("ready");
        let mut command = Command::new("unshare");
        command
            .args(["--pid", "--fork", "--kill-child"])
            .arg(hopscope_bin())
            .args(["stack", "serve", "--if=near", "--engines=2"])
            .args(["--app=http:100", "--addr", &format!("{stack}/24")])
            .arg("--ready-file")
            .arg(&ready)
            .arg("--control")
            .arg(path("control"))
            .stdin(Stdio::null());
        Target::spawn_with_ready_file(&mut command, &ready)
    };
    let _both = [start(STACK)?, start(OTHER)?];
    for stack in [STACK, OTHER].repeat(10) {
        let answer = answer_of(stack)?;
        ensure!(answer > 100, "{answer}");
    }
    Ok(())
}

/// How much more than before there is behind the frames of `frames.py`, with the kernel's meaning of each.
const COUNTED: [(&str, u64); 15] = [
    ("Ip/InReceives", 8 + 20 + 6 + 4 + 8 + 3),
    ("Ip/InDelivers", 8 + 20 + 6 + 8 + 1),
    ("Ip/InHdrErrors", 2),
    ("Ip/InUnknownProtos", 2),
    ("Ip/ReasmReqds", 3),
    ("Ip/ReasmOKs", 1),
    ("Icmp/InMsgs", 8 + 20 + 6 + 8),
    ("Icmp/InErrors", 20 + 6 + 2),
    ("Icmp/InDestUnreachs", 8 + 20),
    ("Icmp/InTimeExcds", 2),
    ("Icmp/InParmProbs", 2),
    ("Udp/NoPorts", 1),
    ("TcpExt/OutOfWindowIcmps", 8),
    ("Hopscope/IcmpIgnored", 2),
    ("Hopscope/AddressConflicts", 2),
];

fn counts(engines: &str) -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let own = ["--app=echo", "--port=7"];
    let serving = Serving::of_engines(Way::Packet, &format!("--engines={engines}"), &own)?;
    let stats = || -> Result<Value> {
        let words = ["stack", "stats", "--json", "--control", serving.control()];
        Ok(serde_json::from_str(
            &hopscope(&words)?.expect_code(0)?.stdout,
        )?)
    };
    let of = |stats: &Value, name: &str| counter(stats, &format!("/counters/{name}"));
    let once = |name: &str, least: u64| -> Result<Value> {
        let started = Instant::now();
        loop {
            let stats = stats()?;
            if of(&stats, name) >= least {
                return Ok(stats);
            }
            ensure!(
                started.elapsed() < WATCHDOG,
                "{name} below {least}: {stats}"
            );
        }
    };
    let connect = |_| TcpStream::connect((STACK, 7));
    let streams: Vec<TcpStream> = (0..8).map(connect).collect::<Result<_, _>>()?;
    once("Tcp/PassiveOpens", 8)?;
    // The kernel says nothing more of its own.
    std::fs::write("/proc/sys/net/ipv6/conf/far/disable_ipv6", "1")?;
    let before = stats()?;
    let ends = ["far", "near", KERNEL, STACK, KERNEL_V6, STACK_V6];
    let mut sender = Command::new("/usr/bin/python3");
    sender.arg("-B").arg(programs().join("stack/frames.py"));
    sender.args(ends);
    for stream in &streams {
        sender.arg(stream.local_addr()?.port().to_string());
    }
    run(&mut sender)?.expect_code(0)?;
    // The fragments are last, and each way between two engines keeps its order.
    let last = of(&before, "Udp/NoPorts") + 1;
    once("Udp/NoPorts", last)?;
    let received = of(&before, "Ip/InReceives") + COUNTED[0].1;
    let after = once("Ip/InReceives", received)?;
    for (name, more) in COUNTED {
        let counted = of(&after, name) - of(&before, name);
        ensure!(counted == more, "{name}: {counted}, not {more}: {after}");
    }
    drop(streams);
    serving.stop().map(drop)
}
