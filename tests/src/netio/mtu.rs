//! The device's MTU as a port tells it, and frames beyond it.
use super::frames::open;
use super::offload::{large_frame, offloaded};
use super::veth::{self, ip};
use anyhow::{Context, Result, ensure};
use hopscope_netio::{Direction, Offload, Outgoing, PacketIo, PacketOptions, PacketPort};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const WATCHDOG_MS: u16 = 60_000;

/// What changes is notified, until it was asked for; a port without offload has no room for more than it was opened for.
pub(super) fn told(name: &'static str) -> Result<()> {
    veth::namespace()?;
    veth::pair("left", "right")?;
    let device = if name.starts_with("tap") {
        "tap"
    } else {
        "right"
    };
    let mut port = open(name, Direction::Both)?;
    ensure!(port.is_up()? && port.mtu()? == Some(1_500));
    for (mtu, expected) in [(1_000, 1_000), (9_000, 1_500), (1_400, 1_400)] {
        ip(&format!("link set {device} mtu {mtu}"))?;
        ensure!(notified(&*port, WATCHDOG_MS)?, "nothing is told of {mtu}");
        // And until then: what else changes, as a carrier that comes late, is another notification.
        while notified(&*port, 0)? {
            ensure!(port.is_up()?, "it is down");
        }
        let told = port.mtu()?;
        ensure!(told == Some(expected), "{told:?}, not {expected}");
        ensure!(!port.takes_less(), "no frame was sent");
    }
    Ok(())
}

fn notified(port: &dyn PacketIo, timeout_ms: u16) -> Result<bool> {
    let fd = port.link_fd().context("no descriptor")?;
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    Ok(poll(&mut fds, PollTimeout::from(timeout_ms))? == 1)
}

/// The kernel refuses a frame that is longer than the device takes, and no segments that it is to cut, whatever their size.
pub(super) fn refused() -> Result<()> {
    veth::namespace()?;
    veth::pair("left", "right")?;
    let options = PacketOptions {
        gso: true,
        qdisc_bypass: false,
        ..PacketOptions::default()
    };
    let mut port = PacketPort::open("right", options)?;
    let mut long = large_frame();
    long.truncate(1_514);
    send(&mut port, &long, Offload::default())?;
    ensure!(!port.takes_less() && port.counters()?.send_failed == 0);
    ip("link set right mtu 1000")?;
    send(&mut port, &long, Offload::default())?;
    ensure!(port.takes_less(), "a frame of {} bytes", long.len());
    ensure!(!port.takes_less(), "once");
    ensure!(port.counters()?.send_failed == 1);
    let offload = offloaded();
    ensure!(offload.gso_size > 1_000, "{offload:?}");
    send(&mut port, &large_frame(), offload)?;
    ensure!(!port.takes_less() && port.counters()?.send_failed == 1);
    ip("link set right mtu 9000")?;
    ensure!(port.mtu()? == Some(9_000), "{:?}", port.mtu()?);
    Ok(())
}

fn send(port: &mut PacketPort, frame: &[u8], offload: Offload) -> Result<()> {
    let mut fill = |slot: &mut [u8]| {
        slot[..frame.len()].copy_from_slice(frame);
        let len = frame.len();
        Outgoing { len, offload }
    };
    ensure!(port.send(1, &mut fill)? == 1 && port.flush()? == 0);
    Ok(())
}
