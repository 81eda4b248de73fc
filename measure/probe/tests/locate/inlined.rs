//! Functions whose code begins with what they inline.
use std::hint::black_box;

#[inline(always)]
fn piece(value: &u64) -> u64 {
    value.wrapping_mul(*value)
}

#[inline(never)]
pub fn doubles(value: &u64) -> u64 {
    let square = piece(value);
    square.wrapping_add(3)
}

#[inline(never)]
pub fn sums(values: &[u64; 4]) -> u64 {
    values.iter().map(piece).sum()
}

fn main() {
    black_box(sums as fn(&[u64; 4]) -> u64)(black_box(&[1, 2, 3, 4]));
    black_box(doubles as fn(&u64) -> u64)(black_box(&7));
}
