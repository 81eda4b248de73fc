//! What goes before each datagram through the pair of its socket: a header of fixed length, whichever way.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Of the header, before the datagram's own bytes; little-endian numbers:
///
/// ```text
/// kind 1 | flags 1 | hops 1 | class 1 | peer's port 2 | 0 2 | peer 16 | local 16 | interface or errno 4 | count or answers 4
/// ```
pub const HEADER: usize = 48;
/// Of a datagram, with its header.
pub const DATAGRAM_MAX: usize = HEADER + 65_535;

const DATAGRAM: u8 = 1;
const ERROR: u8 = 2;

const PEER: u8 = 1;
const LOCAL: u8 = 2;
const HOPS: u8 = 4;
const CLASS: u8 = 8;
const PEER_V4: u8 = 16;
const LOCAL_V4: u8 = 32;

/// To a program: whose a datagram is, and how it came. From one: where it goes, and what of it is not as the socket's options say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    pub peer: Option<SocketAddr>,
    /// Where it was sent to; where it is to come from.
    pub local: Option<IpAddr>,
    pub hop_limit: Option<u8>,
    pub traffic_class: Option<u8>,
    /// The number of the device that it came by.
    pub interface: u32,
    /// Of IPv4, by the kernel's stack: where an answer comes from (ipi_spec_dst in ip(7)), which of a group's is another one.
    pub answers: Option<Ipv4Addr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Datagram(Head),
    /// The socket's error, which wakes up who waits: the `count`th (`errors` of [its row](super::table::Datagrams)).
    Error {
        errno: u16,
        count: u16,
    },
}

impl Message {
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        match self {
            Message::Error { errno, count } => {
                bytes[0] = ERROR;
                bytes[40..44].copy_from_slice(&u32::from(errno).to_le_bytes());
                bytes[44..48].copy_from_slice(&u32::from(count).to_le_bytes());
            }
            Message::Datagram(head) => {
                bytes[0] = DATAGRAM;
                if let Some(peer) = head.peer {
                    let v4 = put(&mut bytes[8..24], peer.ip());
                    bytes[1] |= PEER | if v4 { PEER_V4 } else { 0 };
                    bytes[4..6].copy_from_slice(&peer.port().to_le_bytes());
                }
                if let Some(local) = head.local {
                    let v4 = put(&mut bytes[24..40], local);
                    bytes[1] |= LOCAL | if v4 { LOCAL_V4 } else { 0 };
                }
                if let Some(hops) = head.hop_limit {
                    bytes[1] |= HOPS;
                    bytes[2] = hops;
                }
                if let Some(class) = head.traffic_class {
                    bytes[1] |= CLASS;
                    bytes[3] = class;
                }
                bytes[40..44].copy_from_slice(&head.interface.to_le_bytes());
                if let Some(answers) = head.answers {
                    bytes[44..48].copy_from_slice(&answers.octets());
                }
            }
        }
        bytes
    }

    /// `None`: it is none. Programs may write anything.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; HEADER]) -> Option<Message> {
        let word = |at: usize| {
            let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u32::from_le_bytes(four)
        };
        let flags = bytes[1];
        let has = |flag: u8| flags & flag != 0;
        match bytes[0] {
            ERROR => Some(Message::Error {
                errno: u16::try_from(word(40)).ok()?,
                count: u16::try_from(word(44)).ok()?,
            }),
            DATAGRAM if flags < 64 => {
                let port = u16::from_le_bytes([bytes[4], bytes[5]]);
                let ip = |at: usize, v4| address(&bytes[at..at + 16], v4);
                let peer = SocketAddr::new(ip(8, has(PEER_V4))?, port);
                Some(Message::Datagram(Head {
                    peer: has(PEER).then_some(peer),
                    local: has(LOCAL).then_some(ip(24, has(LOCAL_V4))?),
                    hop_limit: has(HOPS).then_some(bytes[2]),
                    traffic_class: has(CLASS).then_some(bytes[3]),
                    interface: word(40),
                    answers: bytes
                        .last_chunk()
                        .map(|four: &[u8; 4]| Ipv4Addr::from(*four))
                        .filter(|ip| !ip.is_unspecified()),
                }))
            }
            _ => None,
        }
    }
}

/// True: of IPv4.
fn put(into: &mut [u8], address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => into[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => into.copy_from_slice(&v6.octets()),
    }
    address.is_ipv4()
}

fn address(bytes: &[u8], v4: bool) -> Option<IpAddr> {
    Some(match v4 {
        true => Ipv4Addr::from(*bytes.first_chunk::<4>()?).into(),
        false => Ipv6Addr::from(*bytes.first_chunk::<16>()?).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_there_and_back() {
        let full = Head {
            peer: Some("10.0.0.1:53".parse().unwrap()),
            local: Some("fd00::2".parse().unwrap()),
            hop_limit: Some(0),
            traffic_class: Some(255),
            interface: 7,
            answers: Some(Ipv4Addr::new(10, 0, 0, 9)),
        };
        let error = Message::Error {
            errno: 111,
            count: u16::MAX,
        };
        for message in [
            Message::Datagram(full),
            Message::Datagram(Head::default()),
            error,
        ] {
            assert_eq!(Message::from_bytes(&message.to_bytes()), Some(message));
        }
        assert_eq!(Message::from_bytes(&[0; HEADER]), None);
        assert_eq!(Message::from_bytes(&[255; HEADER]), None);
    }
}
