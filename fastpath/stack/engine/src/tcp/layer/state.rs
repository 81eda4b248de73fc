//! The tables of all connections.
use crate::buffer::Pool;
use crate::ip::Interface;
use crate::tcp::challenge::ChallengeLimit;
use crate::tcp::cookies::Cookies;
use crate::tcp::demux::Demux;
use crate::tcp::listener::Listeners;
use crate::tcp::ports::Ports;
use crate::tcp::replies::Replies;
use crate::tcp::request::Request;
use crate::tcp::secrets::Secrets;
use crate::tcp::slab::Slab;
use crate::tcp::sockets::Sockets;
use crate::tcp::time_wait::TimeWaits;
use crate::tcp::tuple::HashKeys;
use crate::timer::Wheel;
use crate::{Config, Counters, Ns};
use std::collections::VecDeque;

/// Linux INET_TABLE_PERTURB_SIZE is 65,536, against observers who guess of others' ports; these are of one owner.
pub(crate) const PORT_SEARCHES: usize = 1024;

/// What the layer borrows from the engine for one call.
pub(crate) struct Host<'a> {
    pub(crate) now: Ns,
    pub(crate) ip: &'a mut Interface,
    pub(crate) counters: &'a mut Counters,
    pub(crate) pool: &'a mut Pool,
}

#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) config: Config,
    pub(crate) secrets: Secrets,
    pub(crate) cookies: Cookies,
    pub(crate) keys: HashKeys,
    pub(crate) demux: Demux,
    pub(crate) sockets: Sockets,
    /// Of sockets, by slot.
    pub(crate) timers: Wheel,
    pub(crate) requests: Slab<Request>,
    pub(crate) request_timers: Wheel,
    pub(crate) time_waits: TimeWaits,
    pub(crate) listeners: Listeners,
    pub(crate) ports: Ports,
    pub(crate) replies: Replies,
    pub(crate) challenges: ChallengeLimit,
    /// Slots of connections that may have something to send.
    pub(crate) output: VecDeque<u32>,
    /// Segments that the first of them sent in a row.
    pub(crate) burst: u32,
    /// How far searches for ports went, by what they were for (RFC 6056, 3.3.4), so that the next begins behind them.
    pub(crate) port_searches: Vec<u32>,
    /// Connections whose sockets are closed.
    pub(crate) orphans: u32,
    /// That were looked for.
    pub(crate) free_ports: u16,
    /// Connections whose owners wait for memory.
    pub(crate) starved: VecDeque<u32>,
}

impl Tcp {
    pub(crate) fn new(config: &Config) -> Tcp {
        let mut random = [0; 8];
        random.copy_from_slice(&config.seed[8..16]);
        let per_s = config.tcp.challenge_acks_per_s;
        Tcp {
            secrets: Secrets::new(&config.seed),
            cookies: Cookies::new(&config.seed),
            keys: HashKeys::new(&config.seed),
            demux: Demux::default(),
            sockets: Sockets::new(config.max_sockets),
            timers: Wheel::default(),
            requests: Slab::default(),
            request_timers: Wheel::default(),
            time_waits: TimeWaits::default(),
            listeners: Listeners::default(),
            ports: Ports::default(),
            replies: Replies::default(),
            challenges: ChallengeLimit::new(per_s, u64::from_le_bytes(random)),
            output: VecDeque::new(),
            burst: 0,
            port_searches: vec![0; PORT_SEARCHES],
            orphans: 0,
            free_ports: 0,
            starved: VecDeque::new(),
            config: config.clone(),
        }
    }

    /// Of tables, without buffers.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.demux.memory_bytes()
            + self.sockets.memory_bytes()
            + self.timers.memory_bytes()
            + self.requests.memory_bytes()
            + self.request_timers.memory_bytes()
            + self.time_waits.memory_bytes()
    }
}

/// A [`crate::tcp::context::Context`] out of fields that no other borrow of the layer touches.
macro_rules! context {
    ($tcp:expr, $host:expr) => {
        $crate::tcp::context::Context {
            now: $host.now,
            config: &$tcp.config.tcp,
            counters: &mut *$host.counters,
            pool: &mut *$host.pool,
            replies: &mut $tcp.replies,
            challenges: &mut $tcp.challenges,
        }
    };
}

pub(crate) use context;
