//! What test traffic needs.
use crate::capability::{Capability, Verdict};
use crate::child::{Trial, TrialChild};
use crate::system::read_trimmed;
use nix::sched::{CloneFlags, unshare};
use std::io::{self, Write};
use std::process::{Command, Stdio};

pub(crate) fn capabilities() -> Vec<Capability> {
    let said = match TrialChild::start(Trial::Network) {
        Ok(mut child) => child.lines(),
        Err(_) => Vec::new(),
    };
    vec![
        from_child(
            "netns",
            "two hosts on one machine, for the demo's traffic",
            "run as root",
            &said,
        ),
        from_child(
            "veth",
            "the wire between two network namespaces",
            "run as root; a kernel with CONFIG_VETH",
            &said,
        ),
        tap(),
        af_xdp(),
    ]
}

/// What the child does: a line `NAME ok|missing|unknown WORDS` for each trial.
pub(crate) fn be_network_child() -> io::Result<()> {
    let mut out = std::io::stdout().lock();
    if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
        writeln!(out, "netns missing a new network namespace: {error}")?;
        writeln!(out, "veth unknown not tried without a network namespace")?;
        return Ok(());
    }
    writeln!(out, "netns ok entered a new one")?;
    let made = Command::new("ip")
        .args("link add hop0 type veth peer name hop1".split(' '))
        .stdin(Stdio::null())
        .output();
    match made {
        Ok(done) if done.status.success() => writeln!(out, "veth ok made a pair")?,
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stderr).replace('\n', " ");
            writeln!(out, "veth missing {}", text.trim())?;
        }
        Err(error) => writeln!(out, "veth unknown starting ip (package iproute2): {error}")?,
    }
    Ok(())
}

fn from_child(
    name: &'static str,
    purpose: &'static str,
    remedy: &'static str,
    said: &[String],
) -> Capability {
    let words = said.iter().find_map(|line| {
        let (state, found) = line.strip_prefix(name)?.trim_start().split_once(' ')?;
        Some((state, found))
    });
    let verdict = match words {
        Some(("ok", found)) => Verdict::ok(found),
        Some(("missing", found)) => Verdict::missing(found, remedy),
        Some((_, found)) => Verdict::unknown(found, remedy),
        None => Verdict::unknown("the child process of the check gave no result", remedy),
    };
    Capability::new(name, purpose, "tried in a child", verdict)
}

fn tap() -> Capability {
    let path = "/dev/net/tun";
    let verdict = match std::fs::File::options().read(true).write(true).open(path) {
        Ok(_) => Verdict::ok(format!("{path} opens")),
        Err(error) => Verdict::missing(
            format!("{path}: {error}"),
            "a kernel with CONFIG_TUN, and access to the device",
        ),
    };
    let purpose = "a device for `vnet serve --tap` and `load packets`";
    Capability::new("tap", purpose, "opened", verdict)
}

fn af_xdp() -> Capability {
    let path = "/proc/net/protocols";
    let remedy = "a kernel with CONFIG_XDP_SOCKETS";
    let verdict = match read_trimmed(path) {
        Err(why) => Verdict::unknown(why, remedy),
        Ok(list) => {
            if list.lines().any(|line| line.starts_with("XDP ")) {
                Verdict::ok("the socket family is registered")
            } else {
                Verdict::missing("the socket family is not registered", remedy)
            }
        }
    };
    let purpose = "packet I/O past the kernel's stack: `vnet serve --xdp`, `load packets`";
    Capability::new("af-xdp", purpose, path, verdict)
}
