//! Packed queues.
use super::*;
use crate::ring::packed::{DeviceQueue, DriverQueue};
use proptest::prelude::*;

fn fair(size: u16, event_idx: bool) -> (Memory, DriverQueue, DeviceQueue) {
    let memory = memory();
    let driver = DriverQueue::new(&memory, layout(size), features(event_idx)).expect("fair");
    let device = DeviceQueue::new(layout(size), features(event_idx)).expect("fair");
    (memory, driver, device)
}

#[test]
fn s2_8_10_size_and_alignment() {
    for size in [0, 32_769] {
        let refused = DeviceQueue::new(layout(size), features(true));
        assert!(matches!(refused, Err(RingError::Size { .. })), "{size}");
    }
    // No power of two is asked for.
    assert!(DeviceQueue::new(layout(7), features(true)).is_ok());
    let mut odd = layout(8);
    odd.descriptors.0 += 8;
    let refused = DeviceQueue::new(odd, features(true));
    assert!(matches!(refused, Err(RingError::Alignment { .. })));
}

/// The bytes of two laps, by the marks of 2.8.1.
#[test]
fn s2_8_1_marks_change_with_each_lap() {
    let (memory, mut driver, mut device) = fair(2, false);
    let marks = |slot: u64| {
        let flags: u16 = memory
            .read_obj(GuestAddress(0x1000 + 16 * slot + 14))
            .expect("in memory");
        flags & 0x8080
    };
    let mut lap = |available: u16, used: u16| {
        for slot in 0..2 {
            driver
                .add_avail(&memory, &[buffer(0, 9, false)])
                .expect("free");
            assert_eq!(marks(slot), available);
            let chain = device.next_avail(&memory).expect("fair").expect("one");
            device.add_used(&memory, chain.id, 0).expect("fair");
            assert_eq!(marks(slot), available, "not shown yet");
            device.publish_used(&memory).expect("fair");
            assert_eq!(marks(slot), used);
            assert_eq!(
                driver.next_used(&memory).expect("fair"),
                Some((chain.id, 0))
            );
        }
    };
    lap(0x0080, 0x8080);
    lap(0x8000, 0x0000);
    lap(0x0080, 0x8080);
}

#[test]
fn s2_8_6_chains_keep_their_order_across_the_end_of_the_ring() {
    for size in [3, 5, 8] {
        let (memory, mut driver, mut device) = fair(size, true);
        for n in 0..10_000u32 {
            let count = 1 + n as u16 % size.min(3);
            let segments: Vec<Segment> = (0..count)
                .map(|k| buffer(k.into(), n, k + 1 == count))
                .collect();
            let id = driver.add_avail(&memory, &segments).expect("free");
            assert_eq!(driver.free_descriptors(), size - count);
            let chain = device.next_avail(&memory).expect("fair").expect("one");
            assert_eq!((chain.id, chain.segments), (id, segments));
            assert!(!device.has_avail(&memory).expect("fair"));
            device.add_used(&memory, id, n).expect("fair");
            device.publish_used(&memory).expect("fair");
            assert_eq!(driver.next_used(&memory).expect("fair"), Some((id, n)));
            assert_eq!(driver.next_used(&memory).expect("fair"), None);
        }
    }
}

#[test]
fn s2_8_4_entries_come_back_in_the_devices_order() {
    let (memory, mut driver, mut device) = fair(8, true);
    let two = [buffer(0, 1, false), buffer(1, 1, true)];
    let ids = [
        driver.add_avail(&memory, &two).expect("free"),
        driver.add_avail(&memory, &two[..1]).expect("free"),
        driver.add_avail(&memory, &two).expect("free"),
    ];
    for id in ids {
        let chain = device.next_avail(&memory).expect("fair").expect("one");
        assert_eq!(chain.id, id);
    }
    for id in [ids[2], ids[0], ids[1]] {
        device.add_used(&memory, id, 3).expect("fair");
    }
    // All at once, or none.
    assert_eq!(driver.next_used(&memory).expect("fair"), None);
    device.publish_used(&memory).expect("fair");
    for id in [ids[2], ids[0], ids[1]] {
        assert_eq!(driver.next_used(&memory).expect("fair"), Some((id, 3)));
    }
    assert_eq!(driver.free_descriptors(), 8);
    let again = device.add_used(&memory, ids[0], 0);
    assert!(matches!(again, Err(RingError::NotOutstanding { .. })));
}

