//! What the messages add up to: features, memory, and the state of each queue.
use super::memory::{self, Region};
use super::{
    Header, PROTOCOL_FEATURES, PROTOCOL_REPLY_ACK, QueueAddress, RING_PACKED, Refused, Request,
};
use crate::ring::{Layout, SIZE_MAX};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    Kick,
    Call,
    Error,
}

/// What the owner of the socket has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Nothing,
    /// Map [`Control::regions`] anew, from the descriptors that came along.
    Memory,
    /// Take the descriptor that came along; `false`: none came, there is none from now on.
    Doorbell {
        queue: usize,
        which: Doorbell,
        descriptor: bool,
    },
    /// Look at [`Control::queue`] again: it may have become live.
    Queue(usize),
    /// The queue stopped: its base is asked of the caller, see [`Control::base`].
    Stopped(usize),
    /// All queues stopped, nothing is negotiated any more.
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// To be sent as it is, after the change was made.
    pub reply: Option<Vec<u8>>,
    pub change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueState {
    pub size: u16,
    pub address: Option<QueueAddress>,
    /// The next entry to be taken (split); with wrap counters where the ring is packed.
    pub base: u32,
    pub enabled: bool,
    /// A descriptor for kicks came: the queue has started.
    pub kicked: bool,
    pub called: bool,
}

pub struct Control {
    offered: u64,
    protocol_offered: u64,
    features: Option<u64>,
    protocol: u64,
    status: u64,
    regions: Vec<Region>,
    queues: Vec<QueueState>,
}

impl Control {
    /// `offered`: device features; [`PROTOCOL_FEATURES`] comes with them. `queues`: receive and transmit
    /// queues together.
    pub fn new(offered: u64, protocol_offered: u64, queues: usize) -> Control {
        Control {
            offered: offered | PROTOCOL_FEATURES,
            protocol_offered,
            features: None,
            protocol: 0,
            status: 0,
            regions: Vec::new(),
            queues: vec![QueueState::default(); queues],
        }
    }

    /// The acknowledged features; `None` until then.
    pub fn features(&self) -> Option<u64> {
        self.features
    }

    pub fn protocol_features(&self) -> u64 {
        self.protocol
    }

    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    pub fn queue(&self, queue: usize) -> Option<&QueueState> {
        self.queues.get(queue)
    }

