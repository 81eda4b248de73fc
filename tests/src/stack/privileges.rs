//! A stack that has opened what it needs keeps no capability, and works on: with each kind of port.
use super::cable::{STACK, Way, namespace};
use super::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, command, hopscope_bin};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netns};
    for way in [Way::Packet, Way::Xdp, Way::TapQueues] {
        let name = format!("stack::serve_gives_up_its_privileges_{}", way.name());
        suite.case(name, &[Netns, Ethtool], move || run(way));
    }
}

fn run(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    let serving = Serving::start(way, &["--app=echo", "--port=7"])?;
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        let kept = serving.status(set)?;
        ensure!(kept == "0000000000000000", "{set}: {kept}");
    }
    ensure!(serving.status("NoNewPrivs")? == "1", "new privileges");
    let mut stream = TcpStream::connect((STACK, 7))?;
    stream.write_all(b"still there")?;
    let mut back = [0; 11];
    stream.read_exact(&mut back)?;
    ensure!(&back == b"still there", "{back:?}");
    let socket = std::fs::metadata(serving.control())?;
    let mode = std::os::unix::fs::PermissionsExt::mode(&socket.permissions());
    ensure!(mode & 0o777 == 0o600, "{mode:o}");
    let mut ss = Command::new(hopscope_bin());
    ss.args(["stack", "ss", "--control", serving.control()]);
    let out = command::run(&mut ss)?.expect_code(0)?;
    out.stdout.find("ESTAB").context("no connection")?;
    drop(stream);
    serving.stop()?;
    Ok(())
}
