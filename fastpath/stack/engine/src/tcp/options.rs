//! Options of a TCP socket, with the limits that Linux has for them.
use crate::config::Congestion;
use crate::ip::HeaderOptions;
use crate::{Config, Linger, Ns, SocketError, SocketOption, TcpConfig};

/// What an accepted socket inherits from its listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketOptions {
    pub(crate) no_delay: bool,
    pub(crate) cork: bool,
    pub(crate) keep_alive: bool,
    pub(crate) reuse_address: bool,
    pub(crate) reuse_port: bool,
    pub(crate) v6_only: bool,
    pub(crate) keep_count: u8,
    pub(crate) syn_count: u8,
    pub(crate) quick_ack: bool,
    pub(crate) header: HeaderOptions,
    pub(crate) congestion: Congestion,
    /// 0: none.
    pub(crate) max_segment: u16,
    pub(crate) keep_idle: Ns,
    pub(crate) keep_interval: Ns,
    pub(crate) user_timeout: Ns,
    /// `None`: no FIN-WAIT-2 without a socket.
    pub(crate) fin_timeout: Option<Ns>,
    pub(crate) defer_accept: Ns,
    pub(crate) window_clamp: u32,
    /// 0: none.
    pub(crate) not_sent_low_water: u32,
    pub(crate) receive_low_water: u32,
    /// Set by the owner, which turns autotuning off.
    pub(crate) send_buffer: Option<u32>,
    pub(crate) receive_buffer: Option<u32>,
    pub(crate) linger: Linger,
}

/// TCP_MAXSEG: TCP_MIN_MSS and MAX_TCP_WINDOW of Linux; TCP_KEEPIDLE and TCP_KEEPINTVL at most 32,767 s.
const MIN_MSS: u16 = 88;
const MAX_MSS: u16 = 32_767;
/// TCP_WINDOW_CLAMP: SOCK_MIN_RCVBUF / 2.
const MIN_WINDOW_CLAMP: u32 = 1_152;
const MAX_KEEP: Ns = Ns::from_ms(32_767_000);
/// TCP_LINGER2: TCP_FIN_TIMEOUT_MAX.
const MAX_FIN_TIMEOUT: Ns = Ns::from_ms(120_000);

impl SocketOptions {
    pub(crate) fn new(config: &TcpConfig) -> SocketOptions {
        SocketOptions {
            no_delay: false,
            cork: false,
            keep_alive: false,
            reuse_address: false,
            reuse_port: false,
            v6_only: false,
            keep_count: config.keep_count,
            syn_count: config.syn_retries,
            quick_ack: true,
            header: HeaderOptions::default(),
            congestion: config.congestion,
            max_segment: 0,
            keep_idle: config.keep_idle,
            keep_interval: config.keep_interval,
            user_timeout: Ns(0),
            fin_timeout: Some(config.fin_timeout),
            defer_accept: Ns(0),
            window_clamp: 0,
            not_sent_low_water: 0,
            receive_low_water: 1,
            send_buffer: None,
            receive_buffer: None,
            linger: Linger::Background,
        }
    }

    /// # Errors
    /// Invalid, NoOption.
    pub(crate) fn set(&mut self, option: SocketOption, all: &Config) -> Result<(), SocketError> {
        let config = &all.tcp;
        match option {
            SocketOption::NoDelay(on) => self.no_delay = on,
            SocketOption::Cork(on) => self.cork = on,
            SocketOption::QuickAck(on) => self.quick_ack = on,
            SocketOption::MaxSegment(0) => self.max_segment = 0,
            SocketOption::MaxSegment(mss) => {
                self.max_segment = within(mss, MIN_MSS, MAX_MSS)?;
            }
            SocketOption::KeepAlive(on) => self.keep_alive = on,
            SocketOption::KeepIdle(time) => self.keep_idle = keep_time(time)?,
            SocketOption::KeepInterval(time) => self.keep_interval = keep_time(time)?,
            SocketOption::KeepCount(count) => self.keep_count = within(count, 1, 127)?,
            SocketOption::UserTimeout(time) => self.user_timeout = time,
            SocketOption::FinTimeout(Some(Ns(0))) => self.fin_timeout = Some(config.fin_timeout),
            SocketOption::FinTimeout(time) => {
                self.fin_timeout = time.map(|time| time.min(MAX_FIN_TIMEOUT));
            }
            SocketOption::SynCount(count) => self.syn_count = within(count, 1, 127)?,
            SocketOption::DeferAccept(time) => self.defer_accept = time,
            SocketOption::WindowClamp(0) => self.window_clamp = 0,
            SocketOption::WindowClamp(bytes) => self.window_clamp = bytes.max(MIN_WINDOW_CLAMP),
            SocketOption::NotSentLowWater(bytes) => self.not_sent_low_water = bytes,
            SocketOption::ReceiveLowWater(bytes) => {
                // tcp_set_rcvlowat: what is beyond never comes.
                let most = self.receive_buffer.unwrap_or(config.receive_buffer.max) / 2;
                self.receive_low_water = bytes.min(most).max(1);
            }
            SocketOption::SendBuffer(bytes) => {
                self.send_buffer = Some(all.buffers.send_bytes(bytes));
            }
            SocketOption::ReceiveBuffer(bytes) => {
                self.receive_buffer = Some(all.buffers.receive_bytes(bytes));
            }
            SocketOption::ReuseAddress(on) => self.reuse_address = on,
            SocketOption::ReusePort(on) => self.reuse_port = on,
            SocketOption::Linger(linger) => self.linger = linger,
            SocketOption::V6Only(on) => self.v6_only = on,
            SocketOption::Congestion(congestion) => self.congestion = congestion,
            // ECN's bits are the stack's (Linux, ip_sock_set_tos).
            SocketOption::TrafficClass(class) => {
                self.header.set(SocketOption::TrafficClass(class & !3))?;
            }
            SocketOption::TrafficClassV6(class) => {
                self.header.set(SocketOption::TrafficClassV6(class & !3))?;
            }
            SocketOption::HopLimit(_)
            | SocketOption::HopLimitV6(_)
            | SocketOption::MtuDiscovery(_)
            | SocketOption::MtuDiscoveryV6(_) => self.header.set(option)?,
        }
        Ok(())
    }