    /// Sets at which entry a stopped queue ended, before the reply to its `GET_VRING_BASE` is built.
    pub fn base(&mut self, queue: usize, base: u32) {
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.base = base;
        }
    }

    /// Where a queue lies in the guest's memory, once it is live: started, enabled, and all of it told.
    ///
    /// # Errors
    /// One of its parts is in no region.
    pub fn live(&self, queue: usize) -> Result<Option<Layout>, Refused> {
        let Some(state) = self.queues.get(queue) else {
            return Ok(None);
        };
        let (Some(features), Some(address)) = (self.features, state.address) else {
            return Ok(None);
        };
        // Without protocol features there is no message that enables a queue.
        let enabled = state.enabled || features & PROTOCOL_FEATURES == 0;
        if !(enabled && state.kicked && state.size > 0 && !self.regions.is_empty()) {
            return Ok(None);
        }
        let guest =
            |user| memory::guest(&self.regions, user).ok_or(Refused::NotMapped { queue, user });
        Ok(Some(Layout {
            size: state.size,
            descriptors: guest(address.descriptors)?,
            driver: guest(address.available)?,
            device: guest(address.used)?,
        }))
    }

    /// # Errors
    /// A protocol error; close the connection.
    pub fn on(&mut self, header: Header, request: Request) -> Result<Answer, Refused> {
        let mut own = None;
        let mut change = Change::Nothing;
        match request {
            Request::GetFeatures => own = Some(self.offered.to_ne_bytes().to_vec()),
            Request::SetFeatures(bits) => {
                no_log(bits, LOG_ALL, "VHOST_F_LOG_ALL")?;
                offered(bits, self.offered)?;
                self.features = Some(bits);
            }
            Request::GetProtocolFeatures => {
                own = Some(self.protocol_offered.to_ne_bytes().to_vec());
            }
            Request::SetProtocolFeatures(bits) => {
                no_log(bits, PROTOCOL_LOG_SHMFD, "PROTOCOL_F_LOG_SHMFD")?;
                offered(bits, self.protocol_offered)?;
                self.protocol = bits;
            }
            Request::GetQueueNum => {
                // Pairs of a receive and a transmit queue.
                own = Some((self.queues.len() as u64 / 2).to_ne_bytes().to_vec());
            }
            Request::SetOwner => {}
            Request::ResetOwner => {
                self.reset();
                change = Change::Reset;
            }
            Request::SetMemTable(regions) => {
                memory::check(&regions)?;
                self.regions = regions;
                change = Change::Memory;
            }
            Request::SetVringNum { queue, size } => {
                let n = self.index(queue)?;
                let fair = (1..=u32::from(SIZE_MAX)).contains(&size);
                let fits = u16::try_from(size).ok().filter(|_| fair);
                self.queues[n].size = fits.ok_or(Refused::Size { queue, size })?;
            }
            Request::SetVringAddr(address) => {
                let n = self.index(address.queue)?;
                self.queues[n].address = Some(address);
                change = Change::Queue(n);
            }
            Request::SetVringBase { queue, base } => {
                let n = self.index(queue)?;
                // A packed one's has the places of both ends, with their wrap counters.
                let packed = self.features.is_some_and(|bits| bits & RING_PACKED != 0);
                if !packed && base > u32::from(u16::MAX) {
                    return Err(Refused::Base { queue, base });
                }
                self.queues[n].base = base;
            }
            Request::GetVringBase { queue } => {
                let n = self.index(queue)?;
                self.queues[n].kicked = false;
                own = Some(self.base_reply(queue, n));
                change = Change::Stopped(n);
            }
            Request::SetVringKick { queue, descriptor } => {
                let n = self.index(queue)?;
                if !descriptor {
                    return Err(Refused::Polling { queue });
                }
                self.queues[n].kicked = true;
                change = doorbell(n, Doorbell::Kick, descriptor);
            }
            Request::SetVringCall { queue, descriptor } => {
                let n = self.index(queue)?;
                self.queues[n].called = descriptor;
                change = doorbell(n, Doorbell::Call, descriptor);
            }
            Request::SetVringErr { queue, descriptor } => {
                change = doorbell(self.index(queue)?, Doorbell::Error, descriptor);
            }
            // QEMU sends this to a network device before the driver has taken any features: offering
            // protocol features is what allows it, not their having been taken.
            Request::SetVringEnable { queue, on } => {
                let n = self.index(queue)?;
                self.queues[n].enabled = on;
                change = Change::Queue(n);
            }
            Request::SetStatus(status) => {
                self.status = status;
                if status == 0 {
                    self.reset();
                    change = Change::Reset;
                }
            }
            Request::GetStatus => own = Some(self.status.to_ne_bytes().to_vec()),
        }
        let asked = header.need_reply && self.protocol & PROTOCOL_REPLY_ACK != 0;
        let done = || 0u64.to_ne_bytes().to_vec();
        let payload = own.or_else(|| asked.then(done));
        let reply = payload.map(|payload| header.reply(&payload));
        Ok(Answer { reply, change })
    }

    fn base_reply(&self, queue: u32, n: usize) -> Vec<u8> {
        let base = self.queues[n].base;
        [queue.to_ne_bytes(), base.to_ne_bytes()].concat()
    }

    fn index(&self, queue: u32) -> Result<usize, Refused> {
        let queues = self.queues.len();
        let index = usize::try_from(queue).ok().filter(|n| *n < queues);
        index.ok_or(Refused::NoQueue { queue, queues })
    }

    /// What is negotiated and started goes; the connection and its memory stay.
    fn reset(&mut self) {
        self.features = None;
        self.status = 0;
        for queue in &mut self.queues {
            (queue.kicked, queue.enabled) = (false, false);
        }
    }
}

/// How a front end begins to follow what is written, for a migration; neither is offered.
const LOG_ALL: u64 = 1 << 26;
const PROTOCOL_LOG_SHMFD: u64 = 1 << 1;

fn no_log(bits: u64, log: u64, request: &'static str) -> Result<(), Refused> {
    match bits & log {
        0 => Ok(()),
        _ => Err(Refused::Migration { request }),
    }
}

fn offered(bits: u64, offered: u64) -> Result<(), Refused> {
    match bits & !offered {
        0 => Ok(()),
        bits => Err(Refused::NotOffered { bits }),
    }
}

fn doorbell(queue: usize, which: Doorbell, descriptor: bool) -> Change {
    Change::Doorbell {
        queue,
        which,
        descriptor,
    }
}
