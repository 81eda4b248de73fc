//! What a program and the instance say to each other. Two kinds of sockets carry it, unix(7) both:
//!
//! - the *door*, a stream from `stack run` to the instance's socket in the file system: [`Hello`], answered by [`Welcome`] with the file of
//!   the [table](super::table); after that each process sends a byte with one end of a pair, its *channel*. Whoever the program
//!   starts inherits the door; when the last of them is gone, so is the program.
//! - a channel, SOCK_SEQPACKET: a [`Request`] and its [`Response`] in turn, each one message of JSON.
//!
//! A socket of the program is a stream of unix(7), too: one end of a pair whose other end the instance has. Bytes of a connection go through it
//! as they are. A listener's carries [`Accepted`] messages, each with a descriptor. A socket of UDP is a SOCK_SEQPACKET of it, whose messages
//! are datagrams behind a [header](super::datagram). That the last descriptor of a socket is closed,
//! wherever it was passed on to, the kernel tells.
use crate::handed::Reach;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Of the door's first messages, and of a channel's.
pub const MESSAGE_MAX: usize = 32_768;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Of both ends, which must be the same one.
    pub version: String,
    /// The program, for `stack ss`.
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Welcome {
    Here { reach: Reach, device: String },
    Refused(String),
}

/// A row of the table, and which socket it is of that had that row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Name {
    pub row: u32,
    pub generation: u32,
}

/// setsockopt(2): level, name, value.
pub type OptionSet = (i32, i32, Vec<u8>);

/// A socket that there is already, or what a new one is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    There(Name),
    New {
        ipv6: bool,
        local: Option<SocketAddr>,
        options: Vec<OptionSet>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// socket(2) and bind(2) of a new one.
    Bind(Which),
    /// With a descriptor: the kernel's listener on the same port, whose connections are accepted here, too.
    Listen {
        which: Which,
        backlog: u32,
    },
    /// `filled`: bytes in the pair of a socket that is there, which keep it from being writable.
    Connect {
        which: Which,
        peer: SocketAddr,
        filled: u32,
    },
    /// shutdown(2) of one that connects: the attempt ends. ENOTCONN: it is over.
    Disconnect {
        name: Name,
    },
    /// shutdown(2) of a listener: it is bound and no more, as in the kernel.
    Unlisten {
        name: Name,
    },
    /// Of a socket that does not listen any more: whoever waits there for connections is to wake up.
    WakeUp {
        name: Name,
    },
    SetOption {
        name: Name,
        option: OptionSet,
    },
    Option {
        name: Name,
        level: i32,
        option: i32,
    },
    /// SIOCOUTQ and SIOCOUTQNSD.
    Queued {
        name: Name,
    },
    /// What was closed before is to be closed here, too: its port is free then.
    Settle,
    /// socket(2) of UDP, with the kernel's socket that the program had until now. Without `local` it is at every address, at the port
    /// that the kernel's has.
    Datagrams {
        ipv6: bool,
        local: Option<SocketAddr>,
        /// What comes to the kernel's is the socket's, too.
        everywhere: bool,
        options: Vec<OptionSet>,
        wants: u8,
    },
    /// bind(2) of one that is there, and has no port.
    DatagramsBind {
        name: Name,
        local: Option<SocketAddr>,
        everywhere: bool,
    },
    /// connect(2); without a peer its end. `by_kernel`: the program has connected the kernel's.
    DatagramsConnect {
        name: Name,
        peer: Option<SocketAddr>,
        by_kernel: bool,
    },
    DatagramsWant {
        name: Name,
        wants: u8,
    },
    /// The longest one to there that is not refused (EMSGSIZE): bytes of payload, a u32 in the machine's order.
    DatagramsLongest {
        name: Name,
        peer: IpAddr,
    },
    /// The kernel's socket of one, for a call: answered with a descriptor.
    DatagramsKernel {
        name: Name,
    },
    /// Which sockets have these inodes, and whose they are.
    Whose {
        inodes: Vec<u64>,
    },
    /// With a descriptor that another program has: the socket is this program's, too.
    Share,
}

impl Request {
    /// The socket that it is about, where there is one already.
    #[must_use]
    pub fn name(&self) -> Option<Name> {
        match self {
            Request::Bind(which)
            | Request::Listen { which, .. }
            | Request::Connect { which, .. } => match which {
                Which::There(name) => Some(*name),
                Which::New { .. } => None,
            },
            Request::Disconnect { name }
            | Request::Unlisten { name }
            | Request::WakeUp { name }
            | Request::SetOption { name, .. }
            | Request::Option { name, .. }
            | Request::Queued { name }
            | Request::DatagramsBind { name, .. }
            | Request::DatagramsConnect { name, .. }
            | Request::DatagramsWant { name, .. }
            | Request::DatagramsLongest { name, .. }
            | Request::DatagramsKernel { name } => Some(*name),
            Request::Settle
            | Request::Datagrams { .. }
            | Request::Whose { .. }
            | Request::Share => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    Done,
    /// With a descriptor where the socket is new.
    Socket(Name),
    Value(Vec<u8>),
    Queued {
        unacknowledged: u32,
        unsent: u32,
    },
    Whose(Vec<Whose>),
    /// errno
    Failed(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whose {
    Yours(Name),
    /// Other programs'.
    Others,
    /// No socket of the instance.
    Nobodys,
}

/// What a listener's socket carries, with a descriptor each but the last; little-endian numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    Ours(Name),
    /// The kernel's own.
    Kernel,
    /// Nothing: it does not listen any more.
    Unlistened,
}

impl Accepted {
    pub const BYTES: usize = 12;

    #[must_use]
    pub fn to_bytes(self) -> [u8; Accepted::BYTES] {
        let (kind, row, generation) = match self {
            Accepted::Ours(name) => (1_u32, name.row, name.generation),
            Accepted::Kernel => (2, 0, 0),
            Accepted::Unlistened => (3, 0, 0),
        };
        let mut bytes = [0; Accepted::BYTES];
        for (at, word) in bytes.chunks_exact_mut(4).zip([kind, row, generation]) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[must_use]
    pub fn from_bytes(bytes: [u8; Accepted::BYTES]) -> Option<Accepted> {
        let [kind, row, generation] = [0, 4, 8].map(|at| {
            let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u32::from_le_bytes(four)
        });
        match kind {
            1 => Some(Accepted::Ours(Name { row, generation })),
            2 => Some(Accepted::Kernel),
            3 => Some(Accepted::Unlistened),
            _ => None,
        }
    }
}

/// One message.
///
/// # Panics
/// Never: these types have no keys but strings.
pub fn to_bytes(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// # Errors
/// It is none.
pub fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_there_and_back() {
        let name = Name {
            row: 7,
            generation: 9,
        };
        for message in [Accepted::Ours(name), Accepted::Kernel, Accepted::Unlistened] {
            assert_eq!(Accepted::from_bytes(message.to_bytes()), Some(message));
        }
        assert_eq!(Accepted::from_bytes([0; Accepted::BYTES]), None);
        let request = Request::Connect {
            which: Which::New {
                ipv6: false,
                local: None,
                options: vec![(6, 1, vec![1, 0, 0, 0])],
            },
            peer: "10.0.0.1:80".parse().unwrap(),
            filled: 0,
        };
        assert_eq!(from_bytes::<Request>(&to_bytes(&request)), Ok(request));
        assert!(from_bytes::<Request>(b"{}").is_err());
    }
}
