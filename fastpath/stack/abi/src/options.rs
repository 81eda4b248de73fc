//! Socket options by Linux' numbers.
use crate::Result;
use hopscope_stack_engine::config::Congestion;
use hopscope_stack_engine::{Linger, MtuDiscovery, Ns, SocketOption};
use nix::libc;

/// include/uapi/linux/tcp.h; libc lacks it.
const TCP_NOTSENT_LOWAT: i32 = 25;
/// include/uapi/linux/in.h: IP_PMTUDISC_INTERFACE.
const PMTUDISC_INTERFACE: i32 = 4;

fn seconds(value: i32) -> Ns {
    Ns::from_ms(1_000 * u64::try_from(value).unwrap_or(0))
}

/// The option of that name, with the value that setsockopt was given.
///
/// # Errors
/// ENOPROTOOPT; of TCP_CONGESTION ENOENT.
pub fn parse(level: i32, name: i32, value: &[u8]) -> Result<SocketOption> {
    let word = |at: usize| {
        value.get(at..at + 4).map_or(0, |bytes| {
            i32::from_ne_bytes(bytes.try_into().unwrap_or([0; 4]))
        })
    };
    // Options of IP are one byte where the caller has no more.
    let number = match value {
        [byte] => i32::from(*byte),
        _ => word(0),
    };
    let on = number != 0;
    let byte = u8::try_from(number).unwrap_or(u8::MAX);
    let unsigned = number as u32;
    Ok(match (level, name) {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => SocketOption::ReuseAddress(on),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => SocketOption::ReusePort(on),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => SocketOption::KeepAlive(on),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => SocketOption::SendBuffer(unsigned),
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => SocketOption::ReceiveBuffer(unsigned),
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => SocketOption::ReceiveLowWater(unsigned),
        (libc::SOL_SOCKET, libc::SO_LINGER) => SocketOption::Linger(match (on, word(4)) {
            (false, _) => Linger::Background,
            (true, 0) => Linger::Reset,
            (true, span) => Linger::Wait(seconds(span)),
        }),
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => SocketOption::NoDelay(on),
        (libc::IPPROTO_TCP, libc::TCP_CORK) => SocketOption::Cork(on),
        (libc::IPPROTO_TCP, libc::TCP_QUICKACK) => SocketOption::QuickAck(on),
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
            SocketOption::MaxSegment(u16::try_from(number).unwrap_or(u16::MAX))
        }
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => SocketOption::KeepIdle(seconds(number)),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => SocketOption::KeepInterval(seconds(number)),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => SocketOption::KeepCount(byte),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => {
            SocketOption::UserTimeout(Ns::from_ms(u64::from(unsigned)))
        }
        (libc::IPPROTO_TCP, libc::TCP_LINGER2) => SocketOption::FinTimeout(seconds(number)),
        (libc::IPPROTO_TCP, libc::TCP_SYNCNT) => SocketOption::SynCount(byte),
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => SocketOption::DeferAccept(seconds(number)),
        (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP) => SocketOption::WindowClamp(unsigned),
        (libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT) => SocketOption::NotSentLowWater(unsigned),
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => SocketOption::Congestion(congestion(value)?),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => SocketOption::V6Only(on),
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => {
            SocketOption::HopLimit(byte)
        }
        (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
            SocketOption::TrafficClass(byte)
        }
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) => {
            SocketOption::MtuDiscovery(mtu_discovery(number))
        }
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => {
            SocketOption::MtuDiscoveryV6(mtu_discovery(number))
        }
        _ => return Err(libc::ENOPROTOOPT),
    })
}

fn mtu_discovery(number: i32) -> MtuDiscovery {
    match number {
        libc::IP_PMTUDISC_DONT => MtuDiscovery::Dont,
        libc::IP_PMTUDISC_DO => MtuDiscovery::Do,
        // IP_PMTUDISC_INTERFACE: not lowered by what ICMP says.
        libc::IP_PMTUDISC_PROBE | PMTUDISC_INTERFACE => MtuDiscovery::Probe,
        // IP_PMTUDISC_OMIT, too.
        _ => MtuDiscovery::Want,
    }
}

fn congestion(name: &[u8]) -> Result<Congestion> {
    match name.split(|byte| *byte == 0).next() {
        Some(b"reno") => Ok(Congestion::NewReno),
        Some(b"cubic" | b"") => Ok(Congestion::Cubic),
        _ => Err(libc::ENOENT),
    }
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
        SocketOption::HopLimit(value) | SocketOption::TrafficClass(value) => {
            number(i64::from(value))
        }
        SocketOption::KeepIdle(span) | SocketOption::KeepInterval(span) => seconds(span),
        SocketOption::FinTimeout(span) | SocketOption::DeferAccept(span) => seconds(span),
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
        }),
        SocketOption::Congestion(Congestion::Cubic) => b"cubic\0".to_vec(),
        SocketOption::Congestion(Congestion::NewReno) => b"reno\0".to_vec(),
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
