use std::io;

/// Why a capture file is not read further, and where.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("{path}: {source}")]
    File { path: String, source: io::Error },
    #[error("{path} is neither pcap nor pcapng: its first bytes are unknown")]
    NotACapture { path: String },
    #[error(
        "{path} is cut off in the record at byte {offset}: the {frames} frames before are good"
    )]
    CutOff {
        path: String,
        offset: u64,
        frames: u64,
    },
    #[error("{path} is malformed at byte {offset}: {what} (after {frames} good frames)")]
    Malformed {
        path: String,
        offset: u64,
        what: String,
        frames: u64,
    },
    #[error(
        "{path} holds frames of link type {link_type} at byte {offset}: only Ethernet (1) is known"
    )]
    LinkType {
        path: String,
        offset: u64,
        link_type: i32,
    },
}
