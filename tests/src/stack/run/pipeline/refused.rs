//! What cannot be is refused in one line, before the program starts.
use super::super::refused::expect;
use super::instance::Instance;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, hopscope_bin};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3};
    suite.case("stack::pipeline_refuses", &[Netns, Python3], refused);
}

fn refused() -> Result<()> {
    let instance = Instance::start(&[])?;
    for option in [
        "--addr=10.0.0.2/24",
        "--gateway=10.0.0.1",
        "--mtu=900",
        "--spin",
    ] {
        let name = option.split('=').next().unwrap_or_default();
        expect(
            &mut instance.run(&[option], &["true"]),
            &[name, "stack serve"],
        )?;
    }
    let own = |arguments: &[&str]| {
        let mut command = Command::new(hopscope_bin());
        command
            .args(["stack", "run"])
            .args(arguments)
            .args(["--", "true"]);
        command
    };
    let nowhere = ["--mode=pipeline", "--if=near", "--socket=/nowhere/at/all"];
    expect(&mut own(&nowhere), &["/nowhere/at/all", "stack serve"])?;
    expect(&mut own(&["--if=near"]), &["--addr"])?;
    let inline = ["--if=near", "--addr=10.0.0.2/24", "--socket=/x"];
    expect(&mut own(&inline), &["--socket", "--mode pipeline"])?;
    let elsewhere = ["--mode=pipeline", "--if=far", "--socket", instance.socket()];
    expect(&mut own(&elsewhere), &["packet:near", "packet:far"])?;
    // A second one at the same place, and one with several engines.
    let at = format!("--socket={}", instance.socket());
    let serve = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(hopscope_bin());
        command
            .args([
                "stack",
                "serve",
                "--if=near",
                "--addr=10.0.0.3/24",
                "--no-control",
            ])
            .args(arguments);
        Ok(run(&mut command)?.expect_code(2)?.stderr)
    };
    let said = serve(&[&at])?;
    ensure!(said.contains(instance.socket()), "{said}");
    let said = serve(&["--engines=2", "--socket=/x"])?;
    ensure!(said.contains("--engines 2"), "{said}");
    let said = serve(&["--port=80"])?;
    ensure!(said.contains("--app"), "{said}");
    instance.has_nothing_left().map(drop)
}
