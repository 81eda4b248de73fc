//! nc, socat and dd as clients: what goes through the stack is what was sent, to the byte.
use super::cable::{STACK, Way, files, namespace};
use super::serving::Serving;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netcat, Netns, Socat};
    for way in [Way::Packet, Way::PacketWhole, Way::Tap] {
        let name = format!("stack::bytes_of_nc_and_socat_{}", way.name());
        suite.case(name, &[Netns, Ethtool, Netcat, Socat], move || bytes(way));
    }
}

fn shell(script: &str) -> Result<String> {
    let out = run(Command::new("sh")
        .args(["-ec", script])
        .current_dir(files()))?;
    ensure!(
        out.code == Some(0),
        "{script}: {} {}",
        out.stdout,
        out.stderr
    );
    Ok(out.stdout)
}

fn bytes(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    let size = counts().pick(20_000_000u64, 500_000_000);
    shell(&format!("head -c {size} /dev/urandom > sent"))?;
    let echo = Serving::start(way, &["--app=echo"])?;
    // Half closes: what is on the way back arrives.
    for client in [
        format!("nc -N {STACK} 7 < sent > back"),
        format!("socat -t20 - TCP4:{STACK}:7 < sent > back"),
        "socat -b 65536 -t20 - TCP6:[fd00::2]:7 < sent > back".to_string(),
    ] {
        shell(&format!("{client} && cmp sent back"))?;
    }
    let summary = echo.stop()?;
    ensure!(summary["app"]["bytes_sent"] == 3 * size, "{summary}");
    ensure!(summary["app"]["ended"] == 3, "{summary}");
    let discard = Serving::start(way, &["--app=discard"])?;
    shell(&format!("dd if=sent bs=7777 status=none | nc -N {STACK} 9"))?;
    let summary = discard.stop()?;
    ensure!(summary["app"]["bytes_received"] == size, "{summary}");
    // The same bytes to everybody who asks.
    let chargen = Serving::start(way, &["--app=chargen"])?;
    let sums = shell(&format!(
        "for n in 1 2; do nc {STACK} 19 < /dev/null | head -c {size} | sha256sum; done"
    ))?;
    let lines: Vec<&str> = sums.lines().collect();
    ensure!(lines.len() == 2 && lines[0] == lines[1], "{sums}");
    chargen.stop()?;
    Ok(())
}
