//! What happens without each mechanism: the tests of the proxy are worth something because they fail
//! then. These need root and say so where they have not.
use super::{EngineChoice, ProxyPlan, ProxyServer, Without};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// One at a time: what one leaves in the kernel is not another's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|failed| failed.into_inner())
}

fn plan(to: SocketAddr) -> Option<ProxyPlan> {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not run: needs root");
        return None;
    }
    let mut plan = ProxyPlan::new(([127, 0, 0, 1], 0).into(), to);
    plan.engine = EngineChoice::Kernel;
    Some(plan)
}

fn upstream() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn client(server: &ProxyServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

fn kernel_bytes_up(server: &ProxyServer) -> u64 {
    server.report().unwrap().kernel.unwrap().bytes_up
}

/// Bytes before `accept`: nobody looks at them unless the kernel is told to.
#[test]
fn without_the_kick_early_bytes_stay_where_they_are() {
    let _alone = alone();
    for kick in [true, false] {
        let (listener, to) = upstream();
        let Some(mut plan) = plan(to) else { return };
        plan.without = Without {
            kick: !kick,
            ..Without::default()
        };
        // It accepts only when it is let go.
        let gate = std::sync::Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        plan.gate = Some(gate.clone());
        let server = ProxyServer::start(&plan).unwrap();
        let mut client = client(&server);
        client.write_all(b"hello").unwrap();
        drop(held);
        let (mut served, _) = listener.accept().unwrap();
        served
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // These are not early: without the kick they would stay as well.
        while keys("proxy_arriving") < 2 {
            std::thread::yield_now();
        }
        // The first bytes back have gone through: both sockets are joined.
        served.write_all(b"220").unwrap();
        client.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(kernel_bytes_up(&server), if kick { 5 } else { 0 });
        client.write_all(b"X").unwrap();
        let mut got = [0; 6];
        served.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"helloX");
        drop((client, served));
        server.stop().unwrap();
    }
}

/// Sends `bytes` and then the end to an upstream that reads only when the proxy has seen the end; how many
/// bytes came.
fn late_reader(
    server: &ProxyServer,
    listener: &TcpListener,
    bytes: usize,
    is_drained: bool,
) -> usize {
    use nix::sys::socket::{setsockopt, sockopt};
    // Little fits, so that most of it has to wait in the kernel.
    setsockopt(listener, sockopt::RcvBuf, &(64 << 10)).unwrap();
    let mut stream = client(server);
    let (mut served, _) = listener.accept().unwrap();
    stream.write_all(&vec![7; bytes]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let counts = || server.report().unwrap().counts;
    // It has seen the end.
    while is_drained && counts().waited == 0 {
        std::thread::yield_now();
    }
    let mut got = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match served.read(&mut buffer) {
            Ok(0) => return got,
            Ok(n) => got += n,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return got,
            Err(error) => panic!("{error} after {got} B"),
        }
    }
}

#[test]
fn without_the_drain_the_end_overtakes_what_the_kernel_has() {
    let _alone = alone();
    // More than the proxy's own TCP takes (net.ipv4.tcp_wmem: 4 MiB by default).
    const BYTES: usize = 24 << 20;
    for drain in [true, false] {
        let (listener, to) = upstream();
        let Some(mut plan) = plan(to) else { return };
        // All of it by the kernel.
        plan.limit = 1 << 30;
        plan.without = Without {
            drain: !drain,
            ..Without::default()
        };
        let server = ProxyServer::start(&plan).unwrap();
        let got = late_reader(&server, &listener, BYTES, drain);
        let report = server.stop().unwrap();
        if drain {
            assert_eq!(got, BYTES, "{report:?}")
        } else {
            assert!(got < BYTES, "{got} of {BYTES}: {report:?}")
        }
    }
}

