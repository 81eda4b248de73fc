//! Records as differences to what was to be expected: 2–4 bytes each instead of 16.
//!
//! A record is a control byte and the fields that could not be predicted, little-endian:
//!
//! | bits | field | code 0 | 1 | 2 | 3 |
//! |---|---|---|---|---|---|
//! | 0–1 | TSC minus the previous one (modulo 2^64) | 1 byte | 2 bytes | 3 bytes | 8 bytes |
//! | 2–3 | id and kind | end of the innermost open call | as last time | 2 bytes | 4 bytes |
//! | 4–5 | rsp | as predicted | difference / 8 in 1 byte | in 2 bytes | difference in 4 bytes |
//! | 6–7 | 0 | | | | |
//!
//! Both sides keep the same [`Model`]: *innermost open call* is the top of a small stack of
//! entries; *as last time* is what followed the last time when the previous record and the open
//! call were these. Each predicts the rsp too (that of the entry; the same step as last time). With
//! an id that was not predicted the rsp is expected not to move. Differences are to the previous
//! record; the first one follows a record of zeros.
//!
//! Captured values ([`RecordKind::Value`]) have neither time nor rsp, and disturb neither for the records
//! after them. In the place of the TSC stands the difference of their first field to that of the
//! last value with the same id and capture, folded: the sign in bit 0, the parity in bit 63. In
//! the place of rsp stands their last field; the one before is that of the value directly before,
//! or 0.
//!
//! A batch starts with an empty model, so that each chunk can be read without the others. Nothing
//! here branches on the data: records of unrelated functions would mispredict several times each.
use hopscope_event::record::{LAP_MASK, Record, RecordKind};

/// Most bytes that one record takes.
pub const WORST: usize = 1 + 8 + 4 + 4;
/// Fewest bytes that one record takes.
pub const BEST: usize = 2;

const DEPTH: usize = 64;
const FOLLOWERS: usize = 512;
const VALUES: usize = 256;
const KIND_MASK: u32 = (1 << RecordKind::BITS) - 1;

/// Bytes of a field by its code, one byte each.
const TSC_LEN: u32 = 0x08_03_02_01;
const ID_LEN: u32 = 0x04_02_00_00;
const RSP_LEN: u32 = 0x04_02_01_00;

fn len(table: u32, code: u32) -> usize {
    (table >> (8 * code) & 0xff) as usize
}

/// What encoder and decoder both know before each record.
struct Model {
    previous: Record,
    /// Ends of the innermost open calls; the oldest are forgotten when it is full.
    open: [(u32, u32); DEPTH],
    top: usize,
    /// id and kind, and the step of rsp.
    followers: [(u32, u32); FOLLOWERS],
    /// Last field of the value directly before; 0 when that was no value.
    place: u32,
    /// First fields of the latest values, by id and capture.
    values: [u64; VALUES],
}

/// What the next record may be.
struct Expected {
    end: (u32, u32),
    follower: (u32, u32),
    slot: usize,
}

fn is_value(id_kind: u32) -> bool {
    id_kind & KIND_MASK == RecordKind::Value as u32
}

/// A value by what it is about, whatever the element of an array: what predicts it, and with it
/// what follows.
fn subject(value: Record) -> u32 {
    value.id_kind ^ (value.stack & 0xfff0) << 12
}

fn value_slot(subject: u32) -> usize {
    (subject.wrapping_mul(0x9e37_79b1) >> 24) as usize % VALUES
}

/// Small differences either way become small numbers. Values hold a 1 in bit 0, so their difference
/// is even and the sign goes there; what was in bit 0 goes to the top, which the sign left.
fn fold(difference: u64) -> u64 {
    let sign = (difference as i64 >> 63) as u64;
    ((difference & !1) ^ sign) | difference << 63
}

fn unfold(folded: u64) -> u64 {
    let magnitude = folded & (u64::MAX >> 1);
    let sign = (magnitude & 1).wrapping_neg();
    ((magnitude ^ sign) & !1) | folded >> 63
}

impl Model {
    fn new() -> Model {
        Model {
            previous: Record::default(),
            open: [(0, 0); DEPTH],
            top: 0,
            followers: [(0, 0); FOLLOWERS],
            place: 0,
            values: [0; VALUES],
        }
    }

