//! Both ends on threads of their own, with nothing between them but the memory.
use super::*;

/// The driver numbers its entries in their lengths; the device sees each whole, once and in order.
#[test]
fn entries_are_seen_whole() {
    for make in [split_ends, packed_ends] {
        for event_idx in [false, true] {
            let memory = memory();
            let (driver, device) = make(&memory, 8, features(event_idx));
            std::thread::scope(|scope| {
                scope.spawn(|| drive(&memory, driver));
                serve(&memory, device);
            });
        }
    }
}

const ENTRIES: u32 = 20_000;

fn segments(n: u32) -> Vec<Segment> {
    (0..1 + n % 3)
        .map(|k| buffer(k.into(), n, k == 2))
        .collect()
}

fn drive(memory: &Memory, mut driver: Box<dyn DriverRing + Send>) {
    let (mut sent, mut back) = (0, 0);
    while back < ENTRIES {
        let next = segments(sent);
        if sent < ENTRIES && usize::from(driver.free_descriptors()) >= next.len() {
            driver.add_avail(memory, &next).expect("free");
            sent += 1;
        } else if let Some((_, len)) = driver.next_used(memory).expect("a fair device") {
            assert_eq!(len, back, "in order");
            back += 1;
        } else {
            std::thread::yield_now();
        }
    }
    assert_eq!(driver.free_descriptors(), 8);
}

fn serve(memory: &Memory, mut device: Box<dyn DeviceRing + Send>) {
    for n in 0..ENTRIES {
        let chain = loop {
            match device.next_avail(memory).expect("a fair driver") {
                Some(chain) => break chain,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(chain.segments, segments(n));
        device.add_used(memory, chain.id, n).expect("fair");
        device.publish_used(memory).expect("fair");
    }
}
