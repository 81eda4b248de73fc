//! The MTU of a device that is in use: what the engine was told, and what the device has now.
use hopscope_netio::{PacketIo, PortError};

#[derive(Debug, Clone, Copy)]
pub struct LinkMtu {
    known: u16,
    /// At most; `--mtu`.
    most: Option<u16>,
}

impl LinkMtu {
    #[must_use]
    pub fn new(known: u16, most: Option<u16>) -> LinkMtu {
        LinkMtu { known, most }
    }

    #[must_use]
    pub fn get(&self) -> u16 {
        self.known
    }

    /// Asks the device; the MTU that the engine is to be told, where it is another one.
    ///
    /// # Errors
    /// As [`PacketIo::mtu`].
    pub fn read(&mut self, port: &mut dyn PacketIo) -> Result<Option<u16>, PortError> {
        let Some(device) = port.mtu()? else {
            return Ok(None);
        };
        let device = u16::try_from(device).unwrap_or(u16::MAX);
        let mtu = self.most.map_or(device, |most| most.min(device));
        Ok((std::mem::replace(&mut self.known, mtu) != mtu).then_some(mtu))
    }
}
