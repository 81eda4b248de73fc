//! The front end's side of a message: to bytes, and from the bytes of its answer.
use super::number::*;
use super::request::{NEED_REPLY, NO_DESCRIPTOR, REPLY, VERSION, VERSION_MASK};
use super::{HEADER_LEN, QueueAddress, Refused, Region, Request};

impl Request {
    pub fn number(&self) -> u32 {
        match self {
            Request::GetFeatures => GET_FEATURES,
            Request::SetFeatures(_) => SET_FEATURES,
            Request::SetOwner => SET_OWNER,
            Request::ResetOwner => RESET_OWNER,
            Request::SetMemTable(_) => SET_MEM_TABLE,
            Request::SetVringNum { .. } => SET_VRING_NUM,
            Request::SetVringAddr(_) => SET_VRING_ADDR,
            Request::SetVringBase { .. } => SET_VRING_BASE,
            Request::GetVringBase { .. } => GET_VRING_BASE,
            Request::SetVringKick { .. } => SET_VRING_KICK,
            Request::SetVringCall { .. } => SET_VRING_CALL,
            Request::SetVringErr { .. } => SET_VRING_ERR,
            Request::GetProtocolFeatures => GET_PROTOCOL_FEATURES,
            Request::SetProtocolFeatures(_) => SET_PROTOCOL_FEATURES,
            Request::GetQueueNum => GET_QUEUE_NUM,
            Request::SetVringEnable { .. } => SET_VRING_ENABLE,
            Request::SetStatus(_) => SET_STATUS,
            Request::GetStatus => GET_STATUS,
        }
    }

    /// Whether the message has a reply of its own; others only if `REPLY_ACK` is negotiated and requested.
    pub fn is_answered(&self) -> bool {
        matches!(
            self,
            Request::GetFeatures
                | Request::GetProtocolFeatures
                | Request::GetQueueNum
                | Request::GetVringBase { .. }
                | Request::GetStatus
        )
    }

    /// A whole message. Descriptors are the caller's to send along: one for each region of a memory table, one
    /// for each doorbell that has one.
    pub fn encode(&self, need_reply: bool) -> Vec<u8> {
        let payload = self.payload();
        let flags = VERSION | if need_reply { NEED_REPLY } else { 0 };
        let words = [self.number(), flags, payload.len() as u32];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        bytes.extend(payload);
        bytes
    }

    fn payload(&self) -> Vec<u8> {
        let state = |queue: u32, value: u32| [queue.to_ne_bytes(), value.to_ne_bytes()].concat();
        let doorbell = |queue: u32, descriptor: bool| {
            let without = if descriptor { 0 } else { NO_DESCRIPTOR };
            (u64::from(queue) | without).to_ne_bytes().to_vec()
        };
        match *self {
            Request::GetFeatures
            | Request::SetOwner
            | Request::ResetOwner
            | Request::GetProtocolFeatures
            | Request::GetQueueNum
            | Request::GetStatus => Vec::new(),
            Request::SetFeatures(bits)
            | Request::SetProtocolFeatures(bits)
            | Request::SetStatus(bits) => bits.to_ne_bytes().to_vec(),
            Request::SetMemTable(ref regions) => table(regions),
            Request::SetVringNum { queue, size } => state(queue, size),
            Request::SetVringBase { queue, base } => state(queue, base),
            Request::GetVringBase { queue } => state(queue, 0),
            Request::SetVringEnable { queue, on } => state(queue, on.into()),
            Request::SetVringAddr(address) => place(address),
            Request::SetVringKick { queue, descriptor }
            | Request::SetVringCall { queue, descriptor }
            | Request::SetVringErr { queue, descriptor } => doorbell(queue, descriptor),
        }
    }

    /// The payload's length of the answer to this message, from the answer's header.
    ///
    /// # Errors
    /// It answers something else, or is of another version.
    pub fn answer_len(&self, bytes: &[u8; HEADER_LEN]) -> Result<usize, Refused> {
        let word =
            |n: usize| u32::from_ne_bytes([bytes[n], bytes[n + 1], bytes[n + 2], bytes[n + 3]]);
        let (request, flags, len) = (word(0), word(4), word(8));
        if flags & VERSION_MASK != VERSION {
            return Err(Refused::Version(flags & VERSION_MASK));
        }
        if request != self.number() || flags & REPLY == 0 || len != 8 {
            let asked = self.number();
            return Err(Refused::OtherAnswer {
                asked,
                request,
                len,
            });
        }
        // Each answer there is has 64 bits.
        Ok(len as usize)
    }
}

fn place(address: QueueAddress) -> Vec<u8> {
    let parts = [address.descriptors, address.used, address.available, 0];
    let mut bytes = [address.queue.to_ne_bytes(), [0; 4]].concat();
    bytes.extend(parts.into_iter().flat_map(u64::to_ne_bytes));
    bytes
}

fn table(regions: &[Region]) -> Vec<u8> {
    let mut bytes = [(regions.len() as u32).to_ne_bytes(), [0; 4]].concat();
    for region in regions {
        let words = [region.guest, region.len, region.user, region.offset];
        bytes.extend(words.into_iter().flat_map(u64::to_ne_bytes));
    }
    bytes
}
