//! Bytes read with bounds, and written, in the formats of DWARF.

/// Reads from the front; `None` at the end.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn u8(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.bytes.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(*bytes)
    }

    /// Values of more than 64 bits are none.
    pub fn uleb128(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            match shift < 64 && (bits << shift) >> shift == bits {
                true => value |= bits << shift,
                false if bits == 0 => {}
                false => return None,
            }
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// At most ten bytes, as many as 64 bits need.
    pub fn sleb128(&mut self) -> Option<i64> {
        let mut value = 0i64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let unused = 64 - (shift + 7).min(64);
                return Some(value << unused >> unused);
            }
        }
        None
    }
}

pub fn uleb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn sleb128(out: &mut Vec<u8>, mut value: i64) {
    while !(-0x40..0x40).contains(&value) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(unsigned: u64, signed: i64, shift in 0..64u32) {
            let (unsigned, signed) = (unsigned >> shift, signed >> shift);
            let mut out = Vec::new();
            uleb128(&mut out, unsigned);
            sleb128(&mut out, signed);
            let mut cursor = Cursor::new(&out, 0);
            prop_assert_eq!(cursor.uleb128(), Some(unsigned));
            prop_assert_eq!(cursor.sleb128(), Some(signed));
            prop_assert_eq!((cursor.at(), cursor.u8()), (out.len(), None));
        }
    }

    #[test]
    fn longer_than_64_bits_is_nothing() {
        let padded = [[0x81].as_slice(), &[0x80; 12], &[0]].concat();
        assert_eq!(Cursor::new(&padded, 0).uleb128(), Some(1));
        let wide = [[0x80; 9].as_slice(), &[2]].concat();
        assert_eq!(Cursor::new(&wide, 0).uleb128(), None);
        assert_eq!(Cursor::new(&[0x80; 20], 0).sleb128(), None);
    }
}
