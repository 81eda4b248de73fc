//! Split queues.
use super::*;

#[test]
fn s2_7_size_and_alignment() {
    for size in [0, 3, 1_000, 40_000] {
        let refused = DeviceQueue::new(layout(size), features(true), 0);
        assert!(matches!(refused, Err(RingError::Size { .. })), "{size}");
    }
    for field in 0..3 {
        let mut odd = layout(8);
        let fields = [&mut odd.descriptors, &mut odd.driver, &mut odd.device];
        for (n, address) in fields.into_iter().enumerate() {
            address.0 += u64::from(n == field);
        }
        let refused = DeviceQueue::new(odd, features(true), 0);
        assert!(
            matches!(refused, Err(RingError::Alignment { .. })),
            "{odd:?}"
        );
    }
}

#[test]
fn s2_7_4_chains_keep_their_segments_in_order() {
    let memory = memory();
    let (mut driver, mut device) = ends(&memory, 8, features(false));
    let segments = [
        buffer(0, 12, false),
        buffer(1, 60, false),
        buffer(2, 100, true),
    ];
    let id = driver.add_avail(&memory, &segments).expect("free");
    assert_eq!(driver.free_descriptors(), 5);
    let chain = device.next_avail(&memory).expect("fair").expect("one");
    assert_eq!((chain.id, &chain.segments[..]), (id, &segments[..]));
    assert_eq!((chain.readable_len(), chain.writable_len()), (72, 100));
    assert!(device.next_avail(&memory).expect("fair").is_none());
}

#[test]
fn s2_7_5_3_indirect_tables_take_one_descriptor() {
    let memory = memory();
    let (mut driver, mut device) = ends(&memory, 4, features(false));
    let segments: Vec<Segment> = (0..4).map(|n| buffer(n, 64, false)).collect();
    driver
        .add_indirect(&memory, &segments, GuestAddress(0x3_0000))
        .expect("free");
    assert_eq!(driver.free_descriptors(), 3);
    let chain = device.next_avail(&memory).expect("fair").expect("one");
    assert_eq!(chain.segments, segments);
}

#[test]
fn s2_7_5_3_indirect_tables_have_to_be_negotiated() {
    let memory = memory();
    let (mut driver, _) = ends(&memory, 4, features(false));
    let layout = layout(4);
    let mut device = DeviceQueue::new(layout, Features::default(), 0).expect("fair");
    driver
        .add_indirect(&memory, &[buffer(0, 1, false)], GuestAddress(0x3_0000))
        .expect("free");
    let error = device.next_avail(&memory).expect_err("refused").to_string();
    assert_eq!(error, "an indirect table was not negotiated");
}

#[test]
fn s2_7_6_every_slot_is_used_again_and_indices_wrap() {
    let memory = memory();
    let (mut driver, mut device) = ends(&memory, 4, features(true));
    for n in 0..200_000u32 {
        let entries = 1 + n % 4;
        for _ in 0..entries {
            driver
                .add_avail(&memory, &[buffer(0, n, true)])
                .expect("free");
        }
        assert_eq!(device.available(&memory).expect("fair"), entries as u16);
        while let Some(chain) = device.next_avail(&memory).expect("fair") {
            assert_eq!(chain.segments[0].len, n);
            device.add_used(&memory, chain.id, n).expect("in memory");
        }
        // Nothing is seen before it is shown.
        assert_eq!(driver.next_used(&memory).expect("fair"), None);
        device.publish_used(&memory).expect("in memory");
        for _ in 0..entries {
            let (_, len) = driver.next_used(&memory).expect("fair").expect("one");
            assert_eq!(len, n);
        }
        assert_eq!(driver.free_descriptors(), 4);
    }
}

#[test]
fn s2_7_7_1_flags_are_advice_for_as_long_as_they_stand() {
    let memory = memory();
    let (mut driver, mut device) = ends(&memory, 4, features(false));
    driver
        .add_avail(&memory, &[buffer(0, 1, false)])
        .expect("free");
    assert_eq!(
        driver.needs_notification(&memory).expect("fair"),
        Peer::Asleep
    );
    device.disable_notification(&memory).expect("in memory");
    assert_eq!(
        driver.needs_notification(&memory).expect("fair"),
        Peer::Awake
    );
    // Asking finds what came meanwhile.
    assert!(device.enable_notification(&memory, 0).expect("fair"));
    assert_eq!(
        driver.needs_notification(&memory).expect("fair"),
        Peer::Asleep
    );
    driver.disable_notification(&memory).expect("in memory");
    assert_eq!(
        device.needs_notification(&memory).expect("fair"),
        Peer::Awake
    );
    assert!(!driver.enable_notification(&memory, 0).expect("fair"));
    assert_eq!(
        device.needs_notification(&memory).expect("fair"),
        Peer::Asleep
    );
}

