//! Layout of a `.hop` file, little-endian throughout; see docs/trace-format.md.
pub const MAGIC: [u8; 8] = *b"HOPTRACE";
/// A reader refuses another major version and reads any minor one.
pub const MAJOR: u16 = 1;
pub const MINOR: u16 = 0;
/// magic, major, minor, and a number that shows the byte order
pub const FILE_HEADER_BYTES: usize = 16;
pub const BYTE_ORDER: u32 = 0x0102_0304;

/// type, length of the payload, CRC-32 of type, length and payload
pub const CHUNK_HEADER_BYTES: usize = 12;
/// thread, count, first index, lost before, torn before
pub const BATCH_HEADER_BYTES: usize = 32;
pub const PAYLOAD_MAX: usize = 64 << 20;
/// Larger batches are split.
pub const BATCH_RECORDS_MAX: usize = 1 << 16;

macro_rules! chunk_types {
    ($($name:ident = $text:literal),* $(,)?) => {
        $(pub const $name: u32 = u32::from_le_bytes(*$text);)*
    };
}

// All but RECORDS hold JSON.
chunk_types! {
    META = b"meta",
    PROCESS = b"proc",
    THREAD = b"thrd",
    MODULES = b"mods",
    FUNCTIONS = b"func",
    REFUSALS = b"refu",
    CLOCK = b"clck",
    RECORDS = b"recs",
    SUMMARY = b"summ",
}

pub fn checksum(kind: u32, payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&kind.to_le_bytes());
    crc.update(&(payload.len() as u32).to_le_bytes());
    crc.update(payload);
    crc.finalize()
}