    fn expected(&self) -> Expected {
        let end = self.open[self.top % DEPTH];
        let situation = self.previous.id_kind ^ end.0.rotate_left(15);
        // Multiplicative hashing (Knuth 6.4) by 2^32 over the golden ratio.
        let slot = (situation.wrapping_mul(0x9e37_79b1) >> 23) as usize % FOLLOWERS;
        let (id_kind, step) = self.followers[slot];
        Expected {
            end,
            follower: (id_kind, self.previous.stack.wrapping_add(step)),
            slot,
        }
    }

    fn learn(&mut self, record: Record, expected: &Expected) {
        self.place = 0;
        let step = record.stack.wrapping_sub(self.previous.stack);
        self.followers[expected.slot] = (record.id_kind, step);
        // Entries push, all known ends pop. What lies above the top is dead, so that storing there
        // costs less than asking whether to.
        const MOVES: [isize; 1 << RecordKind::BITS] = [1, -1, -1, -1, 0, 0, 0, 0];
        let end = record.id_kind | RecordKind::Exit as u32;
        self.open[self.top.wrapping_add(1) % DEPTH] = (end, record.stack);
        let moves = MOVES[(record.id_kind & KIND_MASK) as usize];
        self.top = self.top.wrapping_add_signed(moves);
        self.previous = record;
    }

    /// A value as a record of the usual sort that is as far from the previous one as the value is
    /// from what predicts it.
    #[inline(never)]
    fn stand_in(&self, value: Record) -> Record {
        let before = self.values[value_slot(subject(value))];
        let ticks = fold(value.tsc.wrapping_sub(before));
        let step = value.stack.wrapping_sub(self.place);
        Record {
            tsc: self.previous.tsc.wrapping_add(ticks),
            id_kind: value.id_kind,
            stack: self.previous.stack.wrapping_add(step),
        }
    }

    /// The value that a record encodes, learnt.
    #[inline(never)]
    fn learn_value(&mut self, stand_in: Record, expected: &Expected) -> Record {
        let step = stand_in.stack.wrapping_sub(self.previous.stack);
        let mut value = Record {
            stack: self.place.wrapping_add(step),
            ..stand_in
        };
        let subject = subject(value);
        let last = &mut self.values[value_slot(subject)];
        let ticks = stand_in.tsc.wrapping_sub(self.previous.tsc);
        value.tsc = last.wrapping_add(unfold(ticks));
        *last = value.tsc;
        self.place = value.stack;
        self.followers[expected.slot] = (value.id_kind, step);
        self.previous.id_kind = subject;
        value
    }
}

/// Writes the encoding of `records` into `out` from its byte `begin` on and returns where it ends.
/// `out` grows to the worst case and never shrinks: filling it with zeros for each batch would cost
/// as much as the encoding.
pub fn encode(records: &[Record], out: &mut Vec<u8>, begin: usize) -> usize {
    let worst = begin + records.len() * WORST;
    if out.len() < worst {
        out.resize(worst, 0);
    }
    let mut at = begin;
    let mut model = Model::new();
    for record in records {
        let bytes = out[at..].first_chunk_mut().expect("room for the worst");
        at += encode_one(*record, &mut model, bytes);
    }
    at
}

/// Each field is stored whole and the next one overwrites what is too much.
#[inline(always)]
fn encode_one(record: Record, model: &mut Model, out: &mut [u8; WORST]) -> usize {
    let expected = model.expected();
    let previous = model.previous;
    let is_value = is_value(record.id_kind);
    let record = match is_value {
        true => model.stand_in(record),
        false => record,
    };

    // Only a signal handler's probes make it run backwards: too rare to spend a bit on a sign.
    let ticks = record.tsc.wrapping_sub(previous.tsc);
    let tsc_code = (ticks > 0xff) as u32 + (ticks > 0xffff) as u32 + (ticks > 0xff_ffff) as u32;

    let is_end = record.id_kind == expected.end.0;
    let follows = record.id_kind == expected.follower.0;
    let in_full = 2 + (record.id_kind > 0xffff) as u32;
    let otherwise = if follows { 1 } else { in_full };
    let id_code = if is_end { 0 } else { otherwise };

    let otherwise = if follows {
        expected.follower.1
    } else {
        previous.stack
    };
    let predicted = if is_end { expected.end.1 } else { otherwise };
    let step = record.stack.wrapping_sub(previous.stack) as i32;
    let eighth = step >> 3;
    let is_odd = step as u32 & LAP_MASK != 0;
    let wide = (eighth != eighth as i8 as i32) as u32 + (eighth != eighth as i16 as i32) as u32;
    let in_full = if is_odd { 3 } else { 1 + wide };
    let rsp_code = if record.stack == predicted {
        0
    } else {
        in_full
    };
    let rsp_field = if rsp_code == 3 { step } else { eighth };

    out[0] = (tsc_code | id_code << 2 | rsp_code << 4) as u8;
    out[1..9].copy_from_slice(&ticks.to_le_bytes());
    let at = 1 + len(TSC_LEN, tsc_code);
    out[at..at + 4].copy_from_slice(&record.id_kind.to_le_bytes());
    let at = at + len(ID_LEN, id_code);
    out[at..at + 4].copy_from_slice(&rsp_field.to_le_bytes());
    match is_value {
        true => drop(model.learn_value(record, &expected)),
        false => model.learn(record, &expected),
    }
    at + len(RSP_LEN, rsp_code)
}

