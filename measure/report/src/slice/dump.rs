//! Captured bytes in tcpdump's layout.
use hopscope_event::slice::SliceBytes;
use std::io::{self, Write};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dump {
    Hex,
    HexAscii,
    Ascii,
}

const ROW: usize = 16;
/// Eight groups of four digits with a blank between.
const HEX_WIDTH: usize = 39;

fn plain(byte: u8) -> char {
    match byte {
        b' '..=b'~' => byte as char,
        _ => '.',
    }
}

pub(super) fn write(
    out: &mut impl Write,
    packet: &SliceBytes,
    dump: Dump,
    with_link: bool,
) -> io::Result<()> {
    let from = if with_link { 0 } else { packet.link_len.into() };
    let bytes = packet.bytes.get(from..).unwrap_or_default();
    if dump == Dump::Ascii {
        let text: String = bytes
            .iter()
            .map(|byte| if *byte == b'\n' { '\n' } else { plain(*byte) })
            .collect();
        return writeln!(out, "{text}");
    }
    for (row, bytes) in bytes.chunks(ROW).enumerate() {
        let groups: Vec<String> = bytes
            .chunks(2)
            .map(|pair| pair.iter().map(|b| format!("{b:02x}")).collect())
            .collect();
        let hex = groups.join(" ");
        write!(out, "\t0x{:04x}:  ", row * ROW)?;
        match dump {
            Dump::Hex => writeln!(out, "{hex}")?,
            _ => {
                let text: String = bytes.iter().map(|b| plain(*b)).collect();
                writeln!(out, "{hex:HEX_WIDTH$}  {text}")?;
            }
        }
    }
    Ok(())
}

/// Source and destination of an Ethernet header, and the length of the frame.
pub(super) fn link(packet: Option<&SliceBytes>) -> String {
    let header = packet.and_then(|p| match p.link_len {
        14.. => p.bytes.get(..14).map(|bytes| (bytes, p.original_len)),
        _ => None,
    });
    let Some((bytes, length)) = header else {
        return "link header not captured".to_owned();
    };
    let address = |at: usize| {
        let parts: Vec<_> = bytes[at..at + 6]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        parts.join(":")
    };
    let kind = u16::from_be_bytes([bytes[12], bytes[13]]);
    let name = match kind {
        0x0800 => "IPv4",
        0x86dd => "IPv6",
        0x8100 => "802.1Q",
        _ => "unknown",
    };
    format!(
        "{} > {}, ethertype {name} (0x{kind:04x}), length {length}",
        address(6),
        address(0)
    )
}
