//! Capture files: frames with their times, read and written in both formats that tools know.
mod classic;
mod error;
mod pcapng;
mod port;
mod private;
mod read;

pub use classic::PcapWriter;
pub use error::CaptureError;
pub use pcapng::{ENTERPRISE, FrameLink, InterfaceCounts, PcapngWriter};
pub use port::{CapturePort, CaptureWriter};
pub use private::{PrivateBlock, PrivateReader};
pub use read::{CaptureCounts, CaptureReader, Captured};
