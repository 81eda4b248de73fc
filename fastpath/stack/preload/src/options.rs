//! Socket options of a socket of the stack, by Linux' numbers.
use crate::control::Wants;
use crate::description::{Description, Kind};
use crate::kernel;
use crate::rows;
use crate::say::once;
use crate::stack::now;
use crate::state::State;
use crate::step::Step;
use hopscope_stack_abi::{options, tcp_info};
use hopscope_stack_engine::{Ns, SocketError, SocketKind};
use hopscope_stack_instance::programs::wire::Name;
use nix::libc;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;

/// include/uapi/linux/tcp.h and asm-generic/socket.h; libc lacks them.
const TCP_INQ: i32 = 36;
const TCP_CC_INFO: i32 = 26;
const SO_MEMINFO: i32 = 55;

static OPTION_SAID: AtomicBool = AtomicBool::new(false);
static ALONE_SAID: AtomicBool = AtomicBool::new(false);

impl State {
    /// Before the socket belongs to anybody the kernel's has them, and they are kept for the engine's.
    pub fn set_option(&mut self, index: u32, level: i32, name: i32, value: &[u8]) -> Step {
        let Some(description) = self.description_mut(index) else {
            return Step::Pass;
        };
        if description.is_datagram() {
            return self.set_datagram_option(index, level, name, value);
        }
        let time = match time(level, name, value).transpose() {
            Ok(time) => time,
            Err(error) => return Step::Fail(error),
        };
        let id = match &mut description.kind {
            Kind::Epoll(_) => return Step::Pass,
            Kind::Undecided(undecided) => {
                if let Some((receives, span)) = time {
                    match receives {
                        true => undecided.times.receive = span,
                        false => undecided.times.send = span,
                    }
                }
                undecided.options.push((level, name, value.to_vec()));
                return Step::Pass;
            }
            Kind::Socket(socket) => {
                if let Some((receives, span)) = time {
                    match receives {
                        true => socket.times.receive = span,
                        false => socket.times.send = span,
                    }
                    return Step::Done(0);
                }
                if (level, name) == (libc::IPPROTO_TCP, TCP_INQ) {
                    socket.inq = match value.first_chunk().copied().map(i32::from_ne_bytes) {
                        Some(0) => false,
                        Some(1) => true,
                        _ => return Step::Fail(libc::EINVAL),
                    };
                    return Step::Done(0);
                }
                if is_of_the_other_family(socket.ipv6, level) {
                    return Step::Pass;
                }
                socket.id
            }
        };
        let option = match options::parse(level, name, value) {
            Ok(option) => option,
            // Of the socket and of IP the kernel has options that change nothing here (SO_PRIORITY); of TCP it has none.
            Err(libc::ENOPROTOOPT) if level != libc::IPPROTO_TCP => return Step::Pass,
            Err(error) => return Step::Fail(error),
        };
        let set = self
            .own()
            .map(|stack| stack.engine.set_option(now(), id, option));
        match set {
            Ok(Ok(())) => Step::Done(0),
            // As one that is not known at all.
            Ok(Err(SocketError::NoOption)) if level != libc::IPPROTO_TCP => Step::Pass,
            Ok(Err(error)) => Step::Fail(error.errno()),
            Err(error) => Step::Fail(error),
        }
    }

