//! Messages, from bytes.
use super::limits::{PAYLOAD_MAX, REGIONS_MAX};
use super::memory::Region;
use super::{Refused, number};

/// `request`, `flags`, `size`: 32 bits each, in the order of the host's bytes.
pub const HEADER_LEN: usize = 12;
pub(super) const VERSION: u32 = 1;
pub(super) const VERSION_MASK: u32 = 3;
pub(super) const REPLY: u32 = 1 << 2;
pub(super) const NEED_REPLY: u32 = 1 << 3;
/// Of kick, call and error: no descriptor comes along.
pub(super) const NO_DESCRIPTOR: u64 = 1 << 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub request: u32,
    /// The front end requests a reply (`need_reply`).
    pub need_reply: bool,
    pub payload_len: u32,
}

impl Header {
    /// # Errors
    /// Another version, or a payload longer than any known.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Header, Refused> {
        let word =
            |n: usize| u32::from_ne_bytes([bytes[n], bytes[n + 1], bytes[n + 2], bytes[n + 3]]);
        let (flags, payload_len) = (word(4), word(8));
        if flags & VERSION_MASK != VERSION {
            return Err(Refused::Version(flags & VERSION_MASK));
        }
        if payload_len > PAYLOAD_MAX {
            return Err(Refused::TooLong(payload_len));
        }
        Ok(Header {
            request: word(0),
            need_reply: flags & NEED_REPLY != 0,
            payload_len,
        })
    }

    /// A whole message that answers this one.
    pub(super) fn reply(self, payload: &[u8]) -> Vec<u8> {
        let words = [self.request, VERSION | REPLY, payload.len() as u32];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        bytes.extend(payload);
        bytes
    }
}

/// Where the front end has a queue's parts in its own memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueAddress {
    pub queue: u32,
    pub descriptors: u64,
    pub used: u64,
    pub available: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    GetFeatures,
    SetFeatures(u64),
    SetOwner,
    ResetOwner,
    /// As many descriptors come along as there are regions.
    SetMemTable(Vec<Region>),
    SetVringNum {
        queue: u32,
        size: u32,
    },
    SetVringAddr(QueueAddress),
    SetVringBase {
        queue: u32,
        base: u32,
    },
    GetVringBase {
        queue: u32,
    },
    /// Without a descriptor the queue would have to be polled.
    SetVringKick {
        queue: u32,
        descriptor: bool,
    },
    SetVringCall {
        queue: u32,
        descriptor: bool,
    },
    SetVringErr {
        queue: u32,
        descriptor: bool,
    },
    GetProtocolFeatures,
    SetProtocolFeatures(u64),
    GetQueueNum,
    SetVringEnable {
        queue: u32,
        on: bool,
    },
    SetStatus(u64),
    GetStatus,
}

impl Request {
    /// # Errors
    /// Not known here, of another length, or with another number of descriptors.
    pub fn decode(header: Header, payload: &[u8], came: usize) -> Result<Request, Refused> {
        let body = |request| Body { request, payload };
        let (wanted, request) = match header.request {
            number::GET_FEATURES => (0, body("GET_FEATURES").empty(Request::GetFeatures)?),
            number::SET_FEATURES => (0, Request::SetFeatures(body("SET_FEATURES").u64()?)),
            number::SET_OWNER => (0, body("SET_OWNER").empty(Request::SetOwner)?),
            number::RESET_OWNER => (0, body("RESET_OWNER").empty(Request::ResetOwner)?),
            number::SET_MEM_TABLE => {
                let regions = body("SET_MEM_TABLE").regions()?;
                (regions.len(), Request::SetMemTable(regions))
            }
            number::SET_LOG_BASE | number::SET_LOG_FD => {
                let request = if header.request == number::SET_LOG_BASE {
                    "SET_LOG_BASE"
                } else {
                    "SET_LOG_FD"
                };
                return Err(Refused::Migration { request });
            }
            number::SET_VRING_NUM => {
                let (queue, size) = body("SET_VRING_NUM").state()?;
                (0, Request::SetVringNum { queue, size })
            }
            number::SET_VRING_ADDR => (0, Request::SetVringAddr(body("SET_VRING_ADDR").address()?)),
            number::SET_VRING_BASE => {
                let (queue, base) = body("SET_VRING_BASE").state()?;
                (0, Request::SetVringBase { queue, base })
            }
            number::GET_VRING_BASE => {
                let (queue, _) = body("GET_VRING_BASE").state()?;
                (0, Request::GetVringBase { queue })
            }
            number::SET_VRING_KICK => {
                let (queue, descriptor) = body("SET_VRING_KICK").doorbell()?;
                (
                    descriptor.into(),
                    Request::SetVringKick { queue, descriptor },
                )
            }
            number::SET_VRING_CALL => {
                let (queue, descriptor) = body("SET_VRING_CALL").doorbell()?;
                (
                    descriptor.into(),
                    Request::SetVringCall { queue, descriptor },
                )
            }
            number::SET_VRING_ERR => {
                let (queue, descriptor) = body("SET_VRING_ERR").doorbell()?;
                (
                    descriptor.into(),
                    Request::SetVringErr { queue, descriptor },
                )
            }
            number::GET_PROTOCOL_FEATURES => {
                let request = Request::GetProtocolFeatures;
                (0, body("GET_PROTOCOL_FEATURES").empty(request)?)
            }
            number::SET_PROTOCOL_FEATURES => {
                let bits = body("SET_PROTOCOL_FEATURES").u64()?;
                (0, Request::SetProtocolFeatures(bits))
            }
            number::GET_QUEUE_NUM => (0, body("GET_QUEUE_NUM").empty(Request::GetQueueNum)?),
            number::SET_VRING_ENABLE => {
                let (queue, on) = body("SET_VRING_ENABLE").state()?;
                (0, Request::SetVringEnable { queue, on: on != 0 })
            }
            number::SET_STATUS => (0, Request::SetStatus(body("SET_STATUS").u64()?)),
            number::GET_STATUS => (0, body("GET_STATUS").empty(Request::GetStatus)?),
            other => return Err(Refused::Unknown(other)),
        };
        if came == wanted {
            Ok(request)
        } else {
            Err(Refused::Descriptors {
                request: NAMES[header.request as usize % NAMES.len()],
                came,
                wanted,
            })
        }
    }
}

