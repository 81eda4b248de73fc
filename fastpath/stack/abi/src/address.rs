//! `struct sockaddr_in` and `sockaddr_in6` as bytes.
use crate::Result;
use nix::libc;
use std::net::{IpAddr, SocketAddr};

/// What the kernel asks for (inet_bind(), net/ipv4/af_inet.c; SIN6_LEN_RFC2133, which lacks the scope).
const INET_LEN: usize = 16;
const INET6_LEN: usize = 24;

/// `None`: AF_UNSPEC.
///
/// # Errors
/// EINVAL: too short; EAFNOSUPPORT: of another family.
pub fn from_bytes(bytes: &[u8]) -> Result<Option<SocketAddr>> {
    let family = family(bytes).ok_or(libc::EINVAL)?;
    if family == libc::AF_UNSPEC {
        return Ok(None);
    }
    let port = bytes.get(2..4).ok_or(libc::EINVAL)?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    match family {
        libc::AF_INET if bytes.len() < INET_LEN => Err(libc::EINVAL),
        libc::AF_INET6 if bytes.len() < INET6_LEN => Err(libc::EINVAL),
        libc::AF_INET => {
            let four: [u8; 4] = part(bytes, 4)?;
            Ok(Some(SocketAddr::new(IpAddr::from(four), port)))
        }
        libc::AF_INET6 => {
            let sixteen: [u8; 16] = part(bytes, 8)?;
            Ok(Some(SocketAddr::new(IpAddr::from(sixteen), port)))
        }
        _ => Err(libc::EAFNOSUPPORT),
    }
}

#[must_use]
pub fn family(bytes: &[u8]) -> Option<i32> {
    let two = bytes.get(..2)?;
    Some(i32::from(u16::from_ne_bytes([two[0], two[1]])))
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let part = bytes.get(at..at + N).ok_or(libc::EINVAL)?;
    part.try_into().map_err(|_| libc::EINVAL)
}

/// A whole one: 16 or 28 bytes.
#[must_use]
pub fn to_bytes(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(28);
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    bytes.extend((family as u16).to_ne_bytes());
    bytes.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(v4.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(v6) => {
            bytes.extend(v6.flowinfo().to_ne_bytes());
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["10.0.0.2:80", "[fd00::2]:443"] {
            let address: SocketAddr = text.parse().unwrap();
            let bytes = to_bytes(address);
            assert_eq!(from_bytes(&bytes), Ok(Some(address)));
            assert_eq!(from_bytes(&bytes[..7]), Err(libc::EINVAL));
            let least = if address.is_ipv4() { 16 } else { 24 };
            assert_eq!(from_bytes(&bytes[..least - 1]), Err(libc::EINVAL));
            assert!(from_bytes(&bytes[..least]).is_ok());
        }
        assert_eq!(from_bytes(&[0, 0]), Ok(None));
        assert_eq!(from_bytes(&[1, 0, 0, 0]), Err(libc::EAFNOSUPPORT));
    }
}
