//! Neighbor Solicitations and Advertisements (RFC 4861, 4.3, 4.4, 4.6.1).
use super::be32;
use super::ethernet::Mac;
use super::icmp::{self, v6};
use std::net::Ipv6Addr;

/// With one link-layer address option; without it they have 24.
pub const BYTES: usize = 32;
const FIXED_BYTES: usize = 24;

const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;

const ROUTER: u32 = 1 << 31;
const SOLICITED: u32 = 1 << 30;
const OVERRIDE: u32 = 1 << 29;

/// A message of either kind. `mac` is the source's (solicitation) or the target's (advertisement).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Solicitation {
        target: Ipv6Addr,
        mac: Option<Mac>,
    },
    Advertisement {
        target: Ipv6Addr,
        mac: Option<Mac>,
        router: bool,
        solicited: bool,
        overrides: bool,
    },
}

impl Message {
    /// Of an ICMPv6 message of one of the two types. `None`: not valid by RFC 4861, 7.1.1 and 7.1.2, as far as the bytes
    /// of the message tell.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Message> {
        let (fixed, options) = bytes.split_first_chunk::<FIXED_BYTES>()?;
        let mut target = [0; 16];
        target.copy_from_slice(&fixed[8..]);
        let target = Ipv6Addr::from(target);
        if fixed[1] != 0 || target.is_multicast() {
            return None;
        }
        let flags = be32(fixed, 4);
        match fixed[0] {
            v6::NEIGHBOR_SOLICITATION => Some(Message::Solicitation {
                target,
                mac: address_option(options, SOURCE_ADDRESS)?,
            }),
            v6::NEIGHBOR_ADVERTISEMENT => Some(Message::Advertisement {
                target,
                mac: address_option(options, TARGET_ADDRESS)?,
                router: flags & ROUTER != 0,
                solicited: flags & SOLICITED != 0,
                overrides: flags & OVERRIDE != 0,
            }),
            _ => None,
        }
    }

    /// Returns the length; the checksum field is 0.
    pub fn emit(&self, into: &mut [u8; BYTES]) -> usize {
        let set = |flag: bool, bit: u32| if flag { bit } else { 0 };
        let (kind, flags, target, option, mac) = match *self {
            Message::Solicitation { target, mac } => {
                (v6::NEIGHBOR_SOLICITATION, 0, target, SOURCE_ADDRESS, mac)
            }
            Message::Advertisement {
                target,
                mac,
                router,
                solicited,
                overrides,
            } => {
                let flags =
                    set(router, ROUTER) | set(solicited, SOLICITED) | set(overrides, OVERRIDE);
                let kind = v6::NEIGHBOR_ADVERTISEMENT;
                (kind, flags, target, TARGET_ADDRESS, mac)
            }
        };
        if let Some(header) = into.first_chunk_mut() {
            icmp::emit(header, kind, 0, flags);
        }
        into[8..FIXED_BYTES].copy_from_slice(&target.octets());
        let Some(mac) = mac else {
            return FIXED_BYTES;
        };
        [into[24], into[25]] = [option, 1];
        into[26..].copy_from_slice(&mac.0);
        BYTES
    }
}

/// The first link-layer address option of the kind. `None`: an option's length is 0 or too large.
fn address_option(mut options: &[u8], kind: u8) -> Option<Option<Mac>> {
    let mut found = None;
    while let [this, units, ..] = options {
        let len = usize::from(*units) * 8;
        if len == 0 {
            return None;
        }
        let (option, rest) = options.split_at_checked(len)?;
        if let (true, &[_, _, a, b, c, d, e, f]) = (*this == kind, option) {
            found = found.or(Some(Mac([a, b, c, d, e, f])));
        }
        options = rest;
    }
    options.is_empty().then_some(found)
}
