//! Why packets cannot be sent as asked, and what to do about it.
use super::flow::{Family, Protocol};
use hopscope_netio::{CaptureError, PortError, PortName};
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum PacketsError {
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(
        "{protocol} over {family} with a stamp needs frames of {smallest} bytes with FCS, not {size}: give --size {smallest} or more"
    )]
    TooShort {
        size: usize,
        protocol: Protocol,
        family: Family,
        smallest: usize,
    },
    #[error(
        "a frame of {size} bytes with FCS does not fit the port, which takes up to {largest}: give --size {largest} or less, or raise the MTU"
    )]
    TooLong { size: usize, largest: usize },
    #[error(
        "a rate of {rate} packets per second exceeds the clock resolution; the maximum is {largest}"
    )]
    Rate { rate: f64, largest: f64 },
    #[error("{what} must be between {least} and {most}, not {got}")]
    Range {
        what: &'static str,
        got: f64,
        least: f64,
        most: f64,
    },
    #[error("{path}:{line}: not a rule ({reason}); the format is `permit|deny PROTOCOL SOURCE/LEN PORTS DESTINATION/LEN PORTS`", path = .path.display())]
    Rule {
        path: PathBuf,
        line: usize,
        reason: &'static str,
    },
    #[error("{path}: {reason}", path = .path.display())]
    Rules { path: PathBuf, reason: String },
    #[error("{path}: {source}", path = .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("writing {path} failed: {reason}; its rows are not complete", path = .path.display())]
    Rows { path: PathBuf, reason: String },
    #[error("opening {name}")]
    Opening {
        name: String,
        #[source]
        source: PortError,
    },
    #[error("one port for both ways has one thread: leave out --threads 2")]
    OneThread,
    #[error(
        "no MAC address is known for {destination} on {device}: give --dst-mac, or `ping` it once so that the kernel learns it"
    )]
    NoMac { destination: IpAddr, device: String },
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A capture that cannot be sent as it is.
    #[error("{0}")]
    Captured(String),
    #[error("a thread of the generator ended without a result: {0}")]
    Thread(&'static str),
}

impl PacketsError {
    /// For `map_err`.
    pub fn opening(name: &PortName) -> impl Fn(PortError) -> PacketsError {
        move |source| PacketsError::Opening {
            name: name.to_string(),
            source,
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}
