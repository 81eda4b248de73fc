use super::*;
use crate::Outgoing;

const SMALL: MemoryOptions = MemoryOptions {
    frames: 4,
    max_frame_len: 64,
    when_full: WhenFull::Wait,
};

fn numbered(next: &mut u64) -> impl FnMut(&mut [u8]) -> Outgoing + '_ {
    move |slot| {
        slot[..8].copy_from_slice(&next.to_le_bytes());
        *next += 1;
        Outgoing {
            len: 8 + (*next % 40) as usize,
            offload: Offload {
                gso_size: *next as u16,
                ..Offload::default()
            },
        }
    }
}

/// Numbers of the frames, after a look at all that must have come with each.
fn receive(port: &mut MemoryPort, max: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    port.receive(max, &mut |frame| {
        let number = u64::from_le_bytes(frame.bytes[..8].try_into().unwrap());
        assert_eq!(frame.bytes.len() as u64, 8 + (number + 1) % 40);
        assert_eq!(frame.offload.gso_size, (number + 1) as u16);
        numbers.push(number);
    })
    .unwrap();
    numbers
}

#[test]
fn frames_come_in_order_and_only_when_flushed() {
    let (mut a, mut b) = memory_pair(SMALL);
    let mut next = 0;
    assert_eq!(a.send(3, &mut numbered(&mut next)).unwrap(), 3);
    assert_eq!(receive(&mut b, 8), [0u64; 0]);
    a.flush().unwrap();
    assert_eq!(receive(&mut b, 2), [0, 1]);
    assert_eq!(receive(&mut b, 8), [2]);
    let (sent, received) = (a.counters().unwrap(), b.counters().unwrap());
    assert_eq!((sent.sent, received.received), (3, 3));
    assert_eq!(sent.sent_bytes, received.received_bytes);
}

#[test]
fn a_full_ring_refuses_or_drops_as_asked() {
    let mut next = 0;
    let (mut a, mut b) = memory_pair(SMALL);
    assert_eq!(a.send(6, &mut numbered(&mut next)).unwrap(), 4);
    // Published although nobody flushed: else nobody could make room.
    assert_eq!(receive(&mut b, 8), [0, 1, 2, 3]);
    assert_eq!(a.send(1, &mut numbered(&mut next)).unwrap(), 1);

    let mut next = 0;
    let (mut a, mut b) = memory_pair(MemoryOptions {
        when_full: WhenFull::Drop,
        ..SMALL
    });
    assert_eq!(a.send(6, &mut numbered(&mut next)).unwrap(), 6);
    assert_eq!(receive(&mut b, 8), [0, 1, 2, 3]);
    assert_eq!(a.send(1, &mut numbered(&mut next)).unwrap(), 1);
    a.flush().unwrap();
    assert_eq!(receive(&mut b, 8), [6]);
    assert_eq!(a.counters().unwrap().sent, 7);
    let counters = b.counters().unwrap();
    assert_eq!((counters.received, counters.receive_dropped), (5, 2));
}

#[test]
fn the_end_of_one_side_is_said_after_its_last_frame() {
    let (mut a, mut b) = memory_pair(SMALL);
    let mut next = 0;
    a.send(2, &mut numbered(&mut next)).unwrap();
    drop(a);
    assert_eq!(receive(&mut b, 8), [0, 1]);
    let ended = b.receive(8, &mut |_| ());
    assert!(matches!(ended, Err(PortError::Ended { .. })), "{ended:?}");
    let mut next = 0;
    assert_eq!(b.send(4, &mut numbered(&mut next)).unwrap(), 4);
    let ended = b.send(1, &mut numbered(&mut next));
    assert!(matches!(ended, Err(PortError::Ended { .. })), "{ended:?}");
}

#[test]
fn a_filler_that_claims_too_much_is_refused_and_zero_ends_the_burst() {
    let (mut a, _b) = memory_pair(SMALL);
    let error = a.send(1, &mut |slot| Outgoing {
        len: slot.len() + 1,
        ..Outgoing::default()
    });
    assert!(
        matches!(
            error,
            Err(PortError::TooLong {
                len: 65,
                max: 64,
                ..
            })
        ),
        "{error:?}"
    );
    let mut calls = 0;
    let sent = a.send(4, &mut |_| {
        calls += 1;
        Outgoing {
            len: if calls == 2 { 0 } else { 60 },
            ..Outgoing::default()
        }
    });
    assert_eq!((sent.unwrap(), calls), (1, 2));
}

#[test]
fn two_threads_lose_and_mix_nothing() {
    let frames = 300_000u64;
    let (mut a, mut b) = memory_pair(MemoryOptions {
        frames: 64,
        ..SMALL
    });
    let sender = std::thread::spawn(move || {
        let mut next = 0;
        while next < frames {
            let burst = (frames - next).min(7) as usize;
            if a.send(burst, &mut numbered(&mut next)).unwrap() == 0 {
                std::thread::yield_now();
            }
            a.flush().unwrap();
        }
    });
    let mut expected = 0;
    while expected < frames {
        let numbers = receive(&mut b, 32);
        if numbers.is_empty() {
            std::thread::yield_now();
        }
        for number in numbers {
            assert_eq!(number, expected);
            expected += 1;
        }
    }
    sender.join().unwrap();
}

#[test]
fn a_loop_receives_what_it_sends() {
    let mut port = memory_loop(SMALL);
    let mut next = 0;
    for round in 0..10 {
        port.send(1, &mut numbered(&mut next)).unwrap();
        port.flush().unwrap();
        assert_eq!(receive(&mut port, 4), [round]);
    }
}