    /// The value's bytes; `Err`: how it ends without.
    pub fn option(&mut self, index: u32, level: i32, name: i32) -> Result<Vec<u8>, Step> {
        let Some(Description {
            kind: Kind::Socket(socket),
            ..
        }) = self.description(index)
        else {
            return Err(Step::Pass);
        };
        let (id, datagram, inq) = (socket.id, socket.kind == SocketKind::Udp, socket.inq);
        let is_none_of_udp = datagram && level == libc::IPPROTO_TCP;
        if is_none_of_udp || is_of_the_other_family(socket.ipv6, level) {
            return Err(Step::Pass);
        }
        let number = |value: i32| Ok(value.to_ne_bytes().to_vec());
        let span = |span: Option<Ns>| {
            let us = span.map_or(0, |span| span.0 / 1_000);
            Ok([(us / 1_000_000) as i64, (us % 1_000_000) as i64]
                .map(i64::to_ne_bytes)
                .concat())
        };
        if level == libc::SOL_SOCKET {
            match name {
                libc::SO_TYPE => {
                    return number(match socket.kind {
                        SocketKind::Tcp => libc::SOCK_STREAM,
                        SocketKind::Udp => libc::SOCK_DGRAM,
                    });
                }
                libc::SO_DOMAIN => {
                    return number(if socket.ipv6 {
                        libc::AF_INET6
                    } else {
                        libc::AF_INET
                    });
                }
                libc::SO_PROTOCOL => {
                    return number(match socket.kind {
                        SocketKind::Tcp => libc::IPPROTO_TCP,
                        SocketKind::Udp => libc::IPPROTO_UDP,
                    });
                }
                libc::SO_ACCEPTCONN => return number(i32::from(self.listens(index))),
                libc::SO_RCVTIMEO => return span(socket.times.receive),
                libc::SO_SNDTIMEO => return span(socket.times.send),
                SO_MEMINFO => return Ok(vec![0; 36]),
                _ => {}
            }
        }
        let stack = self.own().map_err(Step::Fail)?;
        let failed = |error: SocketError| Step::Fail(error.errno());
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => {
                let error = stack.engine.take_error(id).map_err(failed)?;
                return number(error.map_or(0, SocketError::errno));
            }
            (libc::IPPROTO_TCP, libc::TCP_INFO) => {
                let info = stack.engine.tcp_info(now(), id).map_err(failed)?;
                return Ok(tcp_info::bytes(&info));
            }
            (libc::IPPROTO_IP, libc::IP_MTU) | (libc::IPPROTO_IPV6, libc::IPV6_MTU) => {
                stack.follow_mtu(now());
                let mtu = stack.engine.path_mtu(now(), id).map_err(failed)?;
                return number(mtu.into());
            }
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
                stack.follow_mtu(now());
            }
            // Neither CUBIC nor Reno has anything to tell.
            (libc::IPPROTO_TCP, TCP_CC_INFO) => return Ok(Vec::new()),
            (libc::IPPROTO_TCP, TCP_INQ) => return number(inq.into()),
            _ => {}
        }
        let like = match options::named(level, name) {
            Ok(like) => like,
            Err(libc::ENOPROTOOPT) if level != libc::IPPROTO_TCP => return Err(Step::Pass),
            // Of another protocol.
            Err(_) if datagram => return Err(Step::Pass),
            Err(error) => return Err(Step::Fail(error)),
        };
        match stack.engine.option(id, like) {
            Err(SocketError::NoOption) if datagram || level != libc::IPPROTO_TCP => Err(Step::Pass),
            found => found.map(options::value).map_err(failed),
        }
    }

    /// The kernel's socket has them, too, which may send and receive beside the engine's, and answers for those that the engine
    /// does not know.
    fn set_datagram_option(&mut self, index: u32, level: i32, name: i32, value: &[u8]) -> Step {
        let Some(description) = self.description_mut(index) else {
            return Step::Pass;
        };
        let alone = description.socket().is_some() && description.kernel_part().is_none();
        let on = value.iter().take(4).any(|byte| *byte != 0);
        if on && is_refused(level, name) || alone && is_of_groups(level, name) {
            refuse(level, name);
            return Step::Fail(libc::ENOPROTOOPT);
        }
        let span = match time(level, name, value).transpose() {
            Ok(span) => span,
            Err(error) => return Step::Fail(error),
        };
        let times = match &mut description.kind {
            Kind::Epoll(_) => return Step::Pass,
            Kind::Undecided(undecided) => {
                undecided.options.push((level, name, value.to_vec()));
                &mut undecided.times
            }
            Kind::Socket(socket) => {
                socket.wants.set(level, name, value);
                &mut socket.times
            }
        };
        match span {
            Some((true, span)) => times.receive = span,
            Some((false, span)) => times.send = span,
            None => {}
        }
        let Some((id, ipv6)) = description.socket().map(|socket| (socket.id, socket.ipv6)) else {
            return Step::Pass;
        };
        if is_of_the_other_family(ipv6, level) {
            return Step::Pass;
        }
        let Ok(option) = options::parse(level, name, value) else {
            return Step::Pass;
        };
        let set = self
            .own()
            .map(|stack| stack.engine.set_option(now(), id, option));
        match set {
            Ok(Ok(()) | Err(SocketError::NoOption)) => Step::Pass,
            Ok(Err(error)) => Step::Fail(error.errno()),
            Err(error) => Step::Fail(error),
        }
    }
}

impl State {
    /// As [`State::set_datagram_option`], of a socket that the instance has.
    pub fn set_datagram_option_there(
        &mut self,
        socket: Name,
        (level, name): (i32, i32),
        value: &[u8],
    ) -> Result<(), i32> {
        let of = rows::datagrams(socket).unwrap_or_default();
        let on = value.iter().take(4).any(|byte| *byte != 0);
        if on && is_refused(level, name) || !of.everywhere && is_of_groups(level, name) {
            refuse(level, name);
            return Err(libc::ENOPROTOOPT);
        }
        let kernel = self.kernels_datagrams(socket)?;
        kernel::set_option(kernel.as_raw_fd(), level, name, value)?;
        let mut wants = Wants::of_bits(of.wants);
        if wants.set(level, name, value) {
            return self.want_of_datagrams(socket, wants);
        }
        if options::parse(level, name, value).is_err() {
            return Ok(());
        }
        match self.set_option_there(socket, (level, name, value)) {
            Err(libc::ENOPROTOOPT) => Ok(()),
            set => set,
        }
    }
}

