//! Ports by name, as every command line takes them.
use crate::{Direction, MemoryOptions, PacketIo, PacketOptions, PacketPort, PortError};
use std::fmt;
use std::str::FromStr;

/// A port as it is named by a user; `Display` gives the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortName {
    /// `packet:DEVICE`, or DEVICE alone: [`PacketPort`].
    Packet { device: String },
    /// `mem:`: [`crate::memory_loop`].
    Memory,
}

/// What a command asks of a port beyond its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    pub direction: Direction,
    /// Frames up to 64 KiB: [`PacketOptions::gso`].
    pub gso: bool,
}

impl PortName {
    /// Opens the port in the network namespace of the calling thread.
    ///
    /// # Errors
    /// As the port says: no such device, not permitted, in use.
    pub fn open(&self, options: OpenOptions) -> Result<Box<dyn PacketIo>, PortError> {
        match self {
            PortName::Packet { device } => {
                let options = PacketOptions {
                    direction: options.direction,
                    gso: options.gso,
                    ..PacketOptions::default()
                };
                Ok(Box::new(PacketPort::open(device, options)?))
            }
            PortName::Memory => Ok(Box::new(crate::memory_loop(MemoryOptions::default()))),
        }
    }
}

/// A name that is none, and what names there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} names no port: packet:DEVICE (or DEVICE alone) or mem:")]
pub struct NotAPort {
    pub name: String,
}

impl FromStr for PortName {
    type Err = NotAPort;

    fn from_str(name: &str) -> Result<PortName, NotAPort> {
        let none = || NotAPort { name: name.into() };
        match name.split_once(':') {
            None if name.is_empty() => Err(none()),
            None => Ok(PortName::Packet {
                device: name.into(),
            }),
            Some(("packet", device)) if !device.is_empty() => Ok(PortName::Packet {
                device: device.into(),
            }),
            Some(("mem", "")) => Ok(PortName::Memory),
            Some(_) => Err(none()),
        }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortName::Packet { device } => write!(f, "packet:{device}"),
            PortName::Memory => f.write_str("mem:"),
        }
    }
}
