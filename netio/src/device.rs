//! What whoever speaks IP over a port has to know of the device behind it.
use crate::sys::Interface;
use crate::{PortError, PortName};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The device's own Ethernet address. Of a TAP device, it is the kernel's.
    pub mac: [u8; 6],
    /// Longest IP packet, in bytes.
    pub mtu: usize,
}

impl DeviceInfo {
    /// Of a device in the calling thread's network namespace.
    ///
    /// # Errors
    /// No such device.
    pub fn of(device: &str) -> Result<DeviceInfo, PortError> {
        let failed = |what: &'static str| move |e| PortError::device(device, what, e);
        let interface = Interface::named(device).map_err(failed("looking it up"))?;
        Ok(DeviceInfo {
            mac: interface.mac().map_err(failed("reading its address"))?,
            mtu: interface.mtu().map_err(failed("reading its MTU"))?,
        })
    }
}

impl PortName {
    /// The network device behind the port, if one is: of a TAP port once it is open.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        match self {
            PortName::Packet { device } | PortName::Xdp { device, .. } => Some(device),
            PortName::Tap { name } => Some(name),
            PortName::Capture { .. } | PortName::Memory => None,
        }
    }
}
