//! Socket options by Linux' numbers.
use crate::Result;
use hopscope_stack_engine::config::Congestion;
use hopscope_stack_engine::{Linger, MtuDiscovery, Ns, SocketOption};
use nix::libc;

/// include/uapi/linux/tcp.h; libc lacks it.
const TCP_NOTSENT_LOWAT: i32 = 25;
/// include/uapi/linux/in.h: IP_PMTUDISC_INTERFACE.
const PMTUDISC_INTERFACE: i32 = 4;
const PMTUDISC_OMIT: i32 = 5;
/// net.ipv4.ip_default_ttl, net.ipv6.conf.*.hop_limit.
const DEFAULT_HOPS: u8 = 64;

fn seconds(value: i32) -> Ns {
    Ns::from_ms(1_000 * u64::try_from(value).unwrap_or(0))
}

/// The option of that name, with the value that setsockopt was given.
///
/// # Errors
/// ENOPROTOOPT; EINVAL: too short, or out of the option's range; of TCP_CONGESTION ENOENT.
pub fn parse(level: i32, name: i32, value: &[u8]) -> Result<SocketOption> {
    let option = named(level, name).map_err(|error| match level {
        // Before it is known which one (do_tcp_setsockopt).
        libc::IPPROTO_TCP if value.len() < 4 => libc::EINVAL,
        _ => error,
    })?;
    let number = match (level, value) {
        // Options of IP are one byte where the caller has no more.
        (libc::IPPROTO_IP, [byte] | [byte, _] | [byte, _, _]) => i32::from(*byte),
        (libc::IPPROTO_IP, []) => 0,
        _ if matches!(option, SocketOption::Congestion(_)) => 0,
        _ => word(value, 0)?,
    };
    let on = number != 0;
    let byte = u8::try_from(number).unwrap_or(u8::MAX);
    let unsigned = number as u32;
    // -1: the default.
    let hops = |least: i32| match number {
        -1 => Ok(DEFAULT_HOPS),
        hops => within(hops, least, 255),
    };
    Ok(match option {
        SocketOption::ReuseAddress(_) => SocketOption::ReuseAddress(on),
        SocketOption::ReusePort(_) => SocketOption::ReusePort(on),
        SocketOption::KeepAlive(_) => SocketOption::KeepAlive(on),
        SocketOption::SendBuffer(_) => SocketOption::SendBuffer(unsigned),
        SocketOption::ReceiveBuffer(_) => SocketOption::ReceiveBuffer(unsigned),
        SocketOption::ReceiveLowWater(_) => SocketOption::ReceiveLowWater(match number {
            ..0 => i32::MAX as u32,
            bytes => bytes as u32,
        }),
        SocketOption::Linger(_) => SocketOption::Linger(match (on, word(value, 4)?) {
            (false, _) => Linger::Background,
            (true, 0) => Linger::Reset,
            (true, span) => Linger::Wait(seconds(span)),
        }),
        SocketOption::NoDelay(_) => SocketOption::NoDelay(on),
        SocketOption::Cork(_) => SocketOption::Cork(on),
        SocketOption::QuickAck(_) => SocketOption::QuickAck(on),
        SocketOption::MaxSegment(_) => {
            SocketOption::MaxSegment(u16::try_from(number).map_err(|_| libc::EINVAL)?)
        }
        SocketOption::KeepIdle(_) => SocketOption::KeepIdle(seconds(number)),
        SocketOption::KeepInterval(_) => SocketOption::KeepInterval(seconds(number)),
        SocketOption::KeepCount(_) => SocketOption::KeepCount(byte),
        SocketOption::UserTimeout(_) => {
            let ms = u64::try_from(number).map_err(|_| libc::EINVAL)?;
            SocketOption::UserTimeout(Ns::from_ms(ms))
        }
        SocketOption::FinTimeout(_) => {
            SocketOption::FinTimeout((number >= 0).then(|| seconds(number)))
        }
        SocketOption::SynCount(_) => SocketOption::SynCount(byte),
        SocketOption::DeferAccept(_) => {
            SocketOption::DeferAccept(seconds(span_of_retransmissions(number)))
        }
        SocketOption::WindowClamp(_) => SocketOption::WindowClamp(match number {
            // Of them it takes its least.
            ..0 => 1,
            bytes => bytes as u32,
        }),
        SocketOption::NotSentLowWater(_) => SocketOption::NotSentLowWater(unsigned),
        SocketOption::Congestion(_) => SocketOption::Congestion(congestion(value)?),
        SocketOption::V6Only(_) => SocketOption::V6Only(on),
        SocketOption::HopLimit(_) => SocketOption::HopLimit(hops(1)?),
        SocketOption::HopLimitV6(_) => SocketOption::HopLimitV6(hops(0)?),
        // Its lowest byte, whatever there is above.
        SocketOption::TrafficClass(_) => SocketOption::TrafficClass(number as u8),
        SocketOption::TrafficClassV6(_) => SocketOption::TrafficClassV6(match number {
            -1 => 0,
            class => within(class, 0, 255)?,
        }),
        SocketOption::MtuDiscovery(_) => SocketOption::MtuDiscovery(mtu_discovery(number)?),
        SocketOption::MtuDiscoveryV6(_) => SocketOption::MtuDiscoveryV6(mtu_discovery(number)?),
    })
}

