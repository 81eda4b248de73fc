//! Receives that wait, and what wakes them.
use super::checks::{Tried, bytes, expect, failed, hung};
use crate::trial::TrialResult;
use crate::trial::pair::{PATIENCE, Pair};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{MsgFlags, recv, setsockopt, sockopt};
use nix::unistd::{Pid, gettid};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How often a thread of this process went to sleep, if it sleeps (proc(5), /proc/PID/status).
fn sleeps(tid: Pid) -> Result<Option<u64>, TrialResult> {
    let status =
        std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).map_err(failed)?;
    let value = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let times = value("voluntary_ctxt_switches:").and_then(|times| times.trim().parse().ok());
    if value("State:").is_some_and(|state| state.trim().starts_with('S')) {
        Ok(times)
    } else {
        Ok(None)
    }
}

/// One thread waits for bytes, another one fills the connection until it is told to wait, and the other
/// end makes room.
pub(super) fn shared(mut pair: Pair) -> Tried {
    pair.client.set_read_timeout(None).map_err(failed)?;
    let reader = pair.client.try_clone().map_err(failed)?;
    let (say, said) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    // Nobody listens any more where the case has been given up.
    thread::spawn(move || {
        let _ = say.send(gettid());
        let _ = tell.send(recv(reader.as_raw_fd(), &mut [0], MsgFlags::empty()));
    });
    let tid = said.recv_timeout(PATIENCE).map_err(failed)?;
    let asleep = |more_than: Option<u64>| -> Result<Option<u64>, TrialResult> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match told.try_recv() {
                Ok(Err(errno)) => {
                    return Err(TrialResult::Broken(format!("the reader was told {errno}")));
                }
                Ok(Ok(_)) => {
                    return Err(TrialResult::Broken("the reader was told of bytes".into()));
                }
                Err(_) => {}
            }
            if let Ok(Some(times)) = sleeps(tid)
                && more_than.is_none_or(|before| times > before)
            {
                return Ok(Some(times));
            }
            thread::yield_now();
        }
        Ok(None)
    };
    let before = asleep(None)?;
    if before.is_none() {
        return Err(TrialResult::Unknown(
            "the reader did not come to wait".into(),
        ));
    }
    let part = vec![0x5a; 64 << 10];
    let patience = Some(Duration::from_millis(20));
    pair.client.set_write_timeout(patience).map_err(failed)?;
    let (mut taken, mut read) = (0, 0);
    while let Ok(length) = pair.client.write(&part) {
        taken += length;
    }
    let mut buffer = vec![0; 64 << 10];
    while read < taken {
        read += pair.server.read(&mut buffer).map_err(hung("making room"))?;
    }
    // Woken and asleep again, or not woken at all: both are right.
    asleep(before)?;
    pair.server.write_all(&[1]).map_err(hung("answering"))?;
    match told.recv_timeout(PATIENCE) {
        Ok(Ok(1)) => Ok(TrialResult::Ok(format!(
            "after {taken} bytes the other way"
        ))),
        Ok(Ok(_)) => Err(TrialResult::Broken("the reader was told of an end".into())),
        Ok(Err(errno)) => Err(TrialResult::Broken(format!("the reader was told {errno}"))),
        Err(_) => Err(TrialResult::Broken("the reader's byte never came".into())),
    }
}

/// A thread of this process in its receive.
struct Receiver {
    tid: Pid,
    has_returned: Arc<AtomicBool>,
}

impl Receiver {
    fn this_thread() -> Receiver {
        Receiver {
            tid: gettid(),
            has_returned: Arc::default(),
        }
    }

    fn recv(&self, socket: &TcpStream, into: &mut [u8], flags: MsgFlags) -> Result<usize, Errno> {
        let got = recv(socket.as_raw_fd(), into, flags);
        self.has_returned.store(true, Ordering::Release);
        got
    }

    /// Runs `then` in another thread once this one sleeps in its receive, or has returned from it; whether it slept.
    fn then<T: Send + 'static>(
        &self,
        then: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<(bool, T)> {
        let (tid, has_returned) = (self.tid, self.has_returned.clone());
        thread::spawn(move || {
            let begun = Instant::now();
            let mut slept = false;
            while !slept && !has_returned.load(Ordering::Acquire) && begun.elapsed() < PATIENCE {
                thread::yield_now();
                slept = is_receiving(tid);
            }
            (slept, then())
        })
    }
}

/// proc(5), /proc/PID/syscall: the call that a thread is blocked in.
fn is_receiving(tid: Pid) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall"));
    let number = |text: String| text.split(' ').next()?.parse().ok();
    call.ok().and_then(number) == Some(libc::SYS_recvfrom)
}

pub(super) fn waitall(mut pair: Pair) -> Tried {
    let sent = bytes(20);
    pair.client
        .write_all(&sent[..10])
        .map_err(hung("writing"))?;
    let (mut client, rest) = (pair.client, sent[10..].to_vec());
    let mut read = vec![0; sent.len()];
    let receiver = Receiver::this_thread();
    let later = receiver.then(move || client.write_all(&rest).map(|()| client));
    let got = receiver.recv(&pair.server, &mut read, MsgFlags::MSG_WAITALL);
    let later = later.join();
    let got = got.map_err(failed)?;
    let has_slept = later.is_ok_and(|(has_slept, _)| has_slept);
    match got == sent.len() {
        true if has_slept => expect(&read, &sent),
        true => Err(TrialResult::Unknown(
            "the reader did not come to wait".into(),
        )),
        false => Ok(TrialResult::Broken(format!(
            "{got} of {} bytes",
            sent.len()
        ))),
    }
}

/// Something else than bytes wakes a receive: TCP says what it was.
pub(super) fn interrupted(pair: Pair) -> Tried {
    let Pair { client, server } = pair;
    let receiver = Receiver::this_thread();
    let later = receiver.then(move || {
        let at_once = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        setsockopt(&server, sockopt::Linger, &at_once)
    });
    let got = receiver.recv(&client, &mut [0; 8], MsgFlags::empty());
    match later.join() {
        Ok((true, Ok(()))) => {}
        Ok((false, _)) => {
            return Err(TrialResult::Unknown(
                "the reader did not come to wait".into(),
            ));
        }
        _ => {
            return Err(TrialResult::Unknown(
                "the connection could not be reset".into(),
            ));
        }
    }
    match got {
        Err(Errno::ECONNRESET) => Ok(TrialResult::Ok("a reset is told".into())),
        Err(errno) => Ok(TrialResult::Broken(format!("a reset is told as {errno}"))),
        Ok(_) => Ok(TrialResult::Broken("a reset is told as an end".into())),
    }
}
