//! What happens without each mechanism: the tests of the echo in the kernel are worth something because
//! they fail then. These need root and say so where they have not.
use super::kernel::{Engine, Without};
use super::{EchoError, EchoPlan, EchoServer, KernelPlan, Mode, listen};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// One at a time: what one leaves in the kernel is not another's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|failed| failed.into_inner())
}

fn cgroup() -> Option<PathBuf> {
    let root = crate::cgroup::root().ok();
    let root = root.filter(|_| nix::unistd::geteuid().is_root());
    if root.is_none() {
        eprintln!("not run: needs root and a cgroup2 file system");
    }
    root
}

fn plan(local_clients: bool) -> Option<EchoPlan> {
    let mut kernel = KernelPlan::new(cgroup()?);
    kernel.local_clients = local_clients;
    kernel.egress_limit = 64 << 20;
    Some(EchoPlan {
        mode: Mode::Kernel,
        listen: ([127, 0, 0, 1], 0).into(),
        v6_only: false,
        backlog: 128,
        threads: 1,
        kernel,
    })
}

struct Here {
    engine: Engine,
    listener: TcpListener,
}

fn here(plan: &EchoPlan) -> Result<Here, EchoError> {
    let socket = listen::bound_sockets(plan)?.remove(0);
    let address = listen::local_address(&socket)?;
    let engine = Engine::load(&plan.kernel, &socket, address, false)?;
    let listener = listen::listening(plan, socket)?;
    listener.set_nonblocking(false).unwrap();
    Ok(Here { engine, listener })
}

fn client(listener: &TcpListener) -> TcpStream {
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

/// Bytes before `accept`: nobody looks at them unless the kernel is told to.
#[test]
fn without_the_kick_bytes_before_accept_stay_where_they_are() {
    let _alone = alone();
    for kick in [true, false] {
        let Some(mut plan) = plan(false) else { return };
        plan.kernel.without = Without {
            kick: !kick,
            drain: false,
        };
        let here = here(&plan).unwrap();
        let mut client = client(&here.listener);
        client.write_all(b"hello").unwrap();
        let (served, _) = here.listener.accept().unwrap();
        here.engine.take_over(&served).unwrap().expect("enrolled");
        let counts = here.engine.reader().unwrap().read().unwrap();
        assert_eq!(counts.egress_bytes, if kick { 5 } else { 0 });
        // What comes later takes along what came before: why the hang is seldom seen by hand.
        client.write_all(b"X").unwrap();
        let mut back = [0; 6];
        client.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"helloX");
    }
}

/// Sends `bytes`, then the end, and reads only then; how many came back.
fn late_reader(server: &EchoServer, bytes: usize) -> usize {
    use nix::sys::socket::{setsockopt, sockopt};
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // Little fits, so that most of it has to wait in the kernel.
    setsockopt(&stream, sockopt::RcvBuf, &(128 << 10)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(&vec![7; bytes]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // The server has seen the end.
    let state = || server.report().unwrap();
    while state().counts.waited == 0 && state().counts.ended == 0 {
        std::thread::yield_now();
    }
    let mut got = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return got,
            Ok(n) => got += n,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return got,
            // Of a blocking socket: the kernel says so when its worker wakes a reader a second time
            // for bytes that it has read already (tcp_bpf_recvmsg_parser waits once).
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error} after {got} B"),
        }
    }
}

#[test]
fn without_the_drain_the_end_overtakes_what_the_kernel_has() {
    let _alone = alone();
    for (local_clients, bytes) in [(false, 16 << 20), (true, 2 << 20)] {
        for drain in [true, false] {
            let Some(mut plan) = plan(local_clients) else {
                return;
            };
            plan.kernel.without = Without {
                kick: false,
                drain: !drain,
            };
            let server = EchoServer::start(&plan).unwrap();
            let got = late_reader(&server, bytes);
            let report = server.stop().unwrap();
            if drain {
                assert_eq!(got, bytes, "{report:?}")
            } else {
                assert!(got < bytes, "{got} of {bytes}: {report:?}")
            }
        }
    }
}

/// As many bytes as are taken of a client that does not read; at most `most`.
fn unread(server: &EchoServer, most: usize) -> usize {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let chunk = vec![7; 64 << 10];
    let mut sent = 0;
    while sent < most {
        match stream.write(&chunk) {
            Ok(n) => sent += n,
            Err(_) => return sent,
        }
    }
    sent
}

#[test]
fn without_the_limit_the_kernel_takes_everything() {
    let _alone = alone();
    const MOST: usize = 128 << 20;
    for limit in [1 << 20, u32::MAX] {
        let Some(mut plan) = plan(false) else { return };
        plan.kernel.egress_limit = limit;
        let server = EchoServer::start(&plan).unwrap();
        let sent = unread(&server, MOST);
        let report = server.stop().unwrap();
        match limit {
            u32::MAX => assert_eq!(sent, MOST, "{report:?}"),
            _ => {
                assert!(sent < MOST / 2, "{sent}: {report:?}");
                assert_eq!(report.counts.over_limit, 1, "{report:?}");
            }
        }
    }
}