#[test]
fn s2_8_10_1_one_kick_for_each_descriptor_that_was_asked_for() {
    let (memory, mut driver, mut device) = fair(3, true);
    let mut wanted = |ahead, adds: u32| {
        device.enable_notification(&memory, ahead).expect("fair");
        let mut one = || {
            driver
                .add_avail(&memory, &[buffer(0, 1, false)])
                .expect("free");
            let wanted = driver.needs_notification(&memory).expect("fair") == Peer::Asleep;
            if wanted {
                driver.notified();
            }
            let chain = device.next_avail(&memory).expect("fair").expect("one");
            device.add_used(&memory, chain.id, 0).expect("fair");
            device.publish_used(&memory).expect("fair");
            driver.next_used(&memory).expect("fair").expect("one");
            wanted
        };
        (0..adds).map(|_| one()).collect::<Vec<bool>>()
    };
    // At every place of the ring, and across its end.
    for _ in 0..6 {
        assert_eq!(wanted(0, 2), [true, false]);
        assert_eq!(wanted(2, 3), [false, false, true]);
    }
}

#[test]
fn s2_8_10_flags_enable_and_disable() {
    for event_idx in [false, true] {
        let (memory, mut driver, mut device) = fair(4, event_idx);
        device.disable_notification(&memory).expect("fair");
        driver
            .add_avail(&memory, &[buffer(0, 1, false)])
            .expect("free");
        assert_eq!(
            driver.needs_notification(&memory).expect("fair"),
            Peer::Awake
        );
        assert!(
            device.enable_notification(&memory, 0).expect("fair"),
            "one came meanwhile"
        );
        assert_eq!(
            driver.needs_notification(&memory).expect("fair"),
            Peer::Asleep
        );
    }
}

