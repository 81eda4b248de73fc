//! Control messages of datagrams: what recvmsg tells of one, and what sendmsg asks for.
use crate::told::Told;
use hopscope_stack_engine::{Inbound, Outbound};
use nix::libc;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A cmsghdr: length, level, type.
const HEADER: usize = 16;

/// Which of them the program has asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    packet: bool,
    hops: bool,
    class: bool,
    packet6: bool,
    hops6: bool,
    class6: bool,
}

impl Wants {
    /// False: it is another option.
    pub fn set(&mut self, level: i32, name: i32, value: &[u8]) -> bool {
        let on = value.iter().take(4).any(|byte| *byte != 0);
        let place = match (level, name) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => &mut self.packet,
            (libc::IPPROTO_IP, libc::IP_RECVTTL) => &mut self.hops,
            (libc::IPPROTO_IP, libc::IP_RECVTOS) => &mut self.class,
            (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) => &mut self.packet6,
            (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT) => &mut self.hops6,
            (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS) => &mut self.class6,
            _ => return false,
        };
        *place = on;
        true
    }
}

/// In the instance's table, as one byte.
impl Wants {
    pub fn to_bits(self) -> u8 {
        let all = [
            self.packet,
            self.hops,
            self.class,
            self.packet6,
            self.hops6,
            self.class6,
        ];
        (0..)
            .zip(all)
            .fold(0, |bits, (at, on)| bits | u8::from(on) << at)
    }

    pub fn of_bits(bits: u8) -> Wants {
        let on = |at: u8| bits >> at & 1 != 0;
        Wants {
            packet: on(0),
            hops: on(1),
            class: on(2),
            packet6: on(3),
            hops6: on(4),
            class6: on(5),
        }
    }
}

