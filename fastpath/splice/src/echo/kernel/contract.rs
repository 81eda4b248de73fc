//! What the programs are told and tell: `bpf/echo.h`.
use serde::Serialize;
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

/// `enum echo_counter`; in its order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KernelCounts {
    /// Connections that the kernel echoes.
    pub enrolled: u64,
    /// No room for their records: user space echoes.
    pub no_room: u64,
    /// The kernel did not take the socket into its map: user space echoes.
    pub not_enrolled: u64,
    /// Sockets of this machine's clients.
    pub clients: u64,
    pub clients_not_enrolled: u64,
    pub egress_connections: u64,
    pub ingress_connections: u64,
    pub egress_bytes: u64,
    pub ingress_bytes: u64,
    /// Left to user space.
    pub passed_bytes: u64,
    /// Connections that went to user space because their client does not read.
    pub client_is_slow: u64,
    /// Connections that went to user space because the other end was not found.
    pub redirect_failed: u64,
    /// Connections reset because too much was unacknowledged.
    pub over_limit: u64,
    /// Runs without a record.
    pub no_record: u64,
    /// Notices to user space that had to be repeated.
    pub events_late: u64,
    pub verdicts: u64,
    /// Packets that began with bytes that had come before: a part that was sent again.
    pub overlaps: u64,
    /// Bytes of connections that are to be reset, which came until they were.
    pub dropped_bytes: u64,
}

impl KernelCounts {
    pub(super) const WORDS: usize = 18;

    pub(super) fn from_words(words: &[u64; Self::WORDS]) -> KernelCounts {
        let [
            enrolled,
            no_room,
            not_enrolled,
            clients,
            clients_not_enrolled,
            egress_connections,
            ingress_connections,
            egress_bytes,
            ingress_bytes,
            passed_bytes,
            client_is_slow,
            redirect_failed,
            over_limit,
            no_record,
            events_late,
            verdicts,
            overlaps,
            dropped_bytes,
        ] = *words;
        KernelCounts {
            enrolled,
            no_room,
            not_enrolled,
            clients,
            clients_not_enrolled,
            egress_connections,
            ingress_connections,
            egress_bytes,
            ingress_bytes,
            passed_bytes,
            client_is_slow,
            redirect_failed,
            over_limit,
            no_record,
            events_late,
            verdicts,
            overlaps,
            dropped_bytes,
        }
    }
}
