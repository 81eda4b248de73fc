//! Integers of variable length (LEB128): 7 bits a byte, lowest first, bit 7 set where more follow.

pub(crate) const VARINT_MAX: usize = 10;

/// Small numbers of either sign become small: 0, −1, 1, −2 … become 0, 1, 2, 3 …
pub(crate) fn fold(n: u64) -> u64 {
    n << 1 ^ (n as i64 >> 63) as u64
}

pub(crate) fn unfold(n: u64) -> u64 {
    n >> 1 ^ (n & 1).wrapping_neg()
}

pub(crate) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// `None` at the end of the bytes, or when the number has more than 64 bits.
pub(crate) fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        let part = u64::from(byte & 0x7f);
        n |= part.checked_shl(shift)?;
        if byte < 0x80 {
            return (part << shift >> shift == part).then_some(n);
        }
    }
    None
}
