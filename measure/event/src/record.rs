//! One probe record: 16 bytes, written by generated code in the measured process.
use serde::{Deserialize, Serialize};

/// Index into the recording's function table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FunctionId(pub u32);

impl FunctionId {
    /// With the kind it is an immediate that is extended by its sign to zeros.
    pub const BITS: u32 = 31 - RecordKind::BITS;
    pub const MAX: u32 = (1 << Self::BITS) - 1;
}

/// What a record stands for. Values are part of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// The function was called; `rsp` points at its return address.
    Entry = 0,
    /// The function returns; `rsp` points at its return address again.
    Exit = 1,
    /// The function leaves by a jump to another function, which will return in its place.
    TailExit = 2,
    /// This activation continues in the original, unmeasured body: its exit will not be seen.
    /// `rsp` is wherever the body had it.
    Escape = 3,
    /// A value captured by a probe, laid out as in [`crate::Value`].
    Value = 4,
}

impl RecordKind {
    pub const BITS: u32 = 3;

    pub const fn from_bits(bits: u32) -> Option<RecordKind> {
        match bits {
            0 => Some(RecordKind::Entry),
            1 => Some(RecordKind::Exit),
            2 => Some(RecordKind::TailExit),
            3 => Some(RecordKind::Escape),
            4 => Some(RecordKind::Value),
            _ => None,
        }
    }
}

/// A probe record as it lies in the ring (little-endian):
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 8 | TSC |
/// | 8 | 4 | function id << 3 \| kind; stored first, with zeros in what follows |
/// | 12 | 4 | low half of rsp, plus the mark of the slot's lap (wrapping); stored last |
///
/// rsp is a multiple of 8 at a call by the ABI, so its three low bits carry the lap: a reader can
/// tell a stored slot from one that was only reserved without any state of its own. Slot `i` of a
/// ring of `n` is stored when `stack - lap_mark(i / n)` is a multiple of 8 ([`Record::stored`]): with
/// the last store it holds this lap's record, whole. Outside rings there is no mark.
///
/// Of kind [`RecordKind::Value`] the first and the last field hold something else, under the same rule:
/// the mark in the low bits of the last ([`crate::value`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Record {
    pub tsc: u64,
    pub id_kind: u32,
    pub stack: u32,
}

/// Bytes from one record to the next; a property of the recording.
pub const STRIDE: usize = 16;
/// The bits of the stack word that carry the mark of a lap.
pub const LAP_MASK: u32 = 7;
/// What it grows by from lap to lap, and what that of the first is.
pub const LAP_STEP: u32 = 2;
pub const LAP_FIRST: u32 = 1;

/// What a slot of this lap adds to its stack word. Odd: zeros are of no lap. A probe stores them first; memory that
/// nobody has written, or that a ring gave back in between, holds them.
pub const fn lap_mark(lap: u64) -> u32 {
    (lap as u32).wrapping_mul(LAP_STEP).wrapping_add(LAP_FIRST)
}

const _: () = {
    assert!(size_of::<Record>() == STRIDE);
    assert!(core::mem::offset_of!(Record, tsc) == 0);
    assert!(core::mem::offset_of!(Record, id_kind) == 8);
    assert!(core::mem::offset_of!(Record, stack) == 12);
};

impl Record {
    pub const fn new(tsc: u64, function: FunctionId, kind: RecordKind, rsp_lo32: u32) -> Record {
        Record {
            tsc,
            id_kind: id_kind(function, kind),
            stack: rsp_lo32 & !LAP_MASK,
        }
    }

    pub const fn function(self) -> FunctionId {
        FunctionId(self.id_kind >> RecordKind::BITS)
    }

    /// `None` if the bits are not a valid record (damaged file, overwritten ring).
    pub const fn kind(self) -> Option<RecordKind> {
        RecordKind::from_bits(self.id_kind & ((1 << RecordKind::BITS) - 1))
    }

    /// The same of another function.
    pub const fn with_function(self, function: FunctionId) -> Record {
        let kind = self.id_kind & ((1 << RecordKind::BITS) - 1);
        Record {
            id_kind: function.0 << RecordKind::BITS | kind,
            ..self
        }
    }

    /// Low 32 bits of rsp, a multiple of 8.
    pub const fn rsp_lo32(self) -> u32 {
        self.stack & !LAP_MASK
    }

    /// The record of a ring slot that was read in lap `lap`, or `None` when that lap's record is
    /// not (completely) there.
    pub const fn stored(raw: Record, lap: u64) -> Option<Record> {
        let rsp_lo32 = raw.stack.wrapping_sub(lap_mark(lap));
        if rsp_lo32 & LAP_MASK != 0 {
            return None;
        }
        Some(Record {
            stack: rsp_lo32,
            ..raw
        })
    }

    pub const fn to_bytes(self) -> [u8; STRIDE] {
        let (t, i, s) = (
            self.tsc.to_le_bytes(),
            self.id_kind.to_le_bytes(),
            self.stack.to_le_bytes(),
        );
        [
            t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], i[0], i[1], i[2], i[3], s[0], s[1],
            s[2], s[3],
        ]
    }

    pub fn from_bytes(b: &[u8; STRIDE]) -> Record {
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        Record {
            tsc: word(0) as u64 | (word(4) as u64) << 32,
            id_kind: word(8),
            stack: word(12),
        }
    }
}

/// The immediate that a probe stores: function and kind in one word.
pub const fn id_kind(function: FunctionId, kind: RecordKind) -> u32 {
    function.0 << RecordKind::BITS | kind as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip() {
        let r = Record::new(
            0x0123_4567_89ab_cdef,
            FunctionId(77),
            RecordKind::TailExit,
            0xdead_beef,
        );
        assert_eq!(Record::from_bytes(&r.to_bytes()), r);
        assert_eq!(r.function(), FunctionId(77));
        assert_eq!(r.kind(), Some(RecordKind::TailExit));
        assert_eq!(r.rsp_lo32(), 0xdead_bee8);
    }

    #[test]
    fn zeros_are_of_no_lap_and_a_record_of_none_that_is_near() {
        let record = Record::new(5, FunctionId(7), RecordKind::Exit, 0xffff_fff8);
        for lap in [0, 1, 2, 3, 7, 8, 1 << 31, (1 << 32) - 1, 1 << 40] {
            assert_eq!(Record::stored(Record::default(), lap), None);
            let raw = Record {
                stack: record.stack.wrapping_add(lap_mark(lap)),
                ..record
            };
            assert_eq!(Record::stored(raw, lap), Some(record));
            for later in 1..4 {
                assert_eq!(Record::stored(raw, lap + later), None);
            }
        }
    }

    #[test]
    fn unknown_kind_is_none() {
        assert_eq!(
            Record {
                tsc: 1,
                id_kind: 7,
                stack: 0
            }
            .kind(),
            None
        );
    }
}
