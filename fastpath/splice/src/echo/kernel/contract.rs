//! What the programs are told and tell: `bpf/echo.h`.
use crate::kernel_counts::kernel_counts;
use std::net::{IpAddr, SocketAddr};

/// Of `struct echo_config`.
pub(super) const CONFIG_BYTES: usize = 40;
/// Of `struct echo_question`.
pub(super) const QUESTION_BYTES: usize = 64;
pub(super) const QUESTION_COOKIE_AT: usize = 16;
pub(super) const QUESTION_SENT_AT: usize = 24;
/// `struct echo_connection`: bytes left to user space.
pub(super) const PASSED_AT: usize = 8;
/// `enum echo_answer`
pub(super) const PENDING: u32 = 1;

/// `enum echo_event_kind`, of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::echo) enum Notice {
    /// What comes from now on is user space's.
    User { cookie: u64 },
    /// Too much is unread; bytes were dropped.
    Over { cookie: u64 },
}

impl Notice {
    pub(super) fn read(bytes: &[u8]) -> Option<Notice> {
        let cookie = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
        match u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?) {
            1 => Some(Notice::User { cookie }),
            2 => Some(Notice::Over { cookie }),
            _ => None,
        }
    }
}

pub(super) struct Config {
    pub(super) netns_cookie: u64,
    pub(super) address: SocketAddr,
    pub(super) v6_only: bool,
    pub(super) enrol_clients: bool,
    pub(super) egress_limit: u32,
    pub(super) ingress_limit: u32,
}

/// An IPv4 address as ::ffff:a.b.c.d.
pub(super) fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

impl Config {
    pub(super) fn to_bytes(&self) -> [u8; CONFIG_BYTES] {
        let ip = self.address.ip();
        let families = match ip {
            IpAddr::V4(_) => 1,
            IpAddr::V6(v6) if v6.is_unspecified() && !self.v6_only => 3,
            // A socket bound to ::ffff:a.b.c.d has IPv4 connections.
            IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => 1,
            IpAddr::V6(_) => 2,
        };
        let mut bytes = [0; CONFIG_BYTES];
        bytes[0..8].copy_from_slice(&self.netns_cookie.to_ne_bytes());
        bytes[8..12].copy_from_slice(&u32::from(self.address.port()).to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.egress_limit.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.ingress_limit.to_ne_bytes());
        bytes[20] = families;
        bytes[21] = u8::from(ip.is_unspecified());
        bytes[22] = u8::from(self.enrol_clients);
        bytes[24..40].copy_from_slice(&mapped(ip));
        bytes
    }
}

kernel_counts! {
    /// `enum echo_counter`; in its order.
    pub struct KernelCounts {
        /// Connections that the kernel echoes.
        enrolled,
        /// No room for their records: user space echoes.
        no_room,
        /// The kernel did not take the socket into its map: user space echoes.
        not_enrolled,
        /// Sockets of this machine's clients.
        clients,
        clients_not_enrolled,
        egress_connections,
        ingress_connections,
        egress_bytes,
        ingress_bytes,
        /// Left to user space.
        passed_bytes,
        /// Connections that went to user space because their client does not read.
        client_is_slow,
        /// Connections that went to user space because the other end was not found.
        redirect_failed,
        /// Connections reset because too much was unacknowledged.
        over_limit,
        /// Runs without a record.
        no_record,
        /// Notices to user space that had to be repeated.
        events_late,
        verdicts,
        /// Packets that began with bytes that had come before: a part that was sent again.
        overlaps,
        /// Bytes of connections that are to be reset, which came until they were.
        dropped_bytes,
    }
}
