//! The demo's namespaces, gone when the case ends.
use anyhow::Result;
use hopscope_tests::{command::run, repository};
use std::process::Command;

pub(crate) struct Network(String);

impl Network {
    pub(crate) fn up() -> Result<Network> {
        let network = Network(format!("hopscope-test-{}", std::process::id()));
        network.script("up")?;
        Ok(network)
    }

    fn script(&self, verb: &str) -> Result<()> {
        run(Command::new(repository().join("demo/network")).args([verb, &self.0]))?
            .expect_code(0)
            .map(drop)
    }

    /// A command that will run its arguments where the network function belongs.
    pub(crate) fn inside(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}-nf", self.0)]);
        command
    }

    /// The namespace at the other end of a cable, as `ip netns` knows it.
    pub(crate) fn namespace(&self, side: &str) -> String {
        format!("{}-{side}", self.0)
    }

    /// Where a cable ends: namespace and interface, for the traffic.
    pub(crate) fn place(&self, side: &str) -> String {
        format!("{}-{side}:eth0", self.0)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Err(error) = self.script("down") {
            eprintln!("{error:#}");
        }
    }
}
