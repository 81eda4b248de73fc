//! Stamps of packets as they lie in a chunk: a fixed head, then one row a packet, 5–12 bytes each
//! instead of 40.
//!
//! A row is a control byte and numbers as variable-length integers (LEB128: 7 bits a byte, lowest
//! first, bit 7 set where more follow; at most 10 bytes). *Signed* ones are folded first
//! (`n << 1 ^ n >> 63`: 0, −1, 1, −2 …).
//!
//! | control bit | set | clear |
//! |---|---|---|
//! | 0–3 | late, duplicate, reordered, corrupted | |
//! | 4 | the packet is lost | |
//! | 5 | sequence number is the previous one plus 1 | signed: minus the previous one |
//! | 6 | flow is the previous one plus 1 | signed: minus the previous one |
//! | 7 | length is the previous one | the length |
//!
//! After what bits 5–7 ask for follow, all signed: intended minus previous intended minus the step
//! before that; sent minus intended; and received minus sent, unless the packet is lost. All of it
//! modulo 2^64 (flow: 2^32). Each batch starts from zeros, with −1 as the previous sequence number
//! and flow, so that it can be read without the others.
use crate::format::STAMPS_HEADER_BYTES;
use crate::varint::{VARINT_MAX, fold, put, take, unfold};
use hopscope_event::{Stamp, StampFlags, StreamIx, Tsc};

/// Most bytes that one row takes.
const WORST: usize = 1 + 6 * VARINT_MAX;
/// Fewest bytes that one row takes: a lost packet.
const BEST: usize = 3;

const LOST: u8 = 1 << 4;
const NEXT_SEQ: u8 = 1 << 5;
const NEXT_FLOW: u8 = 1 << 6;
const SAME_LEN: u8 = 1 << 7;

/// The head of a batch of rows, readable without decoding them.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | stream |
/// | 4 | 4 | number of rows |
/// | 8 | 8 | rows that were not written before the first, because the writer was too slow |
/// | 16 | 4 | rows of lost packets |
/// | 20 | 4 | rows of further arrivals (duplicates) |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampsHead {
    pub stream: StreamIx,
    pub rows: u32,
    pub unwritten_before: u64,
    pub lost: u32,
    pub duplicate: u32,
}

impl StampsHead {
    pub(crate) fn of(stream: StreamIx, unwritten_before: u64, stamps: &[Stamp]) -> StampsHead {
        let count = |is: &dyn Fn(&Stamp) -> bool| stamps.iter().filter(|s| is(s)).count() as u32;
        StampsHead {
            stream,
            rows: stamps.len() as u32,
            unwritten_before,
            lost: count(&|s| s.received.is_none()),
            duplicate: count(&|s| s.flags.contains(StampFlags::DUPLICATE)),
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; STAMPS_HEADER_BYTES] {
        let mut bytes = [0; STAMPS_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.stream.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.rows.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.unwritten_before.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.lost.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.duplicate.to_le_bytes());
        bytes
    }

    /// `None` when `payload` is shorter than a head, or than its number of rows allows.
    pub(crate) fn of_payload(payload: &[u8]) -> Option<StampsHead> {
        let (head, rows) = payload.split_first_chunk::<STAMPS_HEADER_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let head = StampsHead {
            stream: StreamIx(word(0) as u32),
            rows: (word(0) >> 32) as u32,
            unwritten_before: word(8),
            lost: word(16) as u32,
            duplicate: (word(16) >> 32) as u32,
        };
        (head.rows as usize <= rows.len() / BEST).then_some(head)
    }
}

/// Rows of one stream, in the order in which the fate of each packet was known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedStamps {
    pub stream: StreamIx,
    pub unwritten_before: u64,
    pub stamps: Vec<Stamp>,
}

