//! Whatever ends a process, its XDP program does not stay on the device.
use super::frames::open;
use super::veth;
use anyhow::{Context, Result, bail, ensure};
use hopscope_netio::Direction;
use hopscope_tests::command::run as command;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Set in the process that is to be killed: it is this program once more.
const HOLD: &str = "HOPSCOPE_TEST_HOLD";
const LOOKS: u32 = 1_000;

pub(super) fn run() -> Result<()> {
    if let Ok(port) = std::env::var(HOLD) {
        let _port = open(&port, Direction::Both)?;
        println!("open");
        loop {
            std::thread::park();
        }
    }
    veth::namespace()?;
    veth::pair("left", "right")?;
    for kind in ["xdp", "xdp-native"] {
        let mut holder = Command::new(std::env::current_exe()?)
            .env(HOLD, format!("{kind}:right"))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take().context("a pipe")?).read_line(&mut line)?;
        let attached = shows_xdp();
        holder.kill()?;
        holder.wait()?;
        ensure!(line == "open\n", "the holder said {line:?}");
        ensure!(attached?, "no program seen on the device");
        gone()?;
        // And the queue can be used again.
        open(&format!("{kind}:right"), Direction::Both)?;
        gone()?;
    }
    Ok(())
}

fn gone() -> Result<()> {
    for _ in 0..LOOKS {
        if !shows_xdp()? {
            return Ok(());
        }
    }
    bail!("the program is still there")
}

fn shows_xdp() -> Result<bool> {
    let out = command(Command::new("ip").args(["link", "show", "right"]))?.expect_code(0)?;
    Ok(out.stdout.contains("prog/xdp"))
}
