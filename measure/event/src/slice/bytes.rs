//! The record as bytes: as delivered by the kernel and stored in files, little-endian, without gaps.
use super::{Point, SliceFlags, SliceRecord, StampWord};
use alloc::vec::Vec;

trait Field: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// Takes from the front of `bytes`, which has enough.
    fn take(bytes: &mut &[u8]) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(bytes: &mut &[u8]) -> $type {
                <$type>::from_le_bytes(Field::take(bytes))
            }
        })*
    };
}

integers!(u8, u16, u32, u64, i32);

impl<const N: usize> Field for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn take(bytes: &mut &[u8]) -> [u8; N] {
        let (field, rest) = bytes.split_first_chunk().expect("a whole record");
        *bytes = rest;
        *field
    }
}

impl Field for SliceFlags {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    fn take(bytes: &mut &[u8]) -> SliceFlags {
        SliceFlags(Field::take(bytes))
    }
}

impl Field for [StampWord; Point::MAX] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|word| word.0.put(out));
    }
    fn take(bytes: &mut &[u8]) -> [StampWord; Point::MAX] {
        core::array::from_fn(|_| StampWord(Field::take(bytes)))
    }
}

// Fields of a literal are evaluated in the order in which they stand.
macro_rules! record {
    ($($field:ident),* $(,)?) => {
        impl SliceRecord {
            pub fn to_bytes(&self) -> [u8; SliceRecord::BYTES] {
                let mut out = Vec::with_capacity(SliceRecord::BYTES);
                $(self.$field.put(&mut out);)*
                out.try_into().expect("fields make up the record")
            }

            /// Any bytes are a record; their meaning is not checked.
            pub fn from_bytes(bytes: &[u8; SliceRecord::BYTES]) -> SliceRecord {
                let mut rest = bytes.as_slice();
                SliceRecord { $($field: Field::take(&mut rest)),* }
            }
        }
    };
}

record! {
    id, parent, t0_ns, tx_cookie, rx_cookie, tx_tgid, tx_tid, rx_tgid, rx_tid, tx_ifindex,
    rx_ifindex, tx_netns, rx_netns, source, destination, source_port, destination_port, tcp_seq,
    tcp_ack, payload, ip_len, tcp_window, tcp_flags, protocol, family, stamps_taken, drop_reason,
    flags, tx_call_seq, rx_call_seq, rx_returned, segments, ip_id, tx_call_len, reserved, tx_comm,
    rx_comm, stamps,
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn every_byte_has_its_place() {
        let bytes: [u8; SliceRecord::BYTES] = core::array::from_fn(|at| (at * 7 + at / 37) as u8);
        let record = SliceRecord::from_bytes(&bytes);
        assert_eq!(record.to_bytes(), bytes);
        let word = |at: usize| u32::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        assert_eq!(record.tcp_seq, word(offset_of!(SliceRecord, tcp_seq)));
        assert_eq!(record.flags.0, word(offset_of!(SliceRecord, flags)));
        assert_eq!(
            record.rx_returned as u32,
            word(offset_of!(SliceRecord, rx_returned))
        );
        assert_eq!(record.stamps[23].0 as u32, word(384 - 8));
    }
}
