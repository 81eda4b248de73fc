//! A TAP device that stays when its back end goes, and the kernel's end of it.
use super::network::{Place, ip, namespace};
use super::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_netio::{Outgoing, PacketIo, PacketOptions, PacketPort};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub(super) const TAP: &str = "near";

/// A frame that nobody else would send: 0x88b5 is for experiments (IEEE 802).
pub(super) fn frame(number: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame.resize(100, number);
    frame
}

/// The device, which stays when its back end goes, and its other end.
pub(super) struct Kernel {
    place: Place,
    far: PacketPort,
}

impl Kernel {
    pub(super) fn new() -> Result<Kernel> {
        namespace()?;
        ip(&format!("tuntap add {TAP} mode tap"))?;
        ip(&format!("link set {TAP} up"))?;
        let place = Place::new()?;
        let far = PacketPort::open(TAP, PacketOptions::default())?;
        Ok(Kernel { place, far })
    }

    pub(super) fn serve(&self) -> Result<Serving> {
        Serving::start(&self.place, &["--tap", TAP])
    }

    pub(super) fn send(&mut self, number: u8) -> Result<()> {
        self.send_bytes(&frame(number))
    }

    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = self.far.send(1, &mut |slot| {
            slot[..bytes.len()].copy_from_slice(bytes);
            let len = bytes.len();
            Outgoing {
                len,
                ..Outgoing::default()
            }
        })?;
        ensure!(sent == 1 && self.far.flush()? == 0, "the far end is full");
        Ok(())
    }

    /// Until these frames have come, in this order.
    pub(super) fn come(&mut self, numbers: &[u8]) -> Result<()> {
        numbers.iter().try_for_each(|n| self.come_bytes(&frame(*n)))
    }

    pub(super) fn come_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let mut came = None;
        while came.is_none() {
            self.far
                .receive(1, &mut |frame| came = Some(frame.bytes.to_vec()))?;
            if came.is_none() {
                let fd = self.far.wait_fd().context("a socket")?;
                let readable = PollFd::new(fd, PollFlags::POLLIN);
                poll(&mut [readable], PollTimeout::NONE)?;
            }
        }
        ensure!(came.as_deref() == Some(bytes), "{bytes:?}: {came:?}");
        Ok(())
    }
}
