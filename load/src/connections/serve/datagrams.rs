//! One thread of a UDP server.
use super::{Counters, Service};
use crate::connections::LoadError;
use crate::connections::socket::TICK;
use crate::connections::tally::Cause;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends each datagram back, or for any other service only counts it.
pub(super) fn run(
    socket: UdpSocket,
    service: Service,
    counters: &Counters,
    stop: &AtomicBool,
) -> Result<(), LoadError> {
    let failed = |error: std::io::Error| LoadError::System {
        what: "the server's socket",
        errno: Cause::of(&error).errno(),
    };
    socket.set_read_timeout(Some(TICK)).map_err(failed)?;
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        let (n, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // An ICMP error for an answer: its client went away.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(failed(error)),
        };
        Counters::add(&counters.datagrams, 1);
        Counters::add(&counters.bytes_received, n as u64);
        if service == Service::Echo {
            let sent = counters.sent(|| socket.send_to(&buffer[..n], from));
            if sent.is_err() {
                Counters::add(&counters.failed, 1);
            }
        }
    }
    Ok(())
}
