//! What cannot be is refused in one line, before the program starts.
use super::super::refused::expect;
use super::instance::Instance;
use crate::stack::cable::STACK;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, hopscope_bin};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3};
    suite.case("stack::pipeline_refuses", &[Netns, Python3], refused);
    suite.case("stack::pipeline_or_inline", &[Netns, Python3], either);
}

/// `--mode auto`: where the stack is is said, and where its options would be another's it is refused.
fn either() -> Result<()> {
    let instance = Instance::start(&[])?;
    let shown = format!("print(socket.create_server(('{STACK}', 7)).getsockname())");
    let program = format!("import socket; {shown}");
    let auto = |own: &[&str]| {
        let mut command = Command::new(hopscope_bin());
        command
            .args(["stack", "run", "--mode=auto", "--if=near"])
            .args(own)
            .args(["--", "/usr/bin/python3", "-c", &program]);
        command
    };
    let at = format!("--socket={}", instance.socket());
    let own = format!("--addr={STACK}/24");
    for options in [vec![&*at], vec![&*at, &*own, "--addr=fd00::2/64"]] {
        let out = run(&mut auto(&options))?.expect_code(0)?;
        ensure!(out.stderr.contains("pipeline: "), "{}", out.stderr);
        ensure!(out.stdout.contains(STACK), "{}", out.stdout);
    }
    expect(
        &mut auto(&[&at, "--addr=10.0.0.3/24"]),
        &["other addresses"],
    )?;
    expect(&mut auto(&[&at, "--mtu=900"]), &["--mtu", "--mode inline"])?;
    instance.has_nothing_left()?;
    let out = run(&mut auto(&[&at, &own]))?.expect_code(0)?;
    ensure!(
        out.stderr.contains("inline: no `stack serve`"),
        "{}",
        out.stderr
    );
    ensure!(out.stdout.contains(STACK), "{}", out.stdout);
    expect(&mut auto(&[&at]), &["--addr"])
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
    // A second one at the same place.
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
    let said = serve(&["--port=80"])?;
    ensure!(said.contains("--app"), "{said}");
    instance.has_nothing_left().map(drop)
}