/// By number, for those that can have the wrong number of descriptors.
const NAMES: [&str; 41] = {
    let mut names = ["the message"; 41];
    names[number::SET_MEM_TABLE as usize] = "SET_MEM_TABLE";
    names[number::SET_VRING_KICK as usize] = "SET_VRING_KICK";
    names[number::SET_VRING_CALL as usize] = "SET_VRING_CALL";
    names[number::SET_VRING_ERR as usize] = "SET_VRING_ERR";
    names
};

struct Body<'a> {
    request: &'static str,
    payload: &'a [u8],
}

impl Body<'_> {
    fn wrong(&self) -> Refused {
        let len = self.payload.len();
        let request = self.request;
        Refused::Length { request, len }
    }

    fn empty(&self, request: Request) -> Result<Request, Refused> {
        match self.payload {
            [] => Ok(request),
            _ => Err(self.wrong()),
        }
    }

    fn u64(&self) -> Result<u64, Refused> {
        let bytes = self.payload.try_into().map_err(|_| self.wrong())?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// A queue, and a number.
    fn state(&self) -> Result<(u32, u32), Refused> {
        let value = self.u64()?.to_ne_bytes();
        let [a, b, c, d, e, f, g, h] = value;
        Ok((
            u32::from_ne_bytes([a, b, c, d]),
            u32::from_ne_bytes([e, f, g, h]),
        ))
    }

    /// A queue, and whether a descriptor comes along.
    fn doorbell(&self) -> Result<(u32, bool), Refused> {
        let value = self.u64()?;
        Ok((value as u8 as u32, value & NO_DESCRIPTOR == 0))
    }

    fn words<const N: usize>(&self, bytes: &[u8]) -> Result<[u64; N], Refused> {
        let mut words = [0; N];
        if bytes.len() != 8 * N {
            return Err(self.wrong());
        }
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().map_err(|_| self.wrong())?);
        }
        Ok(words)
    }

    /// `index`, `flags`, then descriptor, used, available and log addresses.
    fn address(&self) -> Result<QueueAddress, Refused> {
        let [first, descriptors, used, available, _log] = self.words(self.payload)?;
        let [a, b, c, d, flags, ..] = first.to_ne_bytes();
        if flags & 1 != 0 {
            let request = "SET_VRING_ADDR with a log";
            return Err(Refused::Migration { request });
        }
        Ok(QueueAddress {
            queue: u32::from_ne_bytes([a, b, c, d]),
            descriptors,
            used,
            available,
        })
    }

    /// `count`, padding, then guest address, length, user address and offset of each.
    fn regions(&self) -> Result<Vec<Region>, Refused> {
        let (head, table) = self
            .payload
            .split_at_checked(8)
            .ok_or_else(|| self.wrong())?;
        let [a, b, c, d, ..] = head else {
            return Err(self.wrong());
        };
        let count = u32::from_ne_bytes([*a, *b, *c, *d]);
        if !(1..=REGIONS_MAX).contains(&count) {
            return Err(Refused::Regions { count });
        }
        // Some front ends send the whole table whatever the count.
        let len = 32 * count as usize;
        let table = table.get(..len).ok_or_else(|| self.wrong())?;
        let region = |bytes| {
            let [guest, len, user, offset] = self.words(bytes)?;
            Ok(Region {
                guest,
                len,
                user,
                offset,
            })
        };
        table.chunks_exact(32).map(region).collect()
    }
}
