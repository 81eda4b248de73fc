//! A recording, in whichever of its two formats.
use crate::error::{Context, Result};
use crate::slice_file::private;
use hopscope_trace::format::MAGIC;
use hopscope_trace::{Damage, TraceError, TraceReader};
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// What a pcapng file begins with, whatever its byte order.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

pub struct Opened {
    pub reader: TraceReader,
    /// What of a pcapng file could not be read.
    loss: Option<String>,
}

impl Opened {
    /// What of the file is lost, in words.
    pub fn damage(&self) -> Option<String> {
        let damage = self.reader.tables().damage.as_ref();
        let damage = damage.map(damage_text);
        match (&self.loss, damage) {
            (Some(loss), Some(damage)) => Some(format!("{loss}; {damage}")),
            (loss, damage) => loss.clone().or(damage),
        }
    }
}

/// `-` is stdin.
///
/// # Errors
/// It cannot be read, or is neither a trace nor a capture that hopscope wrote.
pub fn open(path: &Path) -> Result<Opened> {
    let name = path.display().to_string();
    let path = match name.as_str() {
        "-" => Path::new("/dev/stdin"),
        _ => path,
    };
    let is_file = std::fs::metadata(path).is_ok_and(|m| m.is_file());
    if is_file {
        let mut file = File::open(path).context(name.as_str())?;
        let mut magic = Vec::new();
        (&mut file)
            .take(PCAPNG.len() as u64)
            .read_to_end(&mut magic)?;
        if magic == PCAPNG {
            let whole = std::io::Cursor::new(magic).chain(BufReader::new(file));
            return of_capture(&name, whole);
        }
        return of_trace(&name, TraceReader::open(path));
    }
    let kind = std::fs::metadata(path).map(|m| m.file_type());
    if !kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device() || kind.is_socket()) {
        // Refused there, and said why.
        return of_trace(&name, TraceReader::open(path));
    }
    let mut bytes = Vec::new();
    let mut pipe = File::open(path).context(name.as_str())?;
    (&mut pipe)
        .take(MAGIC.len() as u64)
        .read_to_end(&mut bytes)
        .context(name.as_str())?;
    // Of what is neither nothing more is read: it may have no end.
    if bytes.starts_with(&PCAPNG) || bytes == MAGIC {
        pipe.read_to_end(&mut bytes).context(name.as_str())?;
    }
    if bytes.starts_with(&PCAPNG) {
        of_capture(&name, &bytes[..])
    } else {
        of_trace(&name, TraceReader::from_bytes(bytes))
    }
}

fn of_trace(name: &str, reader: std::result::Result<TraceReader, TraceError>) -> Result<Opened> {
    let reader = match reader {
        // It names the file itself.
        Err(error @ TraceError::Open { .. }) => return Err(error.into()),
        other => other.context(name)?,
    };
    Ok(Opened { reader, loss: None })
}

fn of_capture(name: &str, source: impl Read) -> Result<Opened> {
    let (trace, loss) = private::trace_of(name, source)?;
    let reader = TraceReader::from_bytes(trace).context(name)?;
    Ok(Opened { reader, loss })
}

/// What of the file is lost.
pub fn damage_text(damage: &Damage) -> String {
    let Damage {
        at,
        bytes_lost,
        chunks_skipped,
        what,
    } = damage;
    format!(
        "at byte {at}: {what}; {chunks_skipped} chunks skipped, {bytes_lost} bytes at the end given up"
    )
}