/// The option of that name, with any value: what `Engine::option` is asked with.
///
/// # Errors
/// ENOPROTOOPT.
pub fn named(level: i32, name: i32) -> Result<SocketOption> {
    Ok(match (level, name) {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => SocketOption::ReuseAddress(false),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => SocketOption::ReusePort(false),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => SocketOption::KeepAlive(false),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => SocketOption::SendBuffer(0),
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => SocketOption::ReceiveBuffer(0),
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => SocketOption::ReceiveLowWater(0),
        (libc::SOL_SOCKET, libc::SO_LINGER) => SocketOption::Linger(Linger::Background),
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => SocketOption::NoDelay(false),
        (libc::IPPROTO_TCP, libc::TCP_CORK) => SocketOption::Cork(false),
        (libc::IPPROTO_TCP, libc::TCP_QUICKACK) => SocketOption::QuickAck(false),
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => SocketOption::MaxSegment(0),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => SocketOption::KeepIdle(Ns(0)),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => SocketOption::KeepInterval(Ns(0)),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => SocketOption::KeepCount(0),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => SocketOption::UserTimeout(Ns(0)),
        (libc::IPPROTO_TCP, libc::TCP_LINGER2) => SocketOption::FinTimeout(None),
        (libc::IPPROTO_TCP, libc::TCP_SYNCNT) => SocketOption::SynCount(0),
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => SocketOption::DeferAccept(Ns(0)),
        (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP) => SocketOption::WindowClamp(0),
        (libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT) => SocketOption::NotSentLowWater(0),
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => SocketOption::Congestion(Congestion::Cubic),
        (libc::IPPROTO_IP, libc::IP_TTL) => SocketOption::HopLimit(0),
        (libc::IPPROTO_IP, libc::IP_TOS) => SocketOption::TrafficClass(0),
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) => SocketOption::MtuDiscovery(MtuDiscovery::Want),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => SocketOption::V6Only(false),
        (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => SocketOption::HopLimitV6(0),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => SocketOption::TrafficClassV6(0),
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => {
            SocketOption::MtuDiscoveryV6(MtuDiscovery::Want)
        }
        _ => return Err(libc::ENOPROTOOPT),
    })
}

fn word(value: &[u8], at: usize) -> Result<i32> {
    let bytes = value
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok());
    bytes.map(i32::from_ne_bytes).ok_or(libc::EINVAL)
}

fn within(number: i32, least: i32, most: i32) -> Result<u8> {
    if !(least..=most).contains(&number) {
        return Err(libc::EINVAL);
    }
    u8::try_from(number).map_err(|_| libc::EINVAL)
}