/// As ip_cmsg_recv and ip6_datagram_recv_ctl do, in their order. `interface`: the device's number, and the stack's addresses.
pub fn tell(
    inbound: &Inbound,
    wants: Wants,
    (interface, own): (u32, &[(IpAddr, u8)]),
    told: &mut Told,
) {
    let (hops, class) = (inbound.hop_limit, inbound.traffic_class);
    let number = |value: u8| i32::from(value).to_ne_bytes();
    if let IpAddr::V4(to) = inbound.to.to_canonical() {
        if wants.packet {
            // Where it was sent to a group: what an answer would come from.
            let is_own = to.is_loopback() || own.iter().any(|(ip, _)| *ip == IpAddr::V4(to));
            let first = own.iter().find_map(|(ip, _)| match ip {
                IpAddr::V4(v4) => Some(*v4),
                IpAddr::V6(_) => None,
            });
            let local = first.filter(|_| !is_own).unwrap_or(to);
            let info = [interface.to_ne_bytes(), local.octets(), to.octets()].concat();
            put(told, libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
        }
        if wants.hops {
            put(told, libc::IPPROTO_IP, libc::IP_TTL, &number(hops));
        }
        if wants.class {
            put(told, libc::IPPROTO_IP, libc::IP_TOS, &[class]);
        }
    }
    let IpAddr::V6(to) = inbound.to else {
        return;
    };
    if wants.packet6 {
        let info = [&to.octets()[..], &interface.to_ne_bytes()].concat();
        put(told, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
    }
    if to.to_ipv4_mapped().is_some() {
        return;
    }
    if wants.hops6 {
        put(told, libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &number(hops));
    }
    if wants.class6 {
        put(told, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &number(class));
    }
}

/// What has no room is cut, and that is told.
fn put(told: &mut Told, level: i32, kind: i32, value: &[u8]) {
    let room = told.control_room.saturating_sub(told.control.len());
    let len = (HEADER + value.len()).min(room);
    if len < HEADER + value.len() {
        told.flags |= libc::MSG_CTRUNC;
    }
    if len < HEADER {
        return;
    }
    told.control.extend((len as u64).to_ne_bytes());
    told.control.extend(level.to_ne_bytes());
    told.control.extend(kind.to_ne_bytes());
    told.control.extend(&value[..len - HEADER]);
    let aligned = told.control.len().next_multiple_of(8);
    told.control.resize(aligned.min(told.control_room), 0);
}

/// What sendmsg's control messages ask for, of a socket of IPv6 or not, to a peer of IPv4 or not: those of the other family are not
/// looked at, nor those of other levels (ip_cmsg_send, ip6_datagram_send_ctl).
///
/// # Errors
/// EINVAL: cut, of a kind that is not served, or out of its range.
pub fn parse(mut bytes: &[u8], ipv6: bool, to_v4: bool) -> Result<Outbound, i32> {
    let mut outbound = Outbound::default();
    while bytes.len() >= HEADER {
        let word = |at: usize| {
            i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let len = bytes
            .first_chunk()
            .map_or(0, |len| usize::from_ne_bytes(*len));
        if len < HEADER || len > bytes.len() {
            return Err(libc::EINVAL);
        }
        let value = &bytes[HEADER..len];
        match (word(8), word(12)) {
            (libc::IPPROTO_IP, kind) if to_v4 => ask_v4(&mut outbound, kind, value)?,
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if ipv6 => {
                let source = source_v6(value)?;
                if to_v4 && source.is_ipv6() {
                    return Err(libc::EINVAL);
                }
                outbound.source = some(source);
            }
            (libc::IPPROTO_IPV6, kind) if !to_v4 => ask_v6(&mut outbound, kind, value)?,
            // Those of AF_UNIX mean nothing here (__sock_cmsg_send).
            (libc::SOL_SOCKET, libc::SCM_RIGHTS | libc::SCM_CREDENTIALS) => {}
            (libc::SOL_SOCKET | libc::IPPROTO_UDP, _) => return Err(libc::EINVAL),
            _ => {}
        }
        let next = len.next_multiple_of(8).min(bytes.len());
        bytes = &bytes[next..];
    }
    Ok(outbound)
}

fn ask_v4(outbound: &mut Outbound, kind: i32, value: &[u8]) -> Result<(), i32> {
    match kind {
        libc::IP_PKTINFO if value.len() == 12 => {
            let source: [u8; 4] = part(value, 4)?;
            outbound.source = some(Ipv4Addr::from(source).into());
        }
        libc::IP_TTL => outbound.hop_limit = Some(number(value, 1)?.ok_or(libc::EINVAL)?),
        libc::IP_TOS => {
            outbound.traffic_class = Some(match value {
                [class] => *class,
                _ => number(value, 0)?.ok_or(libc::EINVAL)?,
            });
        }
        _ => return Err(libc::EINVAL),
    }
    Ok(())
}

fn ask_v6(outbound: &mut Outbound, kind: i32, value: &[u8]) -> Result<(), i32> {
    match kind {
        libc::IPV6_HOPLIMIT => outbound.hop_limit = number(value, 0)?,
        libc::IPV6_TCLASS => outbound.traffic_class = number(value, 0)?,
        _ => return Err(libc::EINVAL),
    }
    Ok(())
}

/// An int from `least` to 255; `None`: -1, the socket's own.
fn number(value: &[u8], least: i32) -> Result<Option<u8>, i32> {
    let bytes = <[u8; 4]>::try_from(value).map_err(|_| libc::EINVAL)?;
    match i32::from_ne_bytes(bytes) {
        -1 => Ok(None),
        number if number >= least => u8::try_from(number).map(Some).map_err(|_| libc::EINVAL),
        _ => Err(libc::EINVAL),
    }
}

fn source_v6(value: &[u8]) -> Result<IpAddr, i32> {
    let source: [u8; 16] = part(value, 0)?;
    part::<4>(value, 16)?;
    Ok(IpAddr::V6(Ipv6Addr::from(source)).to_canonical())
}

fn some(address: IpAddr) -> Option<IpAddr> {
    Some(address).filter(|address| !address.is_unspecified())
}

fn part<const N: usize>(value: &[u8], at: usize) -> Result<[u8; N], i32> {
    let part = value.get(at..at + N).ok_or(libc::EINVAL)?;
    part.try_into().map_err(|_| libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbound(to: &str) -> Inbound {
        Inbound {
            len: 1,
            peer: "10.0.0.1:1".parse().unwrap(),
            to: to.parse().unwrap(),
            hop_limit: 63,
            traffic_class: 3,
        }
    }

    fn told(room: usize, wants: Wants, to: &str) -> Told {
        let mut told = Told {
            control_room: room,
            ..Told::default()
        };
        let own = [("10.0.0.2".parse().unwrap(), 24)];
        tell(&inbound(to), wants, (7, &own), &mut told);
        told
    }

    #[test]
    fn what_was_told_can_be_asked_for() {
        let mut wants = Wants::default();
        assert!(wants.set(libc::IPPROTO_IP, libc::IP_PKTINFO, &1_i32.to_ne_bytes()));
        assert!(wants.set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &[1]));
        assert!(!wants.set(libc::IPPROTO_IP, libc::IP_TTL, &[1]));
        let v4 = told(100, wants, "10.0.0.2");
        assert_eq!((v4.control.len(), v4.flags), (32, 0));
        let source = parse(&v4.control, false, true).unwrap().source;
        assert_eq!(source, Some("10.0.0.2".parse().unwrap()));
        let v6 = told(100, wants, "fd00::2");
        assert_eq!((v6.control.len(), v6.flags), (40, 0));
        assert_eq!(
            parse(&v6.control, true, false).unwrap().source,
            Some("fd00::2".parse().unwrap())
        );
        // To a group: answers come from an address of ours.
        let group = told(100, wants, "10.0.0.255");
        assert_eq!(
            parse(&group.control, false, true).unwrap().source,
            Some("10.0.0.2".parse().unwrap())
        );
    }

    #[test]
    fn wants_are_a_byte() {
        let mut wants = Wants::default();
        assert_eq!(wants.to_bits(), 0);
        wants.set(libc::IPPROTO_IP, libc::IP_RECVTTL, &[1]);
        wants.set(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, &[1]);
        assert_eq!(wants.to_bits(), 0b10_0010);
        assert_eq!(Wants::of_bits(wants.to_bits()), wants);
    }

    #[test]
    fn what_has_no_room_is_cut_and_told() {
        let mut wants = Wants::default();
        wants.set(libc::IPPROTO_IP, libc::IP_PKTINFO, &[1]);
        for (room, len) in [(0, 0), (15, 0), (20, 20), (28, 28), (31, 31)] {
            let cut = told(room, wants, "10.0.0.2");
            assert_eq!(cut.control.len(), len, "{room}");
            assert_eq!(cut.flags & libc::MSG_CTRUNC != 0, room < 28, "{room}");
        }
    }

    #[test]
    fn what_is_not_served_is_refused() {
        assert_eq!(parse(&[], false, true), Ok(Outbound::default()));
        let header = |len: u64, level: i32, kind: i32| {
            [
                &len.to_ne_bytes()[..],
                &level.to_ne_bytes(),
                &kind.to_ne_bytes(),
                &[0; 8],
            ]
            .concat()
        };
        for bytes in [
            header(99, libc::IPPROTO_IP, libc::IP_TOS),
            header(8, libc::IPPROTO_IP, libc::IP_TOS),
            header(20, libc::IPPROTO_UDP, 103),
            header(20, libc::IPPROTO_IP, libc::IP_PKTINFO),
            header(20, libc::IPPROTO_IP, libc::IP_TTL),
        ] {
            assert_eq!(parse(&bytes, false, true), Err(libc::EINVAL), "{bytes:?}");
        }
    }
}
