//! The same bytes and the same answers as rust-vmm's `virtio-queue`, an implementation by others.
use super::*;
use proptest::prelude::*;
use virtio_queue::{Queue, QueueT};

#[derive(Debug, Clone)]
enum Op {
    /// Segments: lengths, how many of them are read.
    Add(Vec<u32>, usize, bool),
    Pop,
    Return(u32),
    AskDevice,
    AskDriver(u16),
    Wanted,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (prop::collection::vec(0..300u32, 1..4), 0..4usize, any::<bool>())
            .prop_map(|(lens, read, indirect)| Op::Add(lens, read, indirect)),
        3 => Just(Op::Pop),
        3 => any::<u32>().prop_map(Op::Return),
        1 => Just(Op::AskDevice),
        1 => (0..3u16).prop_map(Op::AskDriver),
        2 => Just(Op::Wanted),
    ]
}

fn theirs(event_idx: bool) -> Queue {
    let mut queue = Queue::new(16).expect("a size");
    queue.set_size(8);
    queue.set_desc_table_address(Some(0x1000), Some(0));
    queue.set_avail_ring_address(Some(0x1_0000), Some(0));
    queue.set_used_ring_address(Some(0x2_0000), Some(0));
    queue.set_event_idx(event_idx);
    queue.set_ready(true);
    queue
}

fn used_ring(memory: &Memory) -> [u8; 70] {
    let mut bytes = [0; 70];
    memory
        .read_slice(&mut bytes, GuestAddress(0x2_0000))
        .expect("in memory");
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_driver_two_devices(ops in prop::collection::vec(op(), 1..120), event_idx in any::<bool>()) {
        // Each device has a memory of its own; a driver of ours writes the same to both.
        let (ours_memory, theirs_memory) = (memory(), memory());
        let (mut driver, mut ours) = ends(&ours_memory, 8, features(event_idx));
        let (mut twin, _) = ends(&theirs_memory, 8, features(event_idx));
        let mut theirs = theirs(event_idx);
        let mut taken = Vec::new();
        let mut unannounced = 0;
        let mut tables = 0;
        for op in ops {
            match op {
                Op::Add(lens, read, indirect) => {
                    let segments: Vec<Segment> = lens.iter().enumerate()
                        .map(|(n, len)| buffer(n as u64, *len, n >= read))
                        .collect();
                    tables += 0x40;
                    let table = GuestAddress(0x3_0000 + tables % 0x8000);
                    let add = |driver: &mut DriverQueue, memory: &Memory| if indirect {
driver.add_indirect(memory, &segments, table)
} else {
driver.add_avail(memory, &segments)
};
                    let (a, b) = (add(&mut driver, &ours_memory), add(&mut twin, &theirs_memory));
                    prop_assert_eq!(a.ok(), b.ok());
                }
                Op::Pop => {
                    let chain = ours.next_avail(&ours_memory).expect("fair");
                    let other = theirs.pop_descriptor_chain(&theirs_memory);
                    prop_assert_eq!(chain.is_some(), other.is_some());
                    if let (Some(chain), Some(other)) = (chain, other) {
                        prop_assert_eq!(chain.id, other.head_index());
                        let segments: Vec<Segment> = other.map(|d| Segment {
                            address: d.addr(), len: d.len(), writable: d.is_write_only(),
                        }).collect();
                        prop_assert_eq!(&chain.segments, &segments);
                        taken.push(chain.id);
                    }
                }
                Op::Return(len) => {
                    let Some(id) = taken.pop() else { continue };
                    ours.add_used(&ours_memory, id, len).expect("in memory");
                    ours.publish_used(&ours_memory).expect("in memory");
                    theirs.add_used(&theirs_memory, id, len).expect("in memory");
                    unannounced += 1;
                    let back = driver.next_used(&ours_memory).expect("fair");
                    prop_assert_eq!(back, Some((id, len)));
                    prop_assert_eq!(back, twin.next_used(&theirs_memory).expect("fair"));
                }
                Op::AskDevice => {
                    let more = ours.enable_notification(&ours_memory, 0).expect("fair");
                    let other = theirs.enable_notification(&theirs_memory).expect("fair");
                    prop_assert_eq!(more, other);
                }
                Op::AskDriver(ahead) => {
                    let a = driver.enable_notification(&ours_memory, ahead).expect("fair");
                    prop_assert_eq!(a, twin.enable_notification(&theirs_memory, ahead).expect("fair"));
                }
                Op::Wanted => {
                    // Theirs answers once for all that it was given since, so ours is announced then too.
                    if unannounced == 0 { continue }
                    unannounced = 0;
                    let wanted = ours.needs_notification(&ours_memory).expect("fair") == Peer::Asleep;
                    ours.notified();
                    let other = theirs.needs_notification(&theirs_memory).expect("fair");
                    prop_assert_eq!(wanted, other);
                }
            }
            prop_assert_eq!(used_ring(&ours_memory), used_ring(&theirs_memory));
        }
    }
}
