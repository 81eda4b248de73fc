//! Bounds of queues and memory.
use super::support::*;
use crate::buffer::Pool;
use crate::{SocketError, SocketOption};

#[test]
fn queues_are_bounded_and_counted() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("0.0.0.0:9");
    b.udp
        .set_option(server, SocketOption::ReceiveBuffer(10_000))
        .unwrap();
    let client = a.socket(false);
    a.udp
        .set_option(client, SocketOption::SendBuffer(50_000))
        .unwrap();
    let mut sent = 0;
    let refused = loop {
        match a.send(client, &[1; 1_000], Some("10.0.0.2:9")) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(
        (refused, sent),
        (SocketError::WouldBlock, 80),
        "1,256 each of 100,000"
    );
    assert!(!a.readiness(client).writable);
    while a.udp.next_changed().is_some() {}
    exchange(&mut a, &mut b);
    assert!(a.readiness(client).writable);
    assert!(a.udp.next_changed().is_some(), "there is room again");
    let mut received = 0;
    while b.recv(server).is_ok() {
        received += 1;
    }
    assert_eq!(received, 20_000 / 1_256);
    assert_eq!(b.counters.udp_rcvbuf_errors, 80 - received);
    assert_eq!(b.counters.udp_in_datagrams, received);
    // Empty datagrams fill a queue, too.
    for _ in 0..1_000 {
        let _ = a.send(client, b"", Some("10.0.0.2:9"));
        exchange(&mut a, &mut b);
    }
    assert_eq!(b.udp.queues(server).unwrap().0, 20_000 / 256 * 256);
    b.udp.close(server, &mut b.pool);
    assert_eq!((a.pool.used_bytes(), b.pool.used_bytes()), (0, 0));
}

#[test]
fn a_full_pool_is_no_buffers_and_counted() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let client = a.socket(false);
    a.pool = Pool::new(8_192);
    assert_eq!(
        a.send(client, &[1; 9_000], Some("10.0.0.2:9")),
        Err(SocketError::NoBuffers)
    );
    assert_eq!((a.pool.used_bytes(), a.counters.udp_sndbuf_errors), (0, 1));
    b.bound("0.0.0.0:9");
    b.pool = Pool::new(4_096);
    for _ in 0..5 {
        a.send(client, &[1; 1_400], Some("10.0.0.2:9")).unwrap();
    }
    exchange(&mut a, &mut b);
    assert_eq!(
        (b.counters.udp_in_datagrams, b.counters.udp_mem_errors),
        (2, 3)
    );
}
