//! Ports by name, as every command line takes them.
use crate::capture::CapturePort;
use crate::{
    Direction, MemoryOptions, PacketIo, PacketOptions, PacketPort, PortError, TapOptions, TapPort,
    XdpMode, XdpOptions, XdpPort,
};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A port as it is named by a user; `Display` gives the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortName {
    /// `packet:DEVICE`, or DEVICE alone: [`PacketPort`].
    Packet { device: String },
    /// `xdp:DEVICE[:QUEUE]`, or `xdp-native:` for a program in the driver: [`XdpPort`].
    Xdp {
        device: String,
        queue: u32,
        mode: XdpMode,
    },
    /// `tap:NAME`, a device that is made: [`TapPort`].
    Tap { name: String },
    /// `pcap:FILE`: [`CapturePort`].
    Capture { path: PathBuf },
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
                    // Large frames must arrive on every device, also where the kernel segments.
                    qdisc_bypass: !options.gso,
                    ..PacketOptions::default()
                };
                Ok(Box::new(PacketPort::open(device, options)?))
            }
            PortName::Xdp {
                device,
                queue,
                mode,
            } => {
                let options = XdpOptions {
                    direction: options.direction,
                    mode: *mode,
                    ..XdpOptions::default()
                };
                Ok(Box::new(XdpPort::open(device, *queue, options)?))
            }
            PortName::Tap { name } => {
                let options = TapOptions {
                    queues: 1,
                    gso: options.gso,
                };
                let mut ports = TapPort::open(name, options)?;
                Ok(Box::new(ports.remove(0)))
            }
            PortName::Capture { path } => Ok(Box::new(CapturePort::open(path, options.direction)?)),
            PortName::Memory => Ok(Box::new(crate::memory_loop(MemoryOptions::default()))),
        }
    }
}

/// A name that is none, and what names there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} names no port: packet:DEVICE (or DEVICE alone), xdp:DEVICE:QUEUE, xdp-native:DEVICE:QUEUE, tap:NAME, pcap:FILE or mem:"
)]
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
            Some((kind @ ("xdp" | "xdp-native"), rest)) => {
                let (device, queue) = rest.split_once(':').unwrap_or((rest, "0"));
                let queue = queue.parse().map_err(|_| none())?;
                if device.is_empty() {
                    return Err(none());
                }
                Ok(PortName::Xdp {
                    device: device.into(),
                    queue,
                    mode: match kind {
                        "xdp" => XdpMode::Generic,
                        _ => XdpMode::Native,
                    },
                })
            }
            Some(("tap", name)) if !name.is_empty() => Ok(PortName::Tap { name: name.into() }),
            Some(("pcap", path)) if !path.is_empty() => Ok(PortName::Capture { path: path.into() }),
            Some(("mem", "")) => Ok(PortName::Memory),
            Some(_) => Err(none()),
        }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortName::Packet { device } => write!(f, "packet:{device}"),
            PortName::Xdp {
                device,
                queue,
                mode: XdpMode::Generic,
            } => write!(f, "xdp:{device}:{queue}"),
            PortName::Xdp { device, queue, .. } => write!(f, "xdp-native:{device}:{queue}"),
            PortName::Tap { name } => write!(f, "tap:{name}"),
            PortName::Capture { path } => write!(f, "pcap:{}", path.display()),
            PortName::Memory => f.write_str("mem:"),
        }
    }
}