/// Of a client whose upstream does not read.
#[test]
fn without_the_limit_the_kernel_takes_everything() {
    let _alone = alone();
    const MOST: usize = 96 << 20;
    const LARGE: u32 = 1 << 30;
    for limit in [4 << 20, LARGE] {
        let (listener, to) = upstream();
        let Some(mut plan) = plan(to) else { return };
        plan.limit = limit;
        let server = ProxyServer::start(&plan).unwrap();
        let mut stream = client(&server);
        let (_served, _) = listener.accept().unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let chunk = vec![7; 64 << 10];
        let mut sent = 0;
        while sent < MOST {
            match stream.write(&chunk) {
                Ok(n) => sent += n,
                Err(_) => break,
            }
        }
        let report = server.stop().unwrap();
        match limit {
            LARGE => assert_eq!(sent, MOST, "{report:?}"),
            _ => assert!(sent < MOST / 2, "{sent}: {report:?}"),
        }
    }
}

/// Writes until nothing is taken for a while.
fn fill(stream: &mut TcpStream, most: usize) -> (usize, Option<ErrorKind>) {
    let patience = Some(Duration::from_secs(1));
    stream.set_write_timeout(patience).unwrap();
    let chunk = vec![7; 64 << 10];
    let mut sent = 0;
    while sent < most {
        match stream.write(&chunk) {
            Ok(n) => sent += n,
            Err(error) => return (sent, Some(error.kind())),
        }
    }
    (sent, None)
}

fn drain(stream: &mut TcpStream, bytes: usize) {
    let mut buffer = vec![0; 64 << 10];
    let mut got = 0;
    while got < bytes {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "{got} of {bytes} came");
        got += n;
    }
}

/// A network of this thread's, and of those that it starts, in which TCP takes little from who sends.
fn small_buffers() {
    use nix::sched::{CloneFlags, unshare};
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let mut ip = std::process::Command::new("ip");
    assert!(
        ip.args(["link", "set", "lo", "up"])
            .status()
            .unwrap()
            .success()
    );
    std::fs::write("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 16384").unwrap();
}

/// Neither side reads, and user space closes no window: what the client sends waits, uncharged, behind what
/// the kernel has for it.
#[test]
fn without_the_brake_a_late_user_space_costs_the_connection() {
    let _alone = alone();
    if nix::unistd::geteuid().is_root() {
        small_buffers();
    }
    for brake in [true, false] {
        let (listener, to) = upstream();
        let Some(mut plan) = plan(to) else { return };
        plan.without = Without {
            brake: !brake,
            hold_back: true,
            ..Without::default()
        };
        let server = ProxyServer::start(&plan).unwrap();
        let mut client = client(&server);
        let (mut served, _) = listener.accept().unwrap();
        let (down, _) = fill(&mut served, 256 << 20);
        let (up, why) = fill(&mut client, 256 << 20);
        let report = server.report().unwrap();
        let kernel = report.kernel.unwrap();
        if !brake {
            assert_eq!(kernel.over_limit, 1, "{up}: {report:?}");
            assert!(
                why.is_some_and(|why| why != ErrorKind::WouldBlock),
                "{up}: {report:?}"
            );
            server.stop().unwrap();
            continue;
        }
        assert_eq!(why, Some(ErrorKind::WouldBlock), "{up}: {report:?}");
        assert!(
            kernel.segments_refused > 0 && kernel.over_limit == 0,
            "{report:?}"
        );
        // Everything comes after all, in whatever time TCP takes to send again.
        let patience = Some(Duration::from_secs(100));
        served.set_read_timeout(patience).unwrap();
        drain(&mut client, down);
        drain(&mut served, up);
        drop((client, served));
        server.stop().unwrap();
    }
}

/// Keys in the youngest map of that name.
fn keys(name: &str) -> usize {
    use libbpf_rs::{MapCore, MapHandle, query::MapInfoIter};
    let ids = MapInfoIter::default().filter(|info| info.name.to_string_lossy() == name);
    let id = ids.map(|info| info.id).max().expect("the proxy has one");
    MapHandle::from_map_id(id).unwrap().keys().count()
}