#[test]
fn s2_8_8_indirect_tables() {
    let put = |table_len: u32, flags: u16, indirect: bool| {
        let (memory, _, _) = fair(4, true);
        let mut head = 0x3_0000u64.to_le_bytes().to_vec();
        head.extend(table_len.to_le_bytes());
        head.extend(1u16.to_le_bytes());
        head.extend((4 | flags | 0x80u16).to_le_bytes());
        memory
            .write_slice(&head, GuestAddress(0x1000))
            .expect("in memory");
        let write = if table_len == 32 { 2 } else { 0 };
        for (n, flags) in [(0u64, 0u16), (1, write)] {
            let mut entry = (BUFFERS + n).to_le_bytes().to_vec();
            entry.extend(7u32.to_le_bytes());
            entry.extend(0u16.to_le_bytes());
            entry.extend(flags.to_le_bytes());
            let place = GuestAddress(0x3_0000 + 16 * n);
            memory.write_slice(&entry, place).expect("in memory");
        }
        let features = Features {
            event_idx: true,
            indirect,
        };
        let mut device = DeviceQueue::new(layout(4), features).expect("fair");
        device
            .next_avail(&memory)
            .map_err(|error| error.to_string())
    };
    let chain = put(32, 0, true).expect("fair").expect("one");
    let [read, written] = chain.segments[..] else {
        panic!("{chain:?}");
    };
    assert_eq!(
        (chain.id, read.writable, written.writable),
        (1, false, true)
    );
    assert_eq!(written.address, GuestAddress(BUFFERS + 1));
    for (said, refused) in [
        ("was not negotiated", put(32, 0, false)),
        ("within a chain", put(32, 1, true)),
        ("without descriptors", put(0, 0, true)),
        ("no multiple of 16", put(33, 0, true)),
        ("a chain of more than 4", put(80, 0, true)),
    ] {
        let error = refused.expect_err(said);
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[test]
fn s2_8_5_an_entry_cannot_be_out_twice() {
    let (memory, mut driver, mut device) = fair(4, true);
    for _ in 0..2 {
        driver
            .add_avail(&memory, &[buffer(0, 1, false)])
            .expect("free");
    }
    // The second claims the first one's number.
    memory
        .write_obj(0u16, GuestAddress(0x1000 + 16 + 12))
        .expect("in memory");
    assert_eq!(
        device
            .next_avail(&memory)
            .expect("fair")
            .map(|chain| chain.id),
        Some(0)
    );
    let error = device.next_avail(&memory).expect_err("refused").to_string();
    assert_eq!(error, "entry 0 was made available twice");
}

/// The first descriptor's flags come last: one that is in memory alone is never shown.
#[test]
fn s2_8_21_1_a_chain_is_shown_whole_or_not_at_all() {
    let (_, mut driver, _) = fair(4, true);
    let short = Memory::from_ranges(&[(GuestAddress(0), 0x1010)]).expect("a page and a slot");
    let two = [buffer(0, 1, false), buffer(1, 1, false)];
    let added = driver.add_avail(&short, &two);
    assert!(matches!(added, Err(RingError::Memory(_))), "{added:?}");
    let flags: u16 = short.read_obj(GuestAddress(0x100e)).expect("in memory");
    assert_eq!(flags, 0);
}

#[test]
fn s2_8_6_a_chain_cannot_be_longer_than_the_ring() {
    let (memory, _, mut device) = fair(4, true);
    for slot in 0..4 {
        let flags = GuestAddress(0x1000 + 16 * slot + 14);
        memory.write_obj(0x81u16, flags).expect("in memory");
    }
    let error = device.next_avail(&memory).expect_err("refused").to_string();
    assert!(error.starts_with("a chain of more than 4"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Descriptors of small numbers, with marks of either lap: loops, overlaps, entries given twice.
    #[test]
    fn both_ends_survive_any_bytes(
        descriptors in prop::collection::vec(
            (prop_oneof![Just(0x3_0000u64), Just(BUFFERS), any::<u64>()],
             prop_oneof![Just(16u32), Just(64), 0..200u32, any::<u32>()],
             prop_oneof![0..9u16, any::<u16>()],
             0..8u16, prop::sample::select(vec![0u16, 0x80, 0x8000, 0x8080])), 0..24),
        areas in any::<[u8; 8]>(), event_idx in any::<bool>(),
    ) {
        let (memory, mut driver, mut device) = fair(8, event_idx);
        for n in 0..3 {
            driver.add_avail(&memory, &[buffer(n, 1, false)]).expect("free");
        }
        memory.write_slice(&areas[..4], GuestAddress(0x1_0000)).expect("in memory");
        memory.write_slice(&areas[4..], GuestAddress(0x2_0000)).expect("in memory");
        let mut back = 0;
        for (n, (address, len, id, flags, marks)) in descriptors.iter().enumerate() {
            let mut bytes = address.to_le_bytes().to_vec();
            bytes.extend(len.to_le_bytes());
            bytes.extend(id.to_le_bytes());
            bytes.extend((flags | marks).to_le_bytes());
            // The ring, then tables.
            let place = if n < 8 { 0x1000 } else { 0x3_0000 - 128 } + 16 * n as u64;
            memory.write_slice(&bytes, GuestAddress(place)).expect("in memory");
        }
        for _ in 0..10 {
            if let Ok(Some(chain)) = device.next_avail(&memory) {
                prop_assert!((1..=8).contains(&chain.segments.len()));
                let _ = chain.read(&memory, 0, &mut [0; 300]);
                let _ = device.add_used(&memory, chain.id, 1);
                let _ = device.publish_used(&memory);
            }
            let _ = device.needs_notification(&memory);
            device.notified();
            let _ = device.enable_notification(&memory, 1);
            let _ = driver.needs_notification(&memory);
            if let Ok(Some(_)) = driver.next_used(&memory) {
                back += 1;
            }
        }
        prop_assert!(back <= 3, "more came back than were out");
        prop_assert_eq!(driver.free_descriptors(), 5 + back);
    }
}