impl OwnedStamps {
    /// `None` when the rows do not decode, or are not those that the head counts.
    pub(crate) fn of_payload(payload: &[u8]) -> Option<OwnedStamps> {
        let head = StampsHead::of_payload(payload)?;
        let stamps = decode(&payload[STAMPS_HEADER_BYTES..], head.rows as usize)?;
        let counted = StampsHead::of(head.stream, head.unwritten_before, &stamps);
        (counted == head).then_some(OwnedStamps {
            stream: head.stream,
            unwritten_before: head.unwritten_before,
            stamps,
        })
    }
}

/// What both sides know before each row.
struct Model {
    previous: Stamp,
    step: u64,
}

impl Model {
    fn new() -> Model {
        let previous = Stamp {
            seq: u64::MAX,
            flow: u32::MAX,
            ..Stamp::default()
        };
        Model { previous, step: 0 }
    }

    fn learn(&mut self, stamp: Stamp) {
        self.step = stamp.intended.0.wrapping_sub(self.previous.intended.0);
        self.previous = stamp;
    }

    fn expected(&self) -> u64 {
        self.previous.intended.0.wrapping_add(self.step)
    }
}

/// Appends the encoding of `stamps`.
pub fn encode(stamps: &[Stamp], out: &mut Vec<u8>) {
    let mut model = Model::new();
    out.reserve(stamps.len() * WORST / 4);
    for stamp in stamps {
        let previous = model.previous;
        let seq = stamp.seq.wrapping_sub(previous.seq);
        let flow = stamp.flow.wrapping_sub(previous.flow);
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        out.push(
            stamp.flags.bits()
                | bit(stamp.received.is_none(), LOST)
                | bit(seq == 1, NEXT_SEQ)
                | bit(flow == 1, NEXT_FLOW)
                | bit(stamp.len == previous.len, SAME_LEN),
        );
        if seq != 1 {
            put(out, fold(seq));
        }
        if flow != 1 {
            put(out, fold(flow as i32 as u64));
        }
        if stamp.len != previous.len {
            put(out, u64::from(stamp.len));
        }
        put(out, fold(stamp.intended.0.wrapping_sub(model.expected())));
        put(out, fold(stamp.sent.0.wrapping_sub(stamp.intended.0)));
        if let Some(received) = stamp.received {
            put(out, fold(received.0.wrapping_sub(stamp.sent.0)));
        }
        model.learn(*stamp);
    }
}

/// Decodes exactly `count` rows; `None` when the bytes are not an encoding of that many.
pub fn decode(bytes: &[u8], count: usize) -> Option<Vec<Stamp>> {
    // The bytes there are bound what is allocated.
    if count > bytes.len() / BEST {
        return None;
    }
    let mut stamps = Vec::with_capacity(count);
    let mut model = Model::new();
    let mut rest = bytes;
    while stamps.len() < count {
        let stamp = decode_one(&mut rest, &model)?;
        model.learn(stamp);
        stamps.push(stamp);
    }
    rest.is_empty().then_some(stamps)
}

fn decode_one(rest: &mut &[u8], model: &Model) -> Option<Stamp> {
    let (&control, after) = rest.split_first()?;
    *rest = after;
    let previous = model.previous;
    let seq = match control & NEXT_SEQ {
        0 => unfold(take(rest)?),
        _ => 1,
    };
    let flow = match control & NEXT_FLOW {
        0 => i32::try_from(unfold(take(rest)?) as i64).ok()? as u32,
        _ => 1,
    };
    let len = match control & SAME_LEN {
        0 => u32::try_from(take(rest)?).ok()?,
        _ => previous.len,
    };
    let intended = model.expected().wrapping_add(unfold(take(rest)?));
    let sent = intended.wrapping_add(unfold(take(rest)?));
    let received = match control & LOST {
        0 => Some(Tsc(sent.wrapping_add(unfold(take(rest)?)))),
        _ => None,
    };
    Some(Stamp {
        seq: previous.seq.wrapping_add(seq),
        flow: previous.flow.wrapping_add(flow),
        len,
        intended: Tsc(intended),
        sent: Tsc(sent),
        received,
        flags: StampFlags::from_bits(control & 0xf)?,
    })
}