#[test]
fn no_record_outlives_its_connection() {
    let _alone = alone();
    for deleted in [true, false] {
        let (listener, to) = upstream();
        let Some(mut plan) = plan(to) else { return };
        plan.without = Without {
            records_deleted: !deleted,
            ..Without::default()
        };
        let server = ProxyServer::start(&plan).unwrap();
        for _ in 0..50 {
            let mut stream = client(&server);
            stream.write_all(b"hello").unwrap();
            let (mut served, _) = listener.accept().unwrap();
            served.read_exact(&mut [0; 5]).unwrap();
        }
        while server.report().unwrap().counts.open > 0 {
            std::thread::yield_now();
        }
        let left = ["proxy_ways", "proxy_targets", "proxy_arriving"].map(keys);
        let ways = if deleted { 0 } else { 100 };
        assert_eq!(left, [ways, 0, 0]);
        server.stop().unwrap();
    }
}

/// The proxy's own process in the test of what a killed one leaves.
const CHILD: &str = "HOPSCOPE_PROXY_CHILD";

fn programs() -> usize {
    let all = libbpf_rs::query::ProgInfoIter::default();
    all.filter(|info| info.name.to_string_lossy() == "proxy_verdict")
        .count()
}

fn maps() -> usize {
    let all = libbpf_rs::query::MapInfoIter::default();
    all.filter(|info| info.name.to_string_lossy() == "proxy_ways")
        .count()
}

#[test]
fn a_killed_proxy_leaves_nothing() {
    let _alone = alone();
    let (listener, to) = upstream();
    let Some(plan) = plan(to) else { return };
    if std::env::var_os(CHILD).is_some() {
        let server = ProxyServer::start(&plan).unwrap();
        let mut client = client(&server);
        client.write_all(b"hello").unwrap();
        let (mut served, _) = listener.accept().unwrap();
        served.read_exact(&mut [0; 5]).unwrap();
        println!("serving");
        loop {
            std::thread::park();
        }
    }
    let own = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(own)
        .args(["a_killed_proxy_leaves_nothing", "--nocapture"])
        .env(CHILD, "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving") {
        line.clear();
        let n = std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        assert!(n > 0, "the proxy ended");
    }
    let (programs_with, maps_with) = (programs(), maps());
    assert!(programs_with > 0 && maps_with > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel frees them a little later; one that it keeps is waited for in vain.
    while programs() >= programs_with || maps() >= maps_with {
        std::thread::yield_now();
    }
}

/// Timers of sockets of a port: 2 is keep-alive (proc(5), /proc/net/tcp: `tr`).
fn has_keep_alive(port: u16) -> bool {
    let text = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = format!(":{port:04X}");
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        words.len() > 5
            && words[1].ends_with(&port)
            && words[3] == "01"
            && words[5].starts_with("02:")
    })
}

/// A client that vanishes without a word is found out; one that only says nothing is reset where that is asked for.
#[test]
fn silent_ends_are_probed_and_may_be_reset() {
    let _alone = alone();
    for is_kernel in [true, false] {
        for keep_alive in [true, false] {
            let (listener, to) = upstream();
            let Some(mut plan) = plan(to) else { return };
            if !is_kernel {
                plan.engine = EngineChoice::User;
            }
            if !keep_alive {
                plan.keep_alive = None;
                plan.idle_timeout = Some(Duration::from_millis(300));
            }
            let server = ProxyServer::start(&plan).unwrap();
            let mut client = client(&server);
            let (mut served, _) = listener.accept().unwrap();
            client.write_all(b"hello").unwrap();
            served.read_exact(&mut [0; 5]).unwrap();
            assert_eq!(has_keep_alive(server.address().port()), keep_alive);
            if !keep_alive {
                let error = client.read(&mut [0; 1]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                // The client may hear of it before it is counted.
                let began = Instant::now();
                let counted = || server.report().unwrap().counts.idle_timed_out;
                while counted() == 0 && began.elapsed() < Duration::from_secs(10) {
                    thread::yield_now();
                }
                assert_eq!(counted(), 1);
            }
        }
    }
}
