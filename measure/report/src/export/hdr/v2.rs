//! A histogram as HdrHistogram's V2 encoding, compressed, in base64
//! (github.com/HdrHistogram/HdrHistogram, `AbstractHistogram.encodeIntoByteBuffer`).
use base64::prelude::{BASE64_STANDARD, Engine};
use hdrhistogram::Histogram;

const V2: u32 = 0x1c84_9303 | 0x10;
const V2_COMPRESSED: u32 = 0x1c84_9304 | 0x10;
const HEADER_BYTES: usize = 40;
/// Of zlib.
const LEVEL: u8 = 6;

pub(super) fn encode(histogram: &Histogram<u64>) -> String {
    let mut counts = Vec::new();
    let mut zeros = 0i64;
    // From 0 to the last value, bin by bin: the order of the array of counts.
    for bin in histogram.iter_all() {
        match bin.count_since_last_iteration() {
            0 => zeros += 1,
            count => {
                if zeros > 0 {
                    put(&mut counts, -zeros);
                    zeros = 0;
                }
                put(&mut counts, count as i64);
            }
        }
    }
    let mut plain = Vec::with_capacity(HEADER_BYTES + counts.len());
    plain.extend(V2.to_be_bytes());
    plain.extend((counts.len() as u32).to_be_bytes());
    // Offset of the array, always 0.
    plain.extend(0u32.to_be_bytes());
    plain.extend(u32::from(histogram.sigfig()).to_be_bytes());
    plain.extend(histogram.low().to_be_bytes());
    plain.extend(histogram.high().to_be_bytes());
    // Ratio of the values to what they stand for.
    plain.extend(1.0f64.to_be_bytes());
    plain.extend(counts);
    let small = miniz_oxide::deflate::compress_to_vec_zlib(&plain, LEVEL);
    let mut whole = Vec::with_capacity(8 + small.len());
    whole.extend(V2_COMPRESSED.to_be_bytes());
    whole.extend((small.len() as u32).to_be_bytes());
    whole.extend(small);
    BASE64_STANDARD.encode(whole)
}

/// Zig-zag, 7 bits a byte, lowest first; a ninth byte has all its 8 bits.
fn put(out: &mut Vec<u8>, n: i64) {
    let mut n = (n << 1 ^ n >> 63) as u64;
    for _ in 0..8 {
        if n < 0x80 {
            out.push(n as u8);
            return;
        }
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[cfg(test)]
mod tests {
    use super::put;

    #[test]
    fn numbers_take_nine_bytes_at_most() {
        let bytes = |n: i64| {
            let mut out = Vec::new();
            put(&mut out, n);
            out
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(-1), [1]);
        assert_eq!(bytes(64), [0x80, 1]);
        assert_eq!(bytes(i64::MIN), [0xff; 9]);
    }
}