/// Decodes exactly `count` records; `None` when the bytes are not an encoding of that many.
pub fn decode(bytes: &[u8], count: usize) -> Option<Vec<Record>> {
    // The bytes there are bound what is allocated.
    if count > bytes.len() / BEST {
        return None;
    }
    let mut records = Vec::with_capacity(count);
    let mut model = Model::new();
    let mut rest = bytes;
    while records.len() < count {
        let (record, used) = match rest.first_chunk() {
            Some(window) => decode_one(window, &mut model)?,
            None => {
                let mut window = [0; WORST];
                window[..rest.len()].copy_from_slice(rest);
                decode_one(&window, &mut model)?
            }
        };
        rest = rest.get(used..)?;
        records.push(record);
    }
    rest.is_empty().then_some(records)
}

/// Stamp of the first of `count` records that has one; `None` where none has, or where the bytes do not decode.
pub fn first_stamp(bytes: &[u8], count: usize) -> Option<u64> {
    let mut model = None;
    let mut rest = bytes;
    for _ in 0..count {
        let mut window = [0; WORST];
        let there = rest.len().min(WORST);
        window[..there].copy_from_slice(&rest[..there]);
        // Most batches do not begin with a value: their first field needs no model.
        if model.is_none()
            && let Some(tsc) = stamp_without_model(&window)
        {
            return Some(tsc);
        }
        let (record, used) = decode_one(&window, model.get_or_insert_with(Model::new))?;
        if !is_value(record.id_kind) {
            return Some(record.tsc);
        }
        rest = rest.get(used..)?;
    }
    None
}

/// Of the first record of a batch, where it is no value.
fn stamp_without_model(window: &[u8; WORST]) -> Option<u64> {
    let control = u32::from(window[0]);
    let (tsc_len, id_code) = (len(TSC_LEN, control & 3), control >> 2 & 3);
    let ticks = u64::from_le_bytes(*window[1..].first_chunk()?) & (u64::MAX >> (64 - 8 * tsc_len));
    let id_field = u32::from_le_bytes(*window[1 + tsc_len..].first_chunk()?);
    (id_code >= 2 && !is_value(id_field)).then_some(ticks)
}

#[inline(always)]
fn decode_one(window: &[u8; WORST], model: &mut Model) -> Option<(Record, usize)> {
    let control = u32::from(window[0]);
    if control >> 6 != 0 {
        return None;
    }
    let (tsc_code, id_code, rsp_code) = (control & 3, control >> 2 & 3, control >> 4);
    let expected = model.expected();
    let previous = model.previous;

    let tsc_len = len(TSC_LEN, tsc_code);
    let ticks = u64::from_le_bytes(*window[1..].first_chunk()?) & (u64::MAX >> (64 - 8 * tsc_len));
    let at = 1 + tsc_len;
    let id_field = u32::from_le_bytes(*window[at..].first_chunk()?);
    let (id_kind, predicted) = match id_code {
        0 => expected.end,
        1 => expected.follower,
        2 => (id_field & 0xffff, previous.stack),
        _ => (id_field, previous.stack),
    };
    let at = at + len(ID_LEN, id_code);
    let rsp_field = u32::from_le_bytes(*window[at..].first_chunk()?);
    let step = match rsp_code {
        0 => predicted.wrapping_sub(previous.stack),
        1 => (rsp_field as i8 as i32 * 8) as u32,
        2 => (rsp_field as i16 as i32 * 8) as u32,
        _ => rsp_field,
    };
    let mut record = Record {
        tsc: previous.tsc.wrapping_add(ticks),
        id_kind,
        stack: previous.stack.wrapping_add(step),
    };
    if is_value(id_kind) {
        record = model.learn_value(record, &expected);
    } else {
        model.learn(record, &expected);
    }
    Some((record, at + len(RSP_LEN, rsp_code)))
}
