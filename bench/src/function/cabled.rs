//! The demo firewall between two cables, in a network namespace of its own, and generated packets
//! that go through it. Both run before everything else on the machine.
use super::Processors;
use super::firewall;
use super::ready_process::Started;
use crate::Settings;
use crate::error::{Error, Result};
use crate::load::network::Namespace;
use crate::program::run;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Called once for each batch, in this order.
pub(crate) const MODULES: [&str; 10] = [
    "ethernet_input",
    "l2_input",
    "feature_arc_in",
    "acl_match",
    "feature_arc_out",
    "l2_learn",
    "l2_forward",
    "l2_output",
    "interface_output",
    "device_output",
];

/// Dropping it ends the firewall and takes the network away.
pub(crate) struct Cabled {
    nf: Started,
    network: Namespace,
    hopscope: PathBuf,
    processors: Processors,
    rules: PathBuf,
    /// For files of whoever uses it.
    pub(crate) dir: PathBuf,
}

impl Cabled {
    /// With 1,000 rules; `options` are the firewall's, `name` that of a folder.
    pub(crate) fn start(
        settings: &Settings,
        processors: &Processors,
        demo: Option<&PathBuf>,
        name: &str,
        options: &[&str],
    ) -> Result<Cabled> {
        let dir = settings.build_dir.join(name);
        fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        let network = Namespace::new()?;
        network.cable("p0", &network, "nf0")?;
        network.cable("nf1", &network, "p1")?;
        let rules = dir.join("rules");
        let mut write = Command::new(&settings.hopscope);
        write.args(["load", "packets", "--rules", "1000", "--write-rules"]);
        run(write.arg(&rules))?;
        let mut command = network.urgent("taskset");
        let nf =
            firewall::between_ports(settings, &mut command, processors, demo, &rules, options)?;
        let hopscope = std::path::absolute(&settings.hopscope)
            .map_err(Error::file("find", &settings.hopscope))?;
        Ok(Cabled {
            nf,
            network,
            hopscope,
            processors: *processors,
            rules,
            dir,
        })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.nf.pid()
    }

    /// The error, and how the firewall ended if that is behind it.
    pub(crate) fn blamed(&mut self, error: Error) -> Error {
        self.nf.blamed("the firewall", error)
    }

    /// Sends packets of 128 bytes that match the rules, and waits for the last.
    pub(crate) fn load(&self, arguments: &[&str]) -> Result<()> {
        let mut load = self.network.urgent("taskset");
        load.args(["-c", &self.processors.others.to_string()])
            .arg(&self.hopscope)
            .args(["load", "packets", "--tx", "packet:p0", "--rx", "packet:p1"])
            .args(["--size", "128", "--quiet", "--rules"])
            .arg(&self.rules)
            .args(arguments);
        run(&mut load).map(drop)
    }
}
