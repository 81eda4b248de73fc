//! Named after the sections of virtio 1.3; both ends against each other, and against hostile memory.
use super::packed;
use super::split::{DeviceQueue, DriverQueue};
use super::*;
use crate::policy::Peer;
use vm_memory::Bytes;

mod grouped;
mod hostile;
mod killed;
mod oracle;
mod packed_ring;
mod resumed;
mod split_ring;
mod stepped;
mod threads;

const MEMORY_LEN: usize = 1 << 20;
/// Buffers are from here on.
const BUFFERS: u64 = 0x4_0000;

fn memory() -> Memory {
    Memory::from_ranges(&[(GuestAddress(0), MEMORY_LEN)]).expect("a megabyte")
}

fn layout(size: u16) -> Layout {
    Layout {
        size,
        descriptors: GuestAddress(0x1000),
        driver: GuestAddress(0x1_0000),
        device: GuestAddress(0x2_0000),
    }
}

fn features(event_idx: bool) -> Features {
    Features {
        event_idx,
        indirect: true,
    }
}

fn ends(memory: &Memory, size: u16, features: Features) -> (DriverQueue, DeviceQueue) {
    let driver = DriverQueue::new(memory, layout(size), features).expect("a fair queue");
    let device = DeviceQueue::new(layout(size), features, 0).expect("a fair queue");
    (driver, device)
}

type Ends = (Box<dyn DriverRing + Send>, Box<dyn DeviceRing + Send>);

fn split_ends(memory: &Memory, size: u16, features: Features) -> Ends {
    let (driver, device) = ends(memory, size, features);
    (Box::new(driver), Box::new(device))
}

fn packed_ends(memory: &Memory, size: u16, features: Features) -> Ends {
    let driver = packed::DriverQueue::new(memory, layout(size), features).expect("a fair queue");
    let device = packed::DeviceQueue::new(layout(size), features).expect("a fair queue");
    (Box::new(driver), Box::new(device))
}

fn buffer(n: u64, len: u32, writable: bool) -> Segment {
    Segment {
        address: GuestAddress(BUFFERS + n * 0x100),
        len,
        writable,
    }
}
