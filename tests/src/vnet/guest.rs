//! An unmodified kernel on `vnet serve`: Debian's, in a machine of QEMU's without KVM. Each guest costs a boot, so
//! that many devices with a back end each are tried in one.
use anyhow::{Result, ensure};
use hopscope_guest::{Nic, Run};
use hopscope_tests::{Requirement, Suite, Target, counts, hopscope_bin, paths, scratch};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

mod carried;
mod far;
mod rebooted;
mod restarted;
mod saved;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Vm};
    suite.case(
        "vnet::guest_gets_every_byte_and_boots_again",
        &[Netns, Vm],
        carried::run,
    );
    suite.case(
        "vnet::guest_stays_when_its_back_end_ends",
        &[Netns, Vm],
        restarted::run,
    );
    // One reboot is among those of the first.
    if counts().pick(false, true) {
        suite.case(
            "vnet::guest_reboots_for_minutes",
            &[Netns, Vm],
            rebooted::run,
        );
    }
    suite.case("vnet::guest_is_called_less", &[Netns, Vm], saved::run);
}

/// Far above what was ever seen (a whole run: 20 to 60 s): against hanging only.
const WATCHDOG: Duration = Duration::from_secs(600);

struct Guest(hopscope_guest::Guest);

impl Guest {
    fn new() -> Result<Guest> {
        let (kernel, dir) = (paths::vm_kernel()?, scratch());
        let mut guest = hopscope_guest::Guest::new(&kernel, &hopscope_bin(), &dir)?;
        guest.file("/net.sh", include_bytes!("guest/net.sh"));
        Ok(Guest(guest))
    }

    /// The next device, `eth0` the first.
    fn nic(&mut self, nic: Nic) -> Result<()> {
        Ok(self.0.nic(nic)?)
    }

    /// `script` has the functions of `net.sh`.
    fn step(&mut self, name: &str, script: &str) {
        self.0.step(name, &format!(". /net.sh\n{script}"));
    }

    fn run(self) -> Result<Run> {
        self.run_for(WATCHDOG)
    }

    fn run_for(self, watchdog: Duration) -> Result<Run> {
        let wait = |mut qemu: Command| {
            let mut machine = Target::spawn_now(&mut qemu)?;
            machine.wait_at_most(watchdog)
        };
        let run = self
            .0
            .run(|qemu| wait(qemu).map_err(|error: anyhow::Error| format!("{error:#}")));
        Ok(run?)
    }
}

/// What a step said that went well.
fn said(run: &Run, name: &str) -> Result<String> {
    let step = run.step(name)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&step.stdout), text(&step.stderr));
    ensure!(
        step.code == 0,
        "{name} ended with {}: {out}{err}",
        step.code
    );
    Ok(out)
}

/// Nothing ended that was not to, and nothing was dropped but what waited when a queue ended.
fn unharmed(summary: &Value) -> Result<()> {
    ensure!(summary["broken_off"] == 0, "{summary}");
    let pairs = summary["pairs"].as_array().into_iter().flatten();
    for queue in pairs.flat_map(|pair| [&pair["rx"], &pair["tx"]]) {
        ensure!(queue["broken"] == 0, "{summary}");
        let drops = queue["drops"].as_object().into_iter().flatten();
        for (why, count) in drops {
            ensure!(count == 0 || why == "ended", "{why}: {summary}");
        }
    }
    Ok(())
}
