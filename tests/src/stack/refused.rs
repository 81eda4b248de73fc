//! What cannot be is said in one line, with what could be.
use super::cable::{Way, files, ip, namespace};
use super::serving::Serving;
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, hopscope, hopscope_bin};
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns];
    suite.case("stack::serve_refuses_what_cannot_be", needs, refusals);
    suite.case("stack::serve_needs_permission", needs, permission);
    suite.case("stack::serve_is_quiet_with_q", needs, quiet);
    suite.case("stack::ss_refuses_what_cannot_be", needs, nobody);
}

fn refusals() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    for (arguments, words) in [
        (
            &["--if=none", "--addr=10.0.0.2/24"][..],
            &["none", "ip link"][..],
        ),
        (
            &["--if=near", "--addr=10.0.0.1/24"],
            &["10.0.0.1", "far", "choose another"],
        ),
        (&["--if=near", "--addr=fd00::1/64"], &["fd00::1", "far"]),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--mtu=60"],
            &["MTU", "60"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--mtu=9000"],
            &["9000", "near", "1500"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--mac=01:00:5e:00:00:01"],
            &["01:00:5e:00:00:01", "group"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--mac=00:00:00:00:00:00"],
            &["--mac", "no address of a host"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--gateway=10.0.1.1"],
            &["10.0.1.1", "on the link"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--gateway=10.0.0.2"],
            &["10.0.0.2", "own address"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--gateway=fd00::1"],
            &["fd00::1", "no IPv6 address"],
        ),
        (
            &[
                "--if=near",
                "--addr=10.0.0.2/24",
                "--gateway=10.0.0.1",
                "--gateway=10.0.0.3",
            ],
            &["10.0.0.3", "already"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--addr=10.0.0.2/16"],
            &["10.0.0.2/16", "twice"],
        ),
        (
            &["--if=near", "--addr=fd00::2/64", "--mtu=600"],
            &["MTU", "600", "1280"],
        ),
        (
            &["--if=near", "--addr=224.0.0.1/24"],
            &["224.0.0.1", "unicast"],
        ),
        (&["--if=near", "--addr=10.0.0.2/33"], &["33", "32"]),
        (&["--if=near", "--addr=10.0.0.2"], &["10.0.0.2/24"]),
        (&["--if=near"], &["--addr"]),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--app=ftp"],
            &["echo", "http:BYTES"],
        ),
        (&["--if=ftp:near", "--addr=10.0.0.2/24"], &["packet:DEVICE"]),
        (
            &[
                "--if=xdp:near",
                "--addr=10.0.0.2/24",
                "--engines=2",
                "--app=echo",
            ],
            &["queues", "tap:NAME"],
        ),
        (
            &["--if=tap:near", "--addr=10.0.0.2/24"],
            &["near", "in use"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--user=nobody-at-all"],
            &["getent"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--netns=none"],
            &["/run/netns/none"],
        ),
        (
            &["--if=near", "--addr=10.0.0.2/24", "--control=/proc/none"],
            &["/proc/none"],
        ),
    ] {
        let all = [&["stack", "serve"], arguments].concat();
        let out = hopscope(&all)?.expect_code(2)?;
        for word in words {
            ensure!(out.stderr.contains(word), "{arguments:?}: {}", out.stderr);
        }
        ensure!(out.stdout.is_empty(), "{arguments:?}: {}", out.stdout);
        let is_usage = out.stderr.contains("Usage:") || out.stderr.contains("--help");
        ensure!(
            is_usage || out.stderr.lines().count() == 1,
            "{arguments:?}: {}",
            out.stderr
        );
    }
    Ok(())
}

/// Errors alone are said.
fn quiet() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let ready = files().join("ready-quiet");
    let mut command = Command::new(hopscope_bin());
    command
        .args(["-q", "stack", "serve", "--no-control", "--ready-file"])
        .arg(&ready)
        .args(Way::Packet.arguments())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let serving = Target::spawn_with_ready_file(&mut command, &ready)?;
    ip("link set near down")?;
    ip("link set near up")?;
    serving.signal(Signal::SIGTERM)?;
    let out = serving.output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success() && said.is_empty(), "{said}");
    Ok(())
}

fn permission() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let words = ["--clear-groups", "--reuid=65534", "--regid=65534", "--"];
    let mut command = Command::new("setpriv");
    command.args(words).arg(hopscope_bin());
    command.args(["stack", "serve", "--if=near", "--addr=10.0.0.2/24"]);
    let out = hopscope_tests::command::run(&mut command)?.expect_code(2)?;
    ensure!(out.stderr.contains("CAP_NET_RAW"), "{}", out.stderr);
    Ok(())
}

fn nobody() -> Result<()> {
    namespace()?;
    let out = hopscope(&["stack", "ss"])?.expect_code(2)?;
    ensure!(
        out.stderr.contains("no running stack serve"),
        "{}",
        out.stderr
    );
    Way::Packet.make()?;
    let serving = Serving::start(Way::Packet, &["--app=echo"])?;
    // Two cannot take requests at one place.
    let taken = [
        "--if=near",
        "--addr=10.0.0.3/24",
        "--control",
        serving.control(),
    ];
    let words = [&["stack", "serve"], &taken[..]].concat();
    let out = hopscope(&words)?.expect_code(2)?;
    ensure!(out.stderr.contains("in use"), "{}", out.stderr);
    // The only one is found without a name.
    hopscope(&["stack", "stats", "--json"])?.expect_code(0)?;
    serving.stop()?;
    Ok(())
}
