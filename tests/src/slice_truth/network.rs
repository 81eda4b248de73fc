//! Two network namespaces and what lies between them; they go with their value.
use super::cable::{Cable, Kind};
use anyhow::{Result, ensure};
use hopscope_netio::bridge::{Impairments, LaneCounts};
use hopscope_tests::command::run;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) struct Network {
    name: String,
    is_loopback: bool,
    cable: Option<Cable>,
}

pub(super) const CLIENT: &str = "c";
pub(super) const SERVER: &str = "s";
/// Where the other ends of the devices are, when a cable of ours is between them.
const BETWEEN: &str = "b";
const ALL: [&str; 3] = [CLIENT, SERVER, BETWEEN];
const ENDS: [(&str, &str, u32); 2] = [(CLIENT, "hst0", 1), (SERVER, "hst1", 2)];

impl Network {
    fn empty(ends: &[&str]) -> Result<Network> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let network = Network {
            name: format!("hst{}-{number}", std::process::id()),
            is_loopback: false,
            cable: None,
        };
        for end in ends {
            ip(&format!("netns add {}", network.netns(end)))?;
            ip(&format!("-n {} link set lo up", network.netns(end)))?;
        }
        Ok(network)
    }

    /// A veth pair.
    pub(super) fn veth() -> Result<Network> {
        let network = Network::empty(&[CLIENT, SERVER])?;
        let (client, server) = (network.netns(CLIENT), network.netns(SERVER));
        ip(&format!(
            "link add hst0 netns {client} type veth peer name hst1 netns {server}"
        ))?;
        network.address()?;
        Ok(network)
    }

    /// Client and server in one namespace, on its loopback device.
    pub(super) fn loopback() -> Result<Network> {
        let mut network = Network::empty(&[CLIENT])?;
        network.is_loopback = true;
        Ok(network)
    }

    /// Two devices with our bridge between them, which does the same to both directions.
    pub(super) fn bridged(kind: Kind, impairments: Impairments) -> Result<Network> {
        let mut network = Network::empty(&ALL)?;
        let between = network.netns(BETWEEN);
        if kind == Kind::Veth {
            for (end, device, host) in ENDS {
                let end = network.netns(end);
                ip(&format!(
                    "link add {device} netns {end} type veth peer name in{host} netns {between}"
                ))?;
                ip(&format!("-n {between} link set in{host} up"))?;
            }
        }
        let ends = match kind {
            Kind::Veth => [("in1", BETWEEN), ("in2", BETWEEN)],
            Kind::Tap => [("hst0", CLIENT), ("hst1", SERVER)],
        };
        let ports = ends.map(|(device, end)| (device.to_owned(), network.path(end)));
        network.cable = Some(Cable::new(kind, ports, impairments)?);
        network.address()?;
        network.introduce()?;
        Ok(network)
    }

    fn address(&self) -> Result<()> {
        for (end, device, host) in ENDS {
            let end = self.netns(end);
            ip(&format!("-n {end} addr add 10.77.0.{host}/24 dev {device}"))?;
            ip(&format!(
                "-n {end} addr add fd77::{host}/64 dev {device} nodad"
            ))?;
            ip(&format!("-n {end} link set {device} up"))?;
        }
        Ok(())
    }

    /// Nobody has to ask for the other's link address: the question may be lost.
    fn introduce(&self) -> Result<()> {
        for (end, device, host) in ENDS {
            let (end, peer) = (self.netns(end), 3 - host);
            ip(&format!(
                "-n {end} link set {device} address 02:00:00:00:00:0{host}"
            ))?;
            for address in [format!("10.77.0.{peer}"), format!("fd77::{peer}")] {
                ip(&format!(
                    "-n {end} neigh add {address} lladdr 02:00:00:00:00:0{peer} dev {device}"
                ))?;
            }
        }
        Ok(())
    }

    fn netns(&self, end: &str) -> String {
        format!("{}{end}", self.name)
    }

    pub(super) fn path(&self, end: &str) -> String {
        let end = if self.is_loopback { CLIENT } else { end };
        format!("/run/netns/{}", self.netns(end))
    }

    /// The server's.
    pub(super) fn server_address(&self, is_six: bool) -> &'static str {
        match (self.is_loopback, is_six) {
            (true, true) => "::1",
            (true, false) => "127.0.0.1",
            (false, true) => "fd77::2",
            (false, false) => "10.77.0.2",
        }
    }

    /// What the bridge did so far, there and back.
    pub(super) fn counts(&mut self) -> Result<Option<[LaneCounts; 2]>> {
        self.cable.as_mut().map(Cable::end).transpose()
    }

    /// Both devices' settings, in the words of `ethtool -K`.
    pub(super) fn offload(self, settings: &str) -> Result<Network> {
        for (end, device, _) in ENDS {
            let end = self.netns(end);
            let mut ethtool = vec!["netns", "exec", &end, "ethtool", "-K", device];
            ethtool.extend(settings.split(' '));
            command(&ethtool)?;
        }
        Ok(self)
    }

    /// A queueing discipline at both devices.
    pub(super) fn shape(self, discipline: &str) -> Result<Network> {
        for (end, device, _) in ENDS {
            let end = self.netns(end);
            let mut tc = vec!["netns", "exec", &end, "tc", "qdisc", "add", "dev", device];
            tc.push("root");
            tc.extend(discipline.split(' '));
            command(&tc)?;
        }
        Ok(self)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Its devices are in the namespaces.
        self.cable = None;
        for end in ALL {
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