#[test]
fn s2_7_10_one_kick_for_each_index_that_was_asked_for() {
    let memory = memory();
    let (mut driver, mut device) = ends(&memory, 8, features(true));
    let mut wanted = |ahead, adds: u32| {
        device.enable_notification(&memory, ahead).expect("fair");
        (0..adds)
            .map(|_| {
                driver
                    .add_avail(&memory, &[buffer(0, 1, false)])
                    .expect("free");
                let wanted = driver.needs_notification(&memory).expect("fair") == Peer::Asleep;
                if wanted {
                    driver.notified();
                }
                // Served at once, so that the ring never fills.
                let chain = device.next_avail(&memory).expect("fair").expect("one");
                device.add_used(&memory, chain.id, 0).expect("in memory");
                device.publish_used(&memory).expect("in memory");
                driver.next_used(&memory).expect("fair").expect("one");
                wanted
            })
            .collect::<Vec<bool>>()
    };
    assert_eq!(wanted(0, 3), [true, false, false]);
    // Asked for further ahead: the third that comes.
    assert_eq!(wanted(2, 4), [false, false, true, false]);
}

#[test]
fn s2_7_7_2_a_held_back_call_is_still_due() {
    let memory = memory();
    let (mut driver, mut device) = ends(&memory, 8, features(true));
    driver.enable_notification(&memory, 0).expect("fair");
    for _ in 0..3 {
        driver
            .add_avail(&memory, &[buffer(0, 1, false)])
            .expect("free");
        let chain = device.next_avail(&memory).expect("fair").expect("one");
        device.add_used(&memory, chain.id, 0).expect("in memory");
        device.publish_used(&memory).expect("in memory");
        // The question takes nothing away: a policy may hold back and ask again.
        assert_eq!(
            device.needs_notification(&memory).expect("fair"),
            Peer::Asleep
        );
    }
    device.notified();
    assert_eq!(
        device.needs_notification(&memory).expect("fair"),
        Peer::Awake
    );
    assert!(
        driver.enable_notification(&memory, 0).expect("fair"),
        "three are there"
    );
}

#[test]
fn s2_7_13_a_full_ring_says_so_and_takes_nothing() {
    let memory = memory();
    let (mut driver, _) = ends(&memory, 4, features(true));
    let two = [buffer(0, 1, false), buffer(1, 1, false)];
    driver.add_avail(&memory, &two).expect("free");
    driver.add_avail(&memory, &two[..1]).expect("free");
    let full = driver
        .add_avail(&memory, &two)
        .expect_err("full")
        .to_string();
    assert_eq!(full, "2 descriptors needed, 1 are free");
    assert_eq!(driver.free_descriptors(), 1);
    assert!(matches!(
        driver.add_avail(&memory, &[]),
        Err(RingError::Empty)
    ));
}

#[test]
fn buffers_are_copied_across_segments() {
    let memory = memory();
    let chain = Chain {
        descriptors: 1,
        id: 0,
        segments: vec![
            buffer(0, 3, false),
            buffer(1, 4, false),
            buffer(2, 2, true),
            buffer(3, 5, true),
        ],
    };
    memory
        .write_slice(b"abc", chain.segments[0].address)
        .expect("in memory");
    memory
        .write_slice(b"defg", chain.segments[1].address)
        .expect("in memory");
    let mut bytes = [0; 9];
    assert_eq!(chain.read(&memory, 2, &mut bytes).expect("in memory"), 5);
    assert_eq!(&bytes[..5], b"cdefg");
    assert_eq!(chain.write(&memory, 1, b"12345678").expect("in memory"), 6);
    let mut written = [0; 5];
    memory
        .read_slice(&mut written, chain.segments[3].address)
        .expect("in memory");
    assert_eq!(&written, b"23456");
}

#[test]
fn resuming_goes_on_where_the_driver_saw_it() {
    let memory = memory();
    let (mut driver, mut device) = ends(&memory, 4, features(true));
    let buffer = [buffer(0, 1, true)];
    for _ in 0..3 {
        driver.add_avail(&memory, &buffer).expect("free");
    }
    // Three were taken, two given back, and the one in hand is lost with its end.
    for n in 0..3 {
        let chain = device.next_avail(&memory).expect("fair").expect("one");
        if n < 2 {
            device.add_used(&memory, chain.id, 7).expect("in memory");
        }
    }
    device.publish_used(&memory).expect("in memory");
    driver.add_avail(&memory, &buffer).expect("free");
    let mut again =
        DeviceQueue::new(layout(4), features(true), device.vring_base() as u16).expect("fair");
    again.resume(&memory).expect("in memory");
    let chain = again
        .next_avail(&memory)
        .expect("fair")
        .expect("the fourth");
    again.add_used(&memory, chain.id, 8).expect("in memory");
    again.publish_used(&memory).expect("in memory");
    let back = std::iter::from_fn(|| driver.next_used(&memory).expect("fair"));
    let lens: Vec<u32> = back.map(|(_, len)| len).collect();
    assert_eq!(lens, [7, 7, 8]);
}
