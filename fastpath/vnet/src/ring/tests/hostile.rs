//! Whatever a peer writes: an error or a chain within memory, in bounded time, and never a panic.
use super::*;
use proptest::prelude::*;

/// Writes where the queue's parts are, each either anything or something near what is allowed.
fn scribble() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    let place = prop_oneof![
        0x1000..0x1100u64,
        0x1_0000..0x1_0020u64,
        0x2_0000..0x2_0060u64,
        0x3_0000..0x3_0100u64,
    ];
    let small = prop::collection::vec(prop_oneof![Just(0u8), 0..9u8], 1..20);
    let bytes = prop_oneof![small, prop::collection::vec(any::<u8>(), 1..20)];
    prop::collection::vec((place, bytes), 0..30)
}

/// A descriptor of small numbers, so that chains, loops and tables happen.
fn descriptor() -> impl Strategy<Value = (u64, u32, u16, u16)> {
    let address = prop_oneof![
        Just(0x3_0000u64),
        Just(BUFFERS),
        Just(u64::MAX - 7),
        any::<u64>()
    ];
    let len = prop_oneof![Just(16u32), Just(64), Just(0), Just(u32::MAX), 0..200u32];
    (address, len, 0..8u16, 0..10u16)
}

fn put(memory: &Memory, base: u64, descriptors: &[(u64, u32, u16, u16)]) {
    for (n, (address, len, flags, next)) in descriptors.iter().enumerate() {
        let mut bytes = address.to_le_bytes().to_vec();
        bytes.extend(len.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        let at = GuestAddress(base + 16 * n as u64);
        memory.write_slice(&bytes, at).expect("in memory");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_device_survives_any_driver(
        table in prop::collection::vec(descriptor(), 8),
        indirect in prop::collection::vec(descriptor(), 8),
        scribbles in scribble(), index in prop_oneof![0..9u16, any::<u16>()], event_idx in any::<bool>(),
    ) {
        let memory = memory();
        put(&memory, 0x1000, &table);
        put(&memory, 0x3_0000, &indirect);
        for entry in 0..8u16 {
            let at = GuestAddress(0x1_0004 + 2 * u64::from(entry));
            memory.write_obj(entry, at).expect("in memory");
        }
        memory.write_obj(index, GuestAddress(0x1_0002)).expect("in memory");
        for (place, bytes) in scribbles {
            memory.write_slice(&bytes, GuestAddress(place)).expect("in memory");
        }
        let mut device = DeviceQueue::new(layout(8), features(event_idx), 0).expect("fair");
        for _ in 0..8 {
            let Ok(Some(chain)) = device.next_avail(&memory) else { break };
            prop_assert!((1..=8).contains(&chain.segments.len()));
            let first_writable = chain.segments.iter().position(|s| s.writable);
            let split = first_writable.unwrap_or(chain.segments.len());
            prop_assert!(chain.segments[split..].iter().all(|s| s.writable));
            // Bytes outside of the memory are an error, not a crash.
            let mut bytes = [0; 2_048];
            if let Ok(len) = chain.read(&memory, 0, &mut bytes) {
                prop_assert_eq!(len, chain.readable_len().min(2_048));
            }
            let _ = chain.write(&memory, 1, &bytes);
            let _ = device.add_used(&memory, chain.id, 1);
            let _ = device.publish_used(&memory);
            let _ = device.needs_notification(&memory);
            device.notified();
            let _ = device.enable_notification(&memory, 0);
        }
    }

    #[test]
    fn a_driver_survives_any_device(scribbles in scribble(), event_idx in any::<bool>()) {
        let memory = memory();
        let (mut driver, _) = ends(&memory, 8, features(event_idx));
        for n in 0..5 {
            driver.add_avail(&memory, &[buffer(n, 1, n % 2 == 0)]).expect("free");
        }
        for (place, bytes) in scribbles {
            memory.write_slice(&bytes, GuestAddress(place)).expect("in memory");
        }
        // Five are out: more cannot come back, and none twice.
        let mut back = Vec::new();
        while let Ok(Some((id, _))) = driver.next_used(&memory) {
            back.push(id);
        }
        prop_assert!(back.len() <= 5);
        back.sort_unstable();
        back.dedup();
        prop_assert_eq!(usize::from(driver.free_descriptors()), 3 + back.len());
        let _ = driver.needs_notification(&memory);
        let _ = driver.enable_notification(&memory, 0);
    }
}

#[test]
fn each_refusal_says_what_was_wrong() {
    let chain = |descriptors: &[(u64, u32, u16, u16)], indirect: &[(u64, u32, u16, u16)]| {
        let memory = memory();
        put(&memory, 0x1000, descriptors);
        put(&memory, 0x3_0000, indirect);
        memory
            .write_obj(1u16, GuestAddress(0x1_0002))
            .expect("in memory");
        let mut device = DeviceQueue::new(layout(4), features(true), 0).expect("fair");
        device.next_avail(&memory).expect_err("refused").to_string()
    };
    let (b, t) = (BUFFERS, 0x3_0000);
    for (said, descriptors, indirect) in [
        ("a chain of more than 4", vec![(b, 1, 1, 0)], vec![]),
        ("descriptor 9 of a table of 4", vec![(b, 1, 1, 9)], vec![]),
        (
            "device-readable buffer behind",
            vec![(b, 1, 3, 1), (b, 1, 0, 0)],
            vec![],
        ),
        ("with a next descriptor", vec![(t, 16, 5, 1)], vec![]),
        ("without descriptors", vec![(t, 0, 4, 0)], vec![]),
        ("no multiple of 16", vec![(t, 17, 4, 0)], vec![]),
        ("within another", vec![(t, 16, 4, 0)], vec![(t, 16, 4, 0)]),
        (
            "descriptor 1 of a table of 1",
            vec![(t, 16, 4, 0)],
            vec![(b, 1, 1, 1)],
        ),
        (
            "a chain of more than 4",
            vec![(t, 80, 4, 0)],
            vec![
                (b, 1, 1, 1),
                (b, 1, 1, 2),
                (b, 1, 1, 3),
                (b, 1, 1, 4),
                (b, 1, 0, 0),
            ],
        ),
        (
            "outside the guest's memory",
            vec![(u64::MAX - 15, 16, 4, 0)],
            vec![],
        ),
    ] {
        let line = chain(&descriptors, &indirect);
        assert!(line.contains(said), "{said}: {line}");
    }
}

#[test]
fn an_index_cannot_run_ahead_of_the_ring() {
    let memory = memory();
    let (mut driver, mut device) = ends(&memory, 4, features(true));
    memory
        .write_obj(5u16, GuestAddress(0x1_0002))
        .expect("in memory");
    let error = device.next_avail(&memory).expect_err("refused").to_string();
    assert_eq!(
        error,
        "the peer's index went from 0 to 5: more than the queue's 4 entries"
    );
    memory
        .write_obj(0xffffu16, GuestAddress(0x2_0002))
        .expect("in memory");
    assert!(matches!(
        driver.next_used(&memory),
        Err(RingError::IndexJump { .. })
    ));
    memory
        .write_obj(1u16, GuestAddress(0x2_0002))
        .expect("in memory");
    assert!(matches!(
        driver.next_used(&memory),
        Err(RingError::NotOutstanding { id: 0 })
    ));
}

/// What this end holds is bounded by the queue, whatever the driver offers and however often.
#[test]
fn a_descriptor_is_in_one_entry_only() {
    let memory = memory();
    // 0 and 1 both lead to 2, which leads to 3.
    let next = |n| (BUFFERS, 64, 3, n);
    put(
        &memory,
        0x1000,
        &[next(2), next(2), next(3), (BUFFERS, 64, 2, 0)],
    );
    for (at, head) in [0u16, 0, 1].into_iter().enumerate() {
        let entry = GuestAddress(0x1_0004 + 2 * at as u64);
        memory.write_obj(head, entry).expect("in memory");
    }
    let available = |device: &mut DeviceQueue, index: u16| {
        let at = GuestAddress(0x1_0002);
        memory.write_obj(index, at).expect("in memory");
        device.next_avail(&memory)
    };
    let mut device = DeviceQueue::new(layout(4), features(true), 0).expect("fair");
    let first = available(&mut device, 1).expect("fair").expect("a chain");
    assert_eq!(first.descriptors, 3);
    let again = available(&mut device, 2);
    assert!(matches!(again, Err(RingError::Twice { id: 0 })));
    let mut device = DeviceQueue::new(layout(4), features(true), 1).expect("fair");
    assert!(available(&mut device, 2).expect("fair").is_some());
    let shared = available(&mut device, 3);
    assert!(matches!(
        shared,
        Err(RingError::Shared {
            descriptors: 6,
            size: 4
        })
    ));
    // What was given back is the driver's again.
    device.add_used(&memory, 0, 0).expect("in memory");
    assert!(available(&mut device, 3).expect("fair").is_some());
}

#[test]
fn tables_have_an_end() {
    let memory = memory();
    let long = vec![(0x4_0000, 16 * 1025, 4, 0)];
    put(&memory, 0x1000, &long);
    memory
        .write_obj(1u16, GuestAddress(0x1_0002))
        .expect("in memory");
    let mut device = DeviceQueue::new(layout(4), features(true), 0).expect("fair");
    let error = device.next_avail(&memory).expect_err("refused").to_string();
    assert_eq!(error, "an indirect table of more than 1024 descriptors");
    // The same in a packed queue, marked as available in the first lap: a number, then the flags.
    put(&memory, 0x1000, &[(0x4_0000, 16 * 1025, 0, 4 | 0x80)]);
    let mut device = packed::DeviceQueue::new(layout(4), features(true)).expect("fair");
    let error = device.next_avail(&memory).expect_err("refused").to_string();
    assert_eq!(error, "an indirect table of more than 1024 descriptors");
}
