//! The kernel's path of one packet: what the kernel programs of `measure/slice` write and every
//! reader reads. The C side is `measure/slice/bpf/contract.h`; sizes and offsets are asserted on
//! both sides.
mod bytes;
mod counter;
mod entry;
mod flags;
mod packet;
mod point;
mod record;
#[cfg(feature = "samples")]
pub mod sample;
mod stamp;

pub use counter::{Counter, Counters};
pub use entry::{
    Constant, HookCost, HookEntry, InterfaceEntry, RegionEntry, SliceCalibration, SliceEntry,
    SliceEvent, SliceSummary,
};
pub use flags::SliceFlags;
pub use packet::{SliceBytes, Sliced};
pub use point::Point;
pub use record::SliceRecord;
pub use stamp::{Inner, StampWord};
