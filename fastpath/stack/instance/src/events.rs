//! What happens to a segment and to whoever reads it, as records: the names in a report.
use hopscope_event::{FunctionId, RecordingMeta};
use hopscope_serving::events::{EventFile, EventFileError, Events, Origin, create};
use std::path::Path;

/// A segment's way up, and down again. The number that goes with it is in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum What {
    /// A frame from the port through the engine (payload bytes; 0: an ACK, ARP and others).
    Rx,
    /// Within it: whose it is (the socket).
    Demux,
    /// A socket's event is handled by its owner (the socket).
    Deliver,
    /// The owner reads (bytes).
    Read,
    /// The owner writes (bytes).
    Write,
    /// The engine writes a frame for the port (payload bytes).
    Tx,
}

impl What {
    pub const ALL: [(&str, &str); 6] = [
        ("rx", "bytes"),
        ("demux", "socket"),
        ("deliver", "socket"),
        ("app read", "bytes"),
        ("app write", "bytes"),
        ("tx", "bytes"),
    ];
}

impl From<What> for FunctionId {
    fn from(what: What) -> FunctionId {
        FunctionId(what as u32)
    }
}

/// Begins a `.hop` file for as many engines.
///
/// # Errors
/// The file cannot be made or written.
pub fn begin(
    path: &Path,
    meta: &RecordingMeta,
    engines: u16,
) -> Result<(Events, EventFile), EventFileError> {
    let origin = Origin {
        process: 0,
        comm: "stack",
        module: "stack",
        functions: &What::ALL,
        first_thread: 0,
        threads: (0..engines).map(|n| format!("engine {n}")).collect(),
        note: "what happened to segments in the engine, told by hopscope stack itself",
    };
    create(path, meta, &origin)
}
