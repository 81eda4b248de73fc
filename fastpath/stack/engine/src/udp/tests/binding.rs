//! Addresses and ports, and calls that fail.
use super::support::*;
use crate::config::Share;
use crate::wire::flow_hash;
use crate::{HowToShut, SocketError, SocketOption};

#[test]
fn addresses_in_use_as_linux_has_them() {
    let mut a = Host::new(1);
    let in_use = Err(SocketError::AddressInUse);
    a.bound("0.0.0.0:9");
    let other = a.socket(false);
    assert_eq!(a.bind(other, "10.0.0.1:9"), in_use);
    assert_eq!(a.bind(other, "0.0.0.0:9"), in_use);
    let both = a.socket(true);
    assert_eq!(a.bind(both, "[::]:9"), in_use, "of both families");
    assert_eq!(a.bind(both, "[fd00::1]:9"), Ok(()));
    let only = a.socket(true);
    a.udp.set_option(only, SocketOption::V6Only(true)).unwrap();
    assert_eq!(a.bind(only, "[::]:10"), Ok(()));
    assert_eq!(a.bind(other, "0.0.0.0:10"), Ok(()));
    assert_eq!(
        a.bind(other, "0.0.0.0:11"),
        Err(SocketError::Invalid),
        "bound already"
    );
    let third = a.socket(false);
    assert_eq!(
        a.bind(third, "10.0.0.77:1"),
        Err(SocketError::AddressNotAvailable)
    );
    assert_eq!(a.bind(third, "[fd00::1]:1"), Err(SocketError::Family));
}

#[test]
fn calls_that_fail_as_linux_has_them() {
    let mut a = Host::new(1);
    let socket = a.socket(false);
    assert_eq!(
        a.send(socket, b"x", None),
        Err(SocketError::DestinationRequired)
    );
    assert_eq!(
        a.send(socket, b"x", Some("10.0.0.2:0")),
        Err(SocketError::Invalid)
    );
    assert_eq!(
        a.send(socket, b"x", Some("[fd00::2]:1")),
        Err(SocketError::Family)
    );
    assert_eq!(
        a.send(socket, b"x", Some("255.255.255.255:1")),
        Err(SocketError::Access)
    );
    assert_eq!(a.connect(socket, "10.0.0.255:1"), Err(SocketError::Access));
    let v6 = a.socket(true);
    assert_eq!(
        a.connect(v6, "[2001:db8::1]:1"),
        Err(SocketError::NetworkUnreachable)
    );
    assert_eq!(
        a.udp.shutdown(socket, HowToShut::Both),
        Err(SocketError::NotConnected)
    );
    let no_delay = SocketOption::NoDelay(true);
    assert_eq!(
        a.udp.set_option(socket, no_delay),
        Err(SocketError::NoOption)
    );
    a.connect(socket, "10.0.0.2:1").unwrap();
    a.udp.shutdown(socket, HowToShut::Both).unwrap();
    assert_eq!(a.send(socket, b"x", None), Err(SocketError::BrokenPipe));
    assert_eq!(a.recv(socket), Err(SocketError::WouldBlock));
    let readiness = a.readiness(socket);
    assert!(readiness.readable && readiness.read_hangup && readiness.hangup);
    a.udp.close(socket, &mut a.pool);
    assert_eq!(a.recv(socket), Err(SocketError::BadSocket));
}

#[test]
fn rfc6056_ports_are_not_in_a_row_and_come_to_their_engine() {
    let mut a = Host::new(1);
    let mut ports = Vec::new();
    for _ in 0..100 {
        let socket = a.socket(false);
        a.connect(socket, "10.0.0.2:9").unwrap();
        ports.push(a.udp.local_address(socket).unwrap().port());
    }
    let in_a_row = ports
        .windows(2)
        .filter(|p| p[0].abs_diff(p[1]) < 10)
        .count();
    assert!(in_a_row < 5, "{ports:?}");
    let mut second = config(1);
    second.share = Share {
        index: 1,
        of: 2,
        ..Share::ALONE
    };
    let mut a = Host::with(&second);
    for _ in 0..100 {
        let socket = a.socket(false);
        a.connect(socket, "10.0.0.2:9").unwrap();
        let local = a.udp.local_address(socket).unwrap();
        assert_eq!(flow_hash(address("10.0.0.2:9"), local) % 2, 1);
    }
}

#[test]
fn ports_that_are_all_taken() {
    let mut few = config(1);
    few.ephemeral_ports = (40_000, 40_003);
    let mut a = Host::with(&few);
    for _ in 0..4 {
        let socket = a.socket(false);
        a.send(socket, b"x", Some("10.0.0.2:9")).unwrap();
    }
    let socket = a.socket(false);
    assert_eq!(
        a.send(socket, b"x", Some("10.0.0.2:9")),
        Err(SocketError::WouldBlock)
    );
    assert_eq!(a.bind(socket, "0.0.0.0:0"), Err(SocketError::AddressInUse));
}