/// The kernel's socket says what it says of them.
fn is_of_the_other_family(ipv6: bool, level: i32) -> bool {
    level == libc::IPPROTO_IPV6 && !ipv6
}

fn refuse(level: i32, name: i32) {
    once(&OPTION_SAID, || {
        format!(
            "option {name} of level {level} is not supported by this mode on UDP sockets: the call fails (ENOPROTOOPT)"
        )
    });
}

/// A queue of errors, many datagrams in one: programs do without, or fall back.
fn is_refused(level: i32, name: i32) -> bool {
    let error_queue = [
        (libc::IPPROTO_IP, libc::IP_RECVERR),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    ];
    level == libc::IPPROTO_UDP || error_queue.contains(&(level, name))
}

/// Groups: IP_MULTICAST_IF and what follows up to MCAST_MSFILTER, and the same of IPv6.
fn is_of_groups(level: i32, name: i32) -> bool {
    match level {
        libc::IPPROTO_IP => (32..=41).contains(&name) || (42..=48).contains(&name),
        libc::IPPROTO_IPV6 => (17..=21).contains(&name) || (42..=48).contains(&name),
        _ => false,
    }
}

/// What no socket of the stack has and whose caller relies on it: filters of packets, the choice among those that share a port, offsets of
/// MSG_PEEK, the address before a translation. The kernel's socket has them, and would say so before it is known whose the socket is.
pub fn is_of_the_kernel_alone(level: i32, name: i32) -> bool {
    const IP_RECVORIGDSTADDR: i32 = 20;
    const IPV6_RECVORIGDSTADDR: i32 = 74;
    match level {
        libc::SOL_SOCKET => [
            libc::SO_ATTACH_FILTER,
            libc::SO_ATTACH_BPF,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            libc::SO_ATTACH_REUSEPORT_EBPF,
            libc::SO_PEEK_OFF,
        ]
        .contains(&name),
        libc::IPPROTO_IP => name == IP_RECVORIGDSTADDR,
        libc::IPPROTO_IPV6 => name == IPV6_RECVORIGDSTADDR,
        _ => false,
    }
}

pub fn say_of_the_kernel_alone(level: i32, name: i32) {
    once(&ALONE_SAID, || {
        format!("option {name} of level {level} is not supported: the call fails (ENOPROTOOPT)")
    });
}

/// SO_RCVTIMEO (true) and SO_SNDTIMEO: how long calls wait, if not for ever. As sock_set_timeout() (net/core/sock.c).
fn time(level: i32, name: i32, value: &[u8]) -> Option<Result<(bool, Option<Ns>), i32>> {
    let receives = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => true,
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => false,
        _ => return None,
    };
    let part = |at: usize| {
        let bytes = value.get(at..at + 8)?.try_into().ok()?;
        Some(i64::from_ne_bytes(bytes))
    };
    Some(match part(0).zip(part(8)) {
        None => Err(libc::EINVAL),
        Some((_, us)) if !(0..1_000_000).contains(&us) => Err(libc::EDOM),
        Some((0, 0)) => Ok((receives, None)),
        // They do not wait at all.
        Some((..0, _)) => Ok((receives, Some(Ns(1)))),
        Some((seconds, us)) => {
            let seconds = (seconds as u64).saturating_mul(1_000_000_000);
            Ok((
                receives,
                Some(Ns(seconds.saturating_add(us as u64 * 1_000))),
            ))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_kernels() {
        let given = |seconds: i64, us: i64| {
            let value = [seconds, us].map(i64::to_ne_bytes).concat();
            time(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &value)
        };
        assert_eq!(given(0, 0), Some(Ok((true, None))));
        assert_eq!(given(1, 5), Some(Ok((true, Some(Ns(1_000_005_000))))));
        assert_eq!(given(-1, 5), Some(Ok((true, Some(Ns(1))))));
        assert_eq!(given(0, -1), Some(Err(libc::EDOM)));
        assert_eq!(given(0, 1_000_000), Some(Err(libc::EDOM)));
        assert_eq!(given(i64::MAX, 0), Some(Ok((true, Some(Ns(u64::MAX))))));
        let short = time(libc::SOL_SOCKET, libc::SO_SNDTIMEO, &[0; 15]);
        assert_eq!(short, Some(Err(libc::EINVAL)));
        assert_eq!(time(libc::SOL_SOCKET, libc::SO_RCVBUF, &[0; 16]), None);
    }
}
