//! Delta encoding of records: 3–5 bytes each instead of 16.
//!
//! A record is a control byte and the fields that could not be predicted:
//!
//! | bits | meaning |
//! |---|---|
//! | 0–1 | size of the TSC difference to the previous record, zigzag: 1, 2, 4 or 8 bytes |
//! | 2–3 | id and kind: 0 predicted, else 1, 2 or 4 bytes |
//! | 4–5 | rsp: 0 predicted, 1: 1 byte of difference / 8, 2: 2 bytes of difference / 8, 3: 4 bytes of difference |
//!
//! Prediction: the next record is the exit of the innermost open entry, with its rsp; an rsp that is
//! not predicted is told as the difference to the one before. Both sides keep the same small stack.
use hopscope_event::record::{FunctionId, Kind, Record, id_kind};

const DEPTH: usize = 64;
/// Most bytes that one record takes.
pub const WORST: usize = 1 + 8 + 4 + 4;

/// What encoder and decoder both know before each record.
struct Model {
    tsc: u64,
    rsp: u32,
    /// Innermost open entries; the oldest are forgotten when it is full.
    open: [(u32, u32); DEPTH],
    top: usize,
}

impl Model {
    fn new() -> Model {
        Model { tsc: 0, rsp: 0, open: [(id_kind(FunctionId(0), Kind::Exit), 0); DEPTH], top: 0 }
    }

    fn predicted(&self) -> (u32, u32) {
        self.open[self.top % DEPTH]
    }

    fn update(&mut self, r: &Record) {
        self.tsc = r.tsc;
        self.rsp = r.stack;
        const KIND: u32 = (1 << Kind::BITS) - 1;
        match r.id_kind & KIND {
            k if k == Kind::Entry as u32 => {
                self.top = self.top.wrapping_add(1);
                self.open[self.top % DEPTH] = (r.id_kind | Kind::Exit as u32, r.stack);
            }
            k if k == Kind::Exit as u32 || k == Kind::TailExit as u32 => {
                self.top = self.top.wrapping_sub(1);
            }
            _ => {}
        }
    }
}

fn zigzag(delta: i64) -> u64 {
    ((delta << 1) ^ (delta >> 63)) as u64
}

fn unzigzag(z: u64) -> i64 {
    (z >> 1) as i64 ^ -((z & 1) as i64)
}

/// Appends the encoding of `records` to `out`.
pub fn encode(records: &[Record], out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + records.len() * WORST, 0);
    let mut at = begin;
    let mut model = Model::new();
    for r in records {
        let bytes = &mut out[at..at + WORST];
        at += encode_one(r, &mut model, bytes.try_into().expect("WORST bytes"));
    }
    out.truncate(at);
}

/// Fields are stored with fixed-size writes (the next field overwrites what is too much), so that
/// no length is a branch.
fn encode_one(r: &Record, model: &mut Model, out: &mut [u8; WORST]) -> usize {
    let z = zigzag(r.tsc.wrapping_sub(model.tsc) as i64);
    let tsc_code = match z {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        0x1_0000..=0xffff_ffff => 2,
        _ => 3,
    };
    out[1..9].copy_from_slice(&z.to_le_bytes());
    let mut at = 1 + (1usize << tsc_code);
    let (id_kind, rsp) = model.predicted();
    let id_code = match r.id_kind {
        same if same == id_kind => 0,
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 3,
    };
    out[at..at + 4].copy_from_slice(&r.id_kind.to_le_bytes());
    at += [0, 1, 2, 4][id_code];
    let delta = r.stack.wrapping_sub(model.rsp) as i32;
    let eighth = delta >> 3;
    let rsp_code = if id_code == 0 && r.stack == rsp {
        0
    } else if delta & 7 == 0 && i8::try_from(eighth).is_ok() {
        1
    } else if delta & 7 == 0 && i16::try_from(eighth).is_ok() {
        2
    } else {
        3
    };
    let field = if rsp_code == 3 { delta } else { eighth };
    out[at..at + 4].copy_from_slice(&field.to_le_bytes());
    at += [0, 1, 2, 4][rsp_code];
    out[0] = (tsc_code | id_code << 2 | rsp_code << 4) as u8;
    model.update(r);
    at
}

/// Decodes exactly `count` records, or `None` when the bytes are not an encoding of that many.
pub fn decode(mut bytes: &[u8], count: usize) -> Option<Vec<Record>> {
    // Every record takes at least two bytes: the payload bounds what is allocated.
    if count > bytes.len() / 2 {
        return None;
    }
    let mut records = Vec::with_capacity(count);
    let mut model = Model::new();
    for _ in 0..count {
        let control = take(&mut bytes, 1)?;
        let delta = unzigzag(take(&mut bytes, 1 << (control & 3))?);
        let (predicted, predicted_rsp) = model.predicted();
        let id_kind = match control >> 2 & 3 {
            0 => predicted,
            n => take(&mut bytes, [0, 1, 2, 4][n as usize])? as u32,
        };
        let stack = match control >> 4 & 3 {
            0 => predicted_rsp,
            1 => model.rsp.wrapping_add((take(&mut bytes, 1)? as i8 as i32 * 8) as u32),
            2 => model.rsp.wrapping_add((take(&mut bytes, 2)? as i16 as i32 * 8) as u32),
            _ => model.rsp.wrapping_add(take(&mut bytes, 4)? as u32),
        };
        let record = Record { tsc: model.tsc.wrapping_add(delta as u64), id_kind, stack };
        model.update(&record);
        records.push(record);
    }
    bytes.is_empty().then_some(records)
}

fn take(bytes: &mut &[u8], len: usize) -> Option<u64> {
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    let mut word = [0u8; 8];
    word[..len].copy_from_slice(head);
    Some(u64::from_le_bytes(word))
}
