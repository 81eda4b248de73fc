//! A recording of slices, in whichever of its two formats.
use super::pcapng;
use anyhow::Context;
use hopscope_trace::format::MAGIC;
use hopscope_trace::{TraceError, TraceReader};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

pub struct Opened {
    pub reader: TraceReader,
    /// What of a pcapng file could not be read.
    loss: Option<String>,
}

impl Opened {
    /// What of the file is lost, in words.
    pub fn damage(&self) -> Option<String> {
        let damage = self.reader.tables().damage.as_ref();
        let damage = damage.map(crate::report::damage_text);
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
pub fn open(path: &Path) -> anyhow::Result<Opened> {
    let name = path.display().to_string();
    if name == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("stdin")?;
        return of_bytes("stdin", bytes);
    }
    let file = File::open(path).with_context(|| name.clone())?;
    if !file.metadata().with_context(|| name.clone())?.is_file() {
        let mut bytes = Vec::new();
        (&file)
            .read_to_end(&mut bytes)
            .with_context(|| name.clone())?;
        return of_bytes(&name, bytes);
    }
    let mut magic = Vec::new();
    (&file).take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    if magic == MAGIC {
        let reader = TraceReader::open(path).map_err(|error| match error {
            TraceError::Open { .. } => anyhow::Error::from(error),
            _ => anyhow::Error::from(error).context(name),
        })?;
        return Ok(Opened { reader, loss: None });
    }
    let whole = std::io::Cursor::new(magic).chain(BufReader::new(file));
    of_capture(&name, whole)
}

fn of_bytes(name: &str, bytes: Vec<u8>) -> anyhow::Result<Opened> {
    if bytes.starts_with(&MAGIC) {
        let reader = TraceReader::from_bytes(bytes).with_context(|| name.to_owned())?;
        return Ok(Opened { reader, loss: None });
    }
    of_capture(name, &bytes[..])
}

fn of_capture(name: &str, source: impl Read) -> anyhow::Result<Opened> {
    let (trace, loss) = pcapng::trace_of(name, source)?;
    let reader = TraceReader::from_bytes(trace).with_context(|| name.to_owned())?;
    Ok(Opened { reader, loss })
}