    pub(crate) fn get(&self, like: SocketOption, config: &TcpConfig) -> SocketOption {
        match like {
            SocketOption::NoDelay(_) => SocketOption::NoDelay(self.no_delay),
            SocketOption::Cork(_) => SocketOption::Cork(self.cork),
            SocketOption::QuickAck(_) => SocketOption::QuickAck(self.quick_ack),
            SocketOption::MaxSegment(_) => SocketOption::MaxSegment(match self.max_segment {
                0 => 536,
                mss => mss,
            }),
            SocketOption::KeepAlive(_) => SocketOption::KeepAlive(self.keep_alive),
            SocketOption::KeepIdle(_) => SocketOption::KeepIdle(self.keep_idle),
            SocketOption::KeepInterval(_) => SocketOption::KeepInterval(self.keep_interval),
            SocketOption::KeepCount(_) => SocketOption::KeepCount(self.keep_count),
            SocketOption::UserTimeout(_) => SocketOption::UserTimeout(self.user_timeout),
            SocketOption::FinTimeout(_) => SocketOption::FinTimeout(self.fin_timeout),
            SocketOption::SynCount(_) => SocketOption::SynCount(self.syn_count),
            SocketOption::DeferAccept(_) => SocketOption::DeferAccept(self.defer_accept),
            SocketOption::WindowClamp(_) => SocketOption::WindowClamp(self.window_clamp),
            SocketOption::NotSentLowWater(_) => {
                SocketOption::NotSentLowWater(self.not_sent_low_water)
            }
            SocketOption::ReceiveLowWater(_) => {
                SocketOption::ReceiveLowWater(self.receive_low_water)
            }
            SocketOption::SendBuffer(_) => {
                SocketOption::SendBuffer(self.send_buffer.unwrap_or(config.send_buffer.initial))
            }
            SocketOption::ReceiveBuffer(_) => SocketOption::ReceiveBuffer(
                self.receive_buffer.unwrap_or(config.receive_buffer.initial),
            ),
            SocketOption::ReuseAddress(_) => SocketOption::ReuseAddress(self.reuse_address),
            SocketOption::ReusePort(_) => SocketOption::ReusePort(self.reuse_port),
            SocketOption::Linger(_) => SocketOption::Linger(self.linger),
            SocketOption::V6Only(_) => SocketOption::V6Only(self.v6_only),
            SocketOption::Congestion(_) => SocketOption::Congestion(self.congestion),
            SocketOption::HopLimit(_)
            | SocketOption::HopLimitV6(_)
            | SocketOption::TrafficClass(_)
            | SocketOption::TrafficClassV6(_)
            | SocketOption::MtuDiscovery(_)
            | SocketOption::MtuDiscoveryV6(_) => self.header.get(like).unwrap_or(like),
        }
    }

    /// Whether others may bind the port while a connection of this socket has it.
    pub(crate) fn is_exclusive(&self) -> bool {
        !self.reuse_address && !self.reuse_port
    }
}

fn within<T: PartialOrd>(value: T, least: T, most: T) -> Result<T, SocketError> {
    if value < least || value > most {
        return Err(SocketError::Invalid);
    }
    Ok(value)
}

fn keep_time(time: Ns) -> Result<Ns, SocketError> {
    within(time, Ns(1), MAX_KEEP)
}
