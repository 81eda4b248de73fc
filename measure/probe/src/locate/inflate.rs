//! Contents of compressed sections. The size that a section says it inflates to is only believed
//! within what compression can do and memory allows.
use miniz_oxide::inflate::decompress_slice_iter_to_slice;
use object::{CompressionFormat, ObjectSection};
use std::borrow::Cow;

/// DWARF is compressed to a fifth or so, single sections to a twentieth; deflate reaches 1,032.
const RATIO_MAX: u64 = 100;
/// Below this any ratio is allowed.
const FREE_BYTES: u64 = 1 << 20;
/// Of all sections of a file together.
pub(super) const INFLATED_MAX_BYTES: u64 = 4 << 30;

/// The section as it is, or inflated. `left` is what may still be inflated of this file. zstd is
/// not read.
///
/// # Errors
/// Why the section cannot be used, in words.
pub(super) fn content<'d>(
    section: &impl ObjectSection<'d>,
    left: &mut u64,
) -> Result<Cow<'d, [u8]>, String> {
    let raw = section.compressed_data().map_err(|e| e.to_string())?;
    match raw.format {
        CompressionFormat::None => Ok(Cow::Borrowed(raw.data)),
        CompressionFormat::Zlib => inflate(raw.data, raw.uncompressed_size, left).map(Cow::Owned),
        CompressionFormat::Zstandard => Err("zstd-compressed sections are not read".into()),
        _ => Err("of a compression that is not known".into()),
    }
}

fn inflate(data: &[u8], bytes: u64, left: &mut u64) -> Result<Vec<u8>, String> {
    let compressed = data.len() as u64;
    if bytes > compressed.saturating_mul(RATIO_MAX).max(FREE_BYTES) {
        return Err(format!(
            "{compressed} bytes that say they inflate to {bytes}; up to {RATIO_MAX} times as many are believed"
        ));
    }
    *left = left.checked_sub(bytes).ok_or_else(|| {
        format!("more than {INFLATED_MAX_BYTES} bytes inflated of one file; no more are read")
    })?;
    let size = usize::try_from(bytes).map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    out.try_reserve_exact(size).map_err(|e| e.to_string())?;
    out.resize(size, 0);
    match decompress_slice_iter_to_slice(&mut out, std::iter::once(data), true, false) {
        Ok(whole) if whole == size => Ok(out),
        Ok(short) => Err(format!("inflates to {short} bytes, and says {bytes}")),
        Err(status) => Err(format!("does not inflate to {bytes} bytes ({status:?})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec_zlib;

    fn inflated(data: &[u8], bytes: u64) -> Result<Vec<u8>, String> {
        inflate(data, bytes, &mut INFLATED_MAX_BYTES.clone())
    }

    #[test]
    fn what_a_section_names_is_held_against_what_it_has() {
        let text: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
        let packed = compress_to_vec_zlib(&text, 6);
        assert_eq!(inflated(&packed, 200_000).as_deref(), Ok(&text[..]));
        for (named, why) in [
            (199_999, "does not inflate"),
            (200_001, "inflates to 200000"),
            (u64::MAX, "are believed"),
            (1 << 40, "are believed"),
        ] {
            let refused = inflated(&packed, named).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(inflated(b"no zlib", 10).is_err());
    }

    #[test]
    fn sections_share_the_limit_of_their_file() {
        let packed = compress_to_vec_zlib(&[0; 1000], 6);
        let mut left = 1500;
        assert!(inflate(&packed, 1000, &mut left).is_ok());
        let refused = inflate(&packed, 1000, &mut left).unwrap_err();
        assert!(refused.contains("of one file"), "{refused}");
    }
}
