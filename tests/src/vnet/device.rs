//! A TAP device that gets another name, or goes, while it is served: what went through it is said all the same.
use super::front_end::{FrontEnd, PROTOCOL_FEATURES, VERSION_1};
use super::kernel::{Kernel, TAP, frame};
use super::network::ip;
use super::serving::Serving;
use anyhow::{Result, ensure};
use hopscope_tests::Suite;

const FEATURES: u64 = VERSION_1 | PROTOCOL_FEATURES;
const SENT: u8 = 5;

pub(super) fn register(suite: &mut Suite) {
    use hopscope_tests::Requirement::Netns;
    let here = &[Netns];
    suite.case("vnet::serve_goes_on_under_another_name", here, renamed);
    suite.case("vnet::serve_counts_when_its_device_goes", here, deleted);
}

fn send(kernel: &mut Kernel, front_end: &mut FrontEnd) -> Result<()> {
    for number in 0..SENT {
        front_end.send(&frame(number))?;
        kernel.come(&[number])?;
    }
    Ok(())
}

/// Packets have gone through it.
fn served() -> Result<(Kernel, Serving, FrontEnd)> {
    let mut kernel = Kernel::new()?;
    let serving = kernel.serve()?;
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.start(FEATURES)?;
    send(&mut kernel, &mut front_end)?;
    Ok((kernel, serving, front_end))
}

fn renamed() -> Result<()> {
    let (mut kernel, serving, mut front_end) = served()?;
    ip(&format!("link set {TAP} name elsewhere"))?;
    send(&mut kernel, &mut front_end)?;
    front_end.leave()?;
    let port = &serving.stop()?.summary["pairs"][0]["port"];
    ensure!(
        port["sent"] == 2 * SENT && port["device_gone"] == false,
        "{port}"
    );
    Ok(())
}

fn deleted() -> Result<()> {
    let (_kernel, serving, mut front_end) = served()?;
    ip(&format!("link del {TAP}"))?;
    // Whose device is gone finds out when it sends, at the latest.
    front_end.send(&frame(SENT))?;
    let (code, summary) = serving.ended()?;
    ensure!(code == Some(2), "{code:?}");
    let pair = &summary["pairs"][0];
    let port = &pair["port"];
    ensure!(
        port["sent"] == SENT && port["device_gone"] == true,
        "{summary}"
    );
    ensure!(pair["tx"]["packets"] == SENT, "{summary}");
    Ok(())
}
