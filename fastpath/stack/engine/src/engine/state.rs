//! What an engine consists of.
use crate::buffer::Pool;
use crate::ip::Interface;
use crate::tcp::{Socket, Tcp};
use crate::udp::Udp;
use crate::{Config, ConfigError, Counters, Ns, SocketError, SocketId};

/// What goes through all layers with a call.
macro_rules! host {
    ($engine:expr, $now:expr) => {
        &mut $crate::tcp::Host {
            now: $now,
            ip: &mut $engine.ip,
            counters: &mut $engine.counters,
            pool: {
                $engine.pool.set_sockets($engine.tcp.sockets.len());
                &mut $engine.pool
            },
        }
    };
}

macro_rules! lower {
    ($engine:expr, $now:expr) => {
        &mut $crate::udp::Lower {
            now: $now,
            ip: &mut $engine.ip,
            counters: &mut $engine.counters,
            pool: &mut $engine.pool,
        }
    };
}

pub(super) use {host, lower};

/// The stack as a whole: what its owner calls.
#[derive(Debug)]
pub struct Engine {
    pub(super) ip: Interface,
    pub(super) tcp: Tcp,
    pub(super) udp: Udp,
    pub(super) pool: Pool,
    pub(super) counters: Counters,
    /// Whose turn the next frame is.
    pub(super) udp_first: bool,
    /// Of the last call that had it: for calls that are not told.
    pub(super) now: Ns,
}
impl Engine {
    /// # Errors
    /// A value of `config` cannot be: [`ConfigError`] says which and what could.
    pub fn new(config: Config) -> Result<Engine, ConfigError> {
        let ip = Interface::new(&config)?;
        if (config.offload.segmentation_v4 || config.offload.segmentation_v6)
            && !config.offload.checksum
        {
            return Err(ConfigError::SegmentationWithoutChecksum);
        }
        Ok(Engine {
            ip,
            tcp: Tcp::new(&config),
            udp: Udp::new(&config),
            pool: Pool::new(config.memory_bytes),
            counters: Counters::default(),
            udp_first: false,
            now: Ns(0),
        })
    }

    /// UDP's index of a socket that is one of UDP.
    pub(super) fn udp_index(&self, id: SocketId) -> Result<Option<u32>, SocketError> {
        let sockets = &self.tcp.sockets;
        Ok(match sockets.get(sockets.index(id)?) {
            Some(Socket::Udp(index)) => Some(*index),
            _ => None,
        })
    }

    /// Events of UDP join those of TCP.
    pub(super) fn tell_changed(&mut self) {
        while let Some(id) = self.udp.next_changed() {
            self.tcp.sockets.event(id.slot);
        }
    }
}
