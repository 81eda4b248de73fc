//! Pointers as unwind tables encode them (`DW_EH_PE_*`).
use crate::Refused;
use crate::bytes::Cursor;

pub const OMIT: u8 = 0xff;
pub const ABSOLUTE: u8 = 0x00;
pub const ULEB128: u8 = 0x01;
pub const INDIRECT: u8 = 0x80;
pub const PCREL_SDATA4: u8 = 0x1b;
pub const DATAREL_SDATA4: u8 = 0x3b;
pub const UDATA4: u8 = 0x03;

const APPLICATION: u8 = 0x70;
const PCREL: u8 = 0x10;

/// A part of the file as it lies in memory.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    pub data: &'a [u8],
    pub svma: u64,
    /// Absolute addresses in it are what the process has there.
    pub absolute_is_final: bool,
}

/// What must hold for pointers of this encoding to be read: they depend on nothing but the place where they lie.
pub fn check(encoding: u8, what: &'static str, absolute_is_final: bool) -> Result<(), Refused> {
    match encoding & APPLICATION {
        PCREL => Ok(()),
        0 if absolute_is_final => Ok(()),
        0 => Err(Refused::Relocated { what }),
        _ => Err(Refused::PointerEncoding { what, encoding }),
    }
}

/// Bytes of a value; `None` where that depends on the value.
pub fn size(encoding: u8) -> Option<u64> {
    match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => Some(8),
        0x02 | 0x0a => Some(2),
        0x03 | 0x0b => Some(4),
        _ => None,
    }
}

/// The bare value, of any format.
pub fn value(encoding: u8, cursor: &mut Cursor) -> Option<u64> {
    Some(match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => u64::from_le_bytes(cursor.array()?),
        0x01 => cursor.uleb128()?,
        0x02 => u16::from_le_bytes(cursor.array()?).into(),
        0x03 => u32::from_le_bytes(cursor.array()?).into(),
        0x09 => cursor.sleb128()? as u64,
        0x0a => i64::from(i16::from_le_bytes(cursor.array()?)) as u64,
        0x0b => i64::from(i32::from_le_bytes(cursor.array()?)) as u64,
        _ => return None,
    })
}

/// An address; zero stands for none in every encoding. The bit for indirection is the caller's.
pub fn address(encoding: u8, bytes: Bytes, cursor: &mut Cursor) -> Option<u64> {
    let field = bytes.svma.wrapping_add(cursor.at() as u64);
    let value = value(encoding, cursor)?;
    Some(match encoding & APPLICATION == PCREL && value != 0 {
        true => value.wrapping_add(field),
        false => value,
    })
}