/// TCP_DEFER_ACCEPT is kept as a number of retransmissions, at 1, 2, 4 … 120 s: those that cover so many seconds
/// (`secs_to_retrans`, `retrans_to_secs` of net/ipv4/tcp.c).
fn span_of_retransmissions(wanted_s: i32) -> i32 {
    if wanted_s <= 0 {
        return 0;
    }
    let (mut timeout_s, mut span_s) = (1, 1);
    let mut retransmissions = 1_u8;
    while span_s < wanted_s && retransmissions < u8::MAX {
        timeout_s = (timeout_s * 2).min(120);
        span_s += timeout_s;
        retransmissions += 1;
    }
    span_s
}

fn mtu_discovery(number: i32) -> Result<MtuDiscovery> {
    Ok(match number {
        libc::IP_PMTUDISC_DONT => MtuDiscovery::Dont,
        libc::IP_PMTUDISC_WANT => MtuDiscovery::Want,
        libc::IP_PMTUDISC_DO => MtuDiscovery::Do,
        libc::IP_PMTUDISC_PROBE => MtuDiscovery::Probe,
        PMTUDISC_INTERFACE => MtuDiscovery::Interface,
        PMTUDISC_OMIT => MtuDiscovery::Omit,
        _ => return Err(libc::EINVAL),
    })
}

fn congestion(name: &[u8]) -> Result<Congestion> {
    match name.split(|byte| *byte == 0).next() {
        Some(b"reno") => Ok(Congestion::NewReno),
        Some(b"") if name.is_empty() => Err(libc::EINVAL),
        Some(b"cubic" | b"") => Ok(Congestion::Cubic),
        _ => Err(libc::ENOENT),
    }
}

/// TCP_CA_NAME_MAX bytes.
fn name_of_congestion(name: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    bytes.resize(16, 0);
    bytes
}

/// What getsockopt gives of it.
#[must_use]
pub fn value(option: SocketOption) -> Vec<u8> {
    let number = |value: i64| (value as i32).to_ne_bytes().to_vec();
    let seconds = |span: Ns| number((span.0 / 1_000_000_000) as i64);
    match option {
        SocketOption::NoDelay(on) | SocketOption::Cork(on) | SocketOption::QuickAck(on) => {
            number(i64::from(on))
        }
        SocketOption::KeepAlive(on) | SocketOption::ReuseAddress(on) => number(i64::from(on)),
        SocketOption::ReusePort(on) | SocketOption::V6Only(on) => number(i64::from(on)),
        SocketOption::MaxSegment(value) => number(i64::from(value)),
        SocketOption::KeepCount(value) | SocketOption::SynCount(value) => number(i64::from(value)),
        SocketOption::HopLimit(value)
        | SocketOption::HopLimitV6(value)
        | SocketOption::TrafficClass(value)
        | SocketOption::TrafficClassV6(value) => number(i64::from(value)),
        SocketOption::KeepIdle(span) | SocketOption::KeepInterval(span) => seconds(span),
        SocketOption::DeferAccept(span) => seconds(span),
        SocketOption::FinTimeout(span) => span.map_or_else(|| number(-1), seconds),
        SocketOption::UserTimeout(span) => number((span.0 / 1_000_000) as i64),
        SocketOption::WindowClamp(value) | SocketOption::NotSentLowWater(value) => {
            number(i64::from(value))
        }
        SocketOption::ReceiveLowWater(value) => number(i64::from(value)),
        SocketOption::SendBuffer(value) | SocketOption::ReceiveBuffer(value) => {
            number(i64::from(value))
        }
        SocketOption::MtuDiscovery(how) | SocketOption::MtuDiscoveryV6(how) => number(match how {
            MtuDiscovery::Dont => 0,
            MtuDiscovery::Want => 1,
            MtuDiscovery::Do => 2,
            MtuDiscovery::Probe => 3,
            MtuDiscovery::Interface => 4,
            MtuDiscovery::Omit => 5,
        }),
        SocketOption::Congestion(Congestion::Cubic) => name_of_congestion(b"cubic"),
        SocketOption::Congestion(Congestion::NewReno) => name_of_congestion(b"reno"),
        SocketOption::Linger(linger) => {
            let (on, span) = match linger {
                Linger::Background => (0_i32, 0),
                Linger::Reset => (1, 0),
                Linger::Wait(span) => (1, (span.0 / 1_000_000_000) as i32),
            };
            [on.to_ne_bytes(), span.to_ne_bytes()].concat()
        }
    }
}
