//! What a server says of itself to who has an answer of it.
use hopscope_load::connections::serve::{ServePlan, Server, Service};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// On one processor: the answer wakes who waits for it, often before the server's thread goes on.
fn serve(datagrams: bool) -> Server {
    let this = Pid::from_raw(0);
    let ours = sched_getaffinity(this).unwrap();
    let first = (0..CpuSet::count()).find(|cpu| ours.is_set(*cpu).unwrap());
    let mut one = CpuSet::new();
    one.set(first.unwrap()).unwrap();
    sched_setaffinity(this, &one).unwrap();
    Server::start(&ServePlan {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        datagrams,
        service: Service::Echo,
        threads: 1,
        backlog: 16,
    })
    .unwrap()
}

const EXCHANGES: u64 = 20_000;
/// Only a server that has failed takes so long.
const WATCHDOG: Option<Duration> = Some(Duration::from_secs(60));

/// Found by a test that failed once in many: 4,999 bytes sent in 5,000 answers.
#[test]
fn who_has_the_answer_finds_it_counted() {
    let server = serve(false);
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.set_read_timeout(WATCHDOG).unwrap();
    let mut answer = [0];
    for n in 1..=EXCHANGES {
        client.write_all(&[7]).unwrap();
        client.read_exact(&mut answer).unwrap();
        let counts = server.report().counts;
        assert_eq!((counts.bytes_received, counts.bytes_sent), (n, n));
    }
    server.stop().unwrap();
}

#[test]
fn of_a_datagram_too() {
    let server = serve(true);
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    client.connect(server.address()).unwrap();
    client.set_read_timeout(WATCHDOG).unwrap();
    let mut answer = [0];
    for n in 1..=EXCHANGES {
        client.send(&[7]).unwrap();
        client.recv(&mut answer).unwrap();
        let counts = server.report().counts;
        assert_eq!((counts.datagrams, counts.bytes_sent), (n, n));
    }
    server.stop().unwrap();
}
