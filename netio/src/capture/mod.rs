//! Capture files: frames with their times, read and written in both formats that tools know.
mod classic;
mod custom_block;
mod pcapng;
mod port;
mod read;

pub use classic::PcapWriter;
pub use custom_block::{PrivateBlock, PrivateReader};
pub use pcapng::{ENTERPRISE, FrameLink, InterfaceCounts, PcapngWriter};
pub use port::{CapturePort, CaptureWriter};
pub use read::{CaptureCounts, CaptureReader, Captured};
