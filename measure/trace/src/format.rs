//! Layout of a `.hop` file, little-endian throughout; see docs/trace-format.md.
pub const MAGIC: [u8; 8] = *b"HOPTRACE";
/// A reader refuses another major version and reads any minor one.
pub const MAJOR: u16 = 1;
/// 1: streams and stamps. 2: captured values; context switches, and recordings of a choice.
/// 3: slices of the kernel's path. 4: recordings within a budget. 5: counters. 6: callees.
pub const MINOR: u16 = 6;
/// magic, major, minor, and a number that shows the byte order
pub const FILE_HEADER_BYTES: usize = 16;
pub const BYTE_ORDER: u32 = 0x0102_0304;

/// type, length of the payload, CRC-32 of the payload, CRC-32 of these twelve bytes
pub const CHUNK_HEADER_BYTES: usize = 16;
/// thread, count, first index, lost before, torn before
pub const BATCH_HEADER_BYTES: usize = 32;
pub const PAYLOAD_MAX: usize = 64 << 20;
/// Larger batches are split.
pub const BATCH_RECORDS_MAX: usize = 1 << 16;
/// stream, count, unwritten before, lost, duplicate
pub const STAMPS_HEADER_BYTES: usize = 24;
/// Larger batches are split.
pub const BATCH_STAMPS_MAX: usize = 1 << 16;
/// thread, count, lost before
pub const SWITCHES_HEADER_BYTES: usize = 16;
/// Larger batches are split.
pub const BATCH_SWITCHES_MAX: usize = 1 << 16;

/// count, how many with bytes
pub const SLICES_HEADER_BYTES: usize = 8;
/// Larger batches are split.
pub const BATCH_SLICES_MAX: usize = 1 << 14;
/// So are those with more bytes of packets.
pub const BATCH_PACKET_BYTES_MAX: usize = 8 << 20;

macro_rules! chunk_types {
    ($($name:ident = $text:literal),* $(,)?) => {
        $(pub const $name: u32 = u32::from_le_bytes(*$text);)*
    };
}

// All but RECORDS, STAMPS, SWITCHES and SLICES hold JSON.
chunk_types! {
    META = b"meta",
    PROCESS = b"proc",
    THREAD = b"thrd",
    MODULES = b"mods",
    FUNCTIONS = b"func",
    REFUSALS = b"refu",
    CLOCK = b"clck",
    CAPTURES = b"capt",
    COUNTERS = b"cntr",
    RECORDS = b"recs",
    STREAM = b"strm",
    STAMPS = b"stmp",
    OFF_CPU = b"offc",
    SWITCHES = b"swit",
    COST = b"cost",
    THIN = b"thin",
    BUDGET = b"budg",
    TRIGGER = b"trig",
    FLIGHT = b"flig",
    SLICE = b"slic",
    SLICES = b"slrc",
    SLICE_SUMMARY = b"slsu",
    SUMMARY = b"summ",
}

/// The header has a checksum of its own: its length can be trusted when the payload is damaged, and
/// a reader that lost its way finds the next header without reading payloads.
pub struct ChunkHeader {
    pub kind: u32,
    pub len: u32,
    pub payload_crc: u32,
}

impl ChunkHeader {
    pub fn of(kind: u32, payload: &[u8]) -> ChunkHeader {
        ChunkHeader {
            kind,
            len: payload.len() as u32,
            payload_crc: crc32fast::hash(payload),
        }
    }

    pub fn to_bytes(&self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..12]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` when the checksum is wrong or the length more than a chunk may have.
    pub fn from_bytes(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Option<ChunkHeader> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let (kind, len, payload_crc) = (word(0), word(4), word(8));
        let is_sound = len as usize <= PAYLOAD_MAX && crc32fast::hash(&bytes[..12]) == word(12);
        is_sound.then_some(ChunkHeader {
            kind,
            len,
            payload_crc,
        })
    }
}