/// The server's own process in the test of what a killed one leaves.
const CHILD: &str = "HOPSCOPE_ECHO_CHILD";

fn programs() -> usize {
    let all = libbpf_rs::query::ProgInfoIter::default();
    all.filter(|info| info.name.to_string_lossy() == "echo_verdict")
        .count()
}

fn maps() -> usize {
    let all = libbpf_rs::query::MapInfoIter::default();
    all.filter(|info| info.name.to_string_lossy() == "by_tuple")
        .count()
}

#[test]
fn a_killed_server_leaves_nothing() {
    let _alone = alone();
    let Some(plan) = plan(true) else { return };
    if std::env::var_os(CHILD).is_some() {
        let server = EchoServer::start(&plan).unwrap();
        let mut client = TcpStream::connect(server.address()).unwrap();
        client.write_all(b"hello").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
        println!("serving");
        loop {
            std::thread::park();
        }
    }
    let own = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(own)
        .args(["a_killed_server_leaves_nothing", "--nocapture"])
        .env(CHILD, "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving") {
        line.clear();
        let n = std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        assert!(n > 0, "the server ended");
    }
    // Other tests of this process have some too.
    let (programs_with, maps_with) = (programs(), maps());
    assert!(programs_with > 0 && maps_with > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel frees them a little later; one that it keeps is waited for in vain.
    while programs() >= programs_with || maps() >= maps_with {
        std::thread::yield_now();
    }
}

/// Keys in the youngest map of that name: tests of the echo run one at a time.
fn keys(name: &str) -> usize {
    use libbpf_rs::{MapCore, MapHandle, query::MapInfoIter};
    let ids = MapInfoIter::default().filter(|info| info.name.to_string_lossy() == name);
    let id = ids.map(|info| info.id).max().expect("the server has one");
    MapHandle::from_map_id(id).unwrap().keys().count()
}

#[test]
fn no_record_outlives_its_connection() {
    let _alone = alone();
    let Some(plan) = plan(true) else { return };
    let server = EchoServer::start(&plan).unwrap();
    for number in 0..300 {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // Of those that send nothing the way is never decided.
        if number % 3 > 0 {
            stream.write_all(b"hello").unwrap();
            stream.read_exact(&mut [0; 5]).unwrap();
        }
        if number % 3 == 2 {
            let linger = nix::libc::linger {
                l_onoff: 1,
                l_linger: 0,
            };
            nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger)
                .unwrap();
        }
    }
    // The last ones end a moment after their clients.
    let maps = ["connections", "servers", "clients", "by_tuple"];
    let left = || maps.map(keys);
    for _ in 0..2000 {
        if left() == [0; 4] {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(left(), [0; 4], "in {maps:?}: {:?}", server.report());
    let report = server.stop().unwrap();
    assert_eq!(report.counts.accepted, 300, "{report:?}");
    assert_eq!(report.counts.open_at_stop, 0, "{report:?}");
}

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// Sends more than the kernel is to keep, and reads when user space has taken over: how many bytes came
/// before the first that is not the next one.
fn in_order(server: &EchoServer, bytes: usize) -> usize {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        let all: Vec<u8> = (0..bytes).map(byte).collect();
        // Cut off where the reader has seen enough.
        let _ = writer.write_all(&all);
    });
    let counts = || server.report().unwrap().counts;
    while counts().waited == 0 && counts().user_bytes == 0 {
        std::thread::yield_now();
    }
    let (mut got, mut is_right) = (0, true);
    let mut buffer = vec![0; 64 << 10];
    while is_right && got < bytes {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                let right = buffer[..n].iter().enumerate();
                let right = right.take_while(|(at, found)| **found == byte(got + at));
                let right = right.count();
                is_right = right == n;
                got += right;
            }
            // As in `late_reader`.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error} after {got} B"),
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
    drop(stream);
    writing.join().unwrap();
    got
}

#[test]
fn without_the_drain_user_space_overtakes_the_kernel() {
    let _alone = alone();
    for drain in [true, false] {
        let Some(mut plan) = plan(true) else { return };
        plan.kernel.without = Without {
            kick: false,
            drain: !drain,
        };
        let server = EchoServer::start(&plan).unwrap();
        let got = in_order(&server, 32 << 20);
        let report = server.stop().unwrap();
        if drain {
            assert_eq!(got, 32 << 20, "{report:?}")
        } else {
            assert!(got < 32 << 20, "{report:?}")
        }
    }
}
