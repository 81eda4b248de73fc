//! Two network namespaces with a veth pair between them; they go with their value.
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) struct Network {
    name: String,
}

pub(super) const CLIENT: &str = "c";
pub(super) const SERVER: &str = "s";

impl Network {
    pub(super) fn new() -> Result<Network> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let network = Network {
            name: format!("hst{}-{number}", std::process::id()),
        };
        for end in [CLIENT, SERVER] {
            ip(&format!("netns add {}{end}", network.name))?;
        }
        let (client, server) = (network.netns(CLIENT), network.netns(SERVER));
        ip(&format!(
            "link add hst0 netns {client} type veth peer name hst1 netns {server}"
        ))?;
        for (end, device, host) in [(&client, "hst0", 1), (&server, "hst1", 2)] {
            ip(&format!("-n {end} link set lo up"))?;
            ip(&format!("-n {end} addr add 10.77.0.{host}/24 dev {device}"))?;
            ip(&format!(
                "-n {end} addr add fd77::{host}/64 dev {device} nodad"
            ))?;
            ip(&format!("-n {end} link set {device} up"))?;
        }
        Ok(network)
    }

    pub(super) fn netns(&self, end: &str) -> String {
        format!("{}{end}", self.name)
    }

    pub(super) fn path(&self, end: &str) -> String {
        format!("/run/netns/{}{end}", self.name)
    }

    /// Both devices' settings, in the words of `ethtool -K`.
    pub(super) fn offload(&self, settings: &str) -> Result<()> {
        self.each(|end, device| {
            let mut ethtool = vec!["netns", "exec", end, "ethtool", "-K", device];
            ethtool.extend(settings.split(' '));
            command(&ethtool)
        })
    }

    /// A queueing discipline at both devices.
    pub(super) fn shape(&self, discipline: &str) -> Result<()> {
        self.each(|end, device| {
            let mut tc = vec!["netns", "exec", end, "tc", "qdisc", "add", "dev", device];
            tc.push("root");
            tc.extend(discipline.split(' '));
            command(&tc)
        })
    }

    fn each(&self, set: impl Fn(&str, &str) -> Result<()>) -> Result<()> {
        set(&self.netns(CLIENT), "hst0")?;
        set(&self.netns(SERVER), "hst1")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for end in [CLIENT, SERVER] {
            // What is not there need not be removed.
            let _ = ip(&format!("netns del {}", self.netns(end)));
        }
    }
}

fn ip(arguments: &str) -> Result<()> {
    command(&arguments.split(' ').collect::<Vec<_>>())
}

fn command(arguments: &[&str]) -> Result<()> {
    let out = run(Command::new("ip").args(arguments))?;
    ensure!(out.code == Some(0), "ip {arguments:?}: {}", out.stderr);
    Ok(())
}
