//! What can go wrong with a port, and what to do about it: one line each.
use crate::direction::Direction;
use std::io;

/// Why a port could not be opened or no longer works, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    #[error("no network device named {name}: `ip link` lists those of this network namespace")]
    NoDevice { name: String },
    #[error(
        "no network device can be named {name}: take 1 to 15 letters, digits or such, neither /, :, % nor spaces"
    )]
    BadName { name: String },
    #[error("{what} needs {capability}: run as root, or grant it with setcap")]
    NotPermitted {
        what: String,
        capability: &'static str,
    },
    #[error("{name} is down: `ip link set {name} up`")]
    Down { name: String },
    #[error("{name} was deleted while it was in use")]
    Gone { name: String },
    #[error("{what} is in use by another program: {next_step}")]
    Busy { what: String, next_step: String },
    #[error("a frame of {len} bytes does not fit {name}, which takes at most {max}: {next_step}")]
    TooLong {
        name: String,
        len: usize,
        max: usize,
        next_step: &'static str,
    },
    #[error(
        "{what} needs {bytes} bytes of locked memory, more than the limit: raise it with `ulimit -l`, or use a smaller ring"
    )]
    LockedMemory { what: String, bytes: usize },
    #[error("{name} was opened to {opened} only: it cannot {asked}")]
    Direction {
        name: String,
        opened: &'static str,
        asked: &'static str,
    },
    #[error("{name} is read or written, not both: use one file to replay and another to record")]
    OneWay { name: String },
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("{name} sends only complete frames: compute the checksum, or use packet: or tap:")]
    Offload { name: String },
    /// No frame will ever come again: the file is at its end, or the other port is gone.
    #[error("{name} has ended")]
    Ended { name: String },
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
}

impl PortError {
    /// Asked for the direction that a port was not opened for.
    pub(crate) fn direction(name: &str, opened: Direction) -> PortError {
        let (opened, asked) = match opened {
            Direction::Send => ("send", "receive"),
            _ => ("receive", "send"),
        };
        PortError::Direction {
            name: name.into(),
            opened,
            asked,
        }
    }

    /// A failed system call on a device, as the reason that a user can act on.
    pub(crate) fn device(name: &str, what: &str, source: io::Error) -> PortError {
        use nix::libc;
        match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => PortError::NoDevice { name: name.into() },
            // As tun_get() of the kernel has it of a queue without a device.
            Some(libc::EBADFD) => PortError::Gone { name: name.into() },
            Some(libc::ENETDOWN) => PortError::Down { name: name.into() },
            Some(libc::EPERM | libc::EACCES) => PortError::NotPermitted {
                what: format!("{what} of {name}"),
                capability: "CAP_NET_RAW and CAP_NET_ADMIN",
            },
            _ => PortError::System {
                what: format!("{name}: {what}"),
                source,
            },
        }
    }
}

/// Why a capture file is not read further, and where.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("{path}: {source}")]
    File { path: String, source: io::Error },
    #[error("{path} is neither pcap nor pcapng: its first bytes are unknown")]
    NotACapture { path: String },
    #[error(
        "{path} is cut off in the record at byte {offset}: the {frames} frames before are good"
    )]
    CutOff {
        path: String,
        offset: u64,
        frames: u64,
    },
    #[error("{path} is malformed at byte {offset}: {what} (after {frames} good frames)")]
    Malformed {
        path: String,
        offset: u64,
        what: String,
        frames: u64,
    },
    #[error(
        "{path} holds frames of link type {link_type} at byte {offset}: only Ethernet (1) is known"
    )]
    LinkType {
        path: String,
        offset: u64,
        link_type: i32,
    },
}
