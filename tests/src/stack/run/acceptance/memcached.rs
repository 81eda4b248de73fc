//! memcached: four threads, values of no byte and of many segments.
use super::super::running::{kernel_has_none, python, words};
use super::side::{End, Mode, Side};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Result, ensure};
use hopscope_tests::command::{Output, run};
use hopscope_tests::{Requirement, Suite, counts};
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Memcached, Netns, Python3};
    let needs = &[Netns, Memcached, Python3];
    for mode in Mode::BOTH {
        let name = format!("{}_serves_with_memcached", mode.prefix());
        suite.case(name, needs, move || serves(mode)).in_turn();
        let name = format!("{}_connects_to_memcached", mode.prefix());
        suite.case(name, needs, move || connects(mode)).in_turn();
    }
}

const PORT: &str = "11211";

fn pid() -> PathBuf {
    files().join("memcached-pid")
}

fn server(address: &str) -> Vec<String> {
    let file = pid().display().to_string();
    let words = [
        "/usr/bin/memcached",
        "-u",
        "root",
        "-l",
        address,
        "-p",
        PORT,
        "-U",
        "0",
        "-t",
        "4",
        "-m",
        "1024",
        "-P",
        &file,
    ];
    words.map(str::to_owned).to_vec()
}

fn client(address: &str) -> Vec<String> {
    python(
        "memcached_client.py",
        &[address, PORT, "4", counts().pick("800", "8000")],
    )
}

fn went_well(out: &Output) -> Result<()> {
    let most = 4 * counts().pick(800, 8_000);
    let expected = format!("{most} values");
    ensure!(
        out.stdout.trim() == expected,
        "{}{}",
        out.stdout,
        out.stderr
    );
    Ok(())
}

fn serves(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let server = side.starts(&words(&server(STACK)), &pid())?;
    kernel_has_none(11211)?;
    let client = client(STACK);
    let out = run(Command::new(&client[0]).args(&client[1..]))?.expect_code(0)?;
    went_well(&out)?;
    side.ended(server, Some(Signal::SIGTERM))?;
    side.ends(1_000)
}

fn connects(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let server = side.starts_at(End::Kernel, &words(&server(KERNEL)), &pid())?;
    went_well(&side.runs(&words(&client(KERNEL)))?)?;
    drop(server);
    side.ends(1_000)
}
