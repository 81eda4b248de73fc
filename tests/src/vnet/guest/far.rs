//! What a guest talks to on this side: every address of this network namespace.
use anyhow::{Result, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// Compares what comes with the data, and says `same`, or where it differs.
const SINK: u16 = 7001;
/// Sends the data.
const SOURCE: u16 = 7002;
/// Sends datagrams back.
const ECHO: u16 = 7003;
/// Takes datagrams, and nobody reads them.
const DISCARD: u16 = 7006;
/// Says how often it was asked.
const COUNT: u16 = 7004;
/// Answers once the gate is open.
const GATE: u16 = 7005;

/// Against waiting for ever: recovery takes a second or two.
const SILENCE: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

pub(super) struct Far {
    pub(super) data: Arc<Vec<u8>>,
    asked: Arc<AtomicU32>,
    /// By device.
    echoed: Arc<[AtomicU64; 16]>,
    gate: Arc<(Mutex<bool>, Condvar)>,
    _discard: UdpSocket,
}

impl Far {
    /// Serves until this process ends; `bytes` of data.
    pub(super) fn start(bytes: usize) -> Result<Far> {
        let far = Far {
            data: Arc::new(noise(bytes)),
            asked: Arc::default(),
            echoed: Arc::default(),
            gate: Arc::default(),
            _discard: UdpSocket::bind(("0.0.0.0", DISCARD))?,
        };
        let data = far.data.clone();
        serve(SINK, move |mut stream| {
            let mut got = Vec::new();
            stream.read_to_end(&mut got)?;
            let same = got.iter().zip(data.iter()).take_while(|(a, b)| a == b);
            match (same.count(), got == *data) {
                (_, true) => writeln!(stream, "same"),
                (at, false) => writeln!(stream, "{} bytes, another one at {at}", got.len()),
            }
        })?;
        let data = far.data.clone();
        serve(SOURCE, move |mut stream| {
            stream.write_all(&data)?;
            stream.shutdown(Shutdown::Write)
        })?;
        let asked = far.asked.clone();
        serve(COUNT, move |mut stream| {
            let count = asked.fetch_add(1, Ordering::Relaxed) + 1;
            writeln!(stream, "{count}")
        })?;
        let gate = far.gate.clone();
        serve(GATE, move |mut stream| {
            let (open, changed) = &*gate;
            let open = open.lock().map_err(|_| ErrorKind::Other)?;
            let opened = changed.wait_while(open, |open| !*open);
            drop(opened.map_err(|_| ErrorKind::Other)?);
            writeln!(stream, "open")
        })?;
        let echoed = far.echoed.clone();
        let echo = UdpSocket::bind(("0.0.0.0", ECHO))?;
        spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while let Ok((len, from)) = echo.recv_from(&mut bytes) {
                // The way back may be gone for a while: the client counts what does not come.
                let _ = echo.send_to(&bytes[..len], from);
                if let IpAddr::V4(from) = from.ip() {
                    let device = usize::from(from.octets()[2]);
                    echoed[device % 16].fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(far)
    }

    pub(super) fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }

    /// As if it had been asked so often.
    pub(super) fn count_from(&self, count: u32) {
        self.asked.store(count, Ordering::Relaxed);
    }

    /// Until it was asked so often.
    pub(super) fn asks(&self, count: u32) -> Result<()> {
        let started = Instant::now();
        while self.asked() < count {
            let waits = started.elapsed() < SILENCE;
            ensure!(waits, "asked {} times, not {count}", self.asked());
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    pub(super) fn open_gate(&self) {
        let (open, changed) = &*self.gate;
        *open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Until so many datagrams more of this device were sent back than now.
    pub(super) fn echoes(&self, device: usize, more: u64) -> Result<()> {
        let started = Instant::now();
        let echoed = &self.echoed[device];
        let enough = echoed.load(Ordering::Relaxed) + more;
        while echoed.load(Ordering::Relaxed) < enough {
            let waits = started.elapsed() < SILENCE;
            ensure!(waits, "no {more} datagrams came by device {device}");
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}

fn serve(
    port: u16,
    each: impl Fn(TcpStream) -> std::io::Result<()> + Send + Clone + 'static,
) -> Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    spawn(move || {
        for stream in listener.incoming().flatten() {
            let each = each.clone();
            // Who goes away before its answer says so itself.
            spawn(move || each(stream));
        }
    });
    Ok(())
}

/// No part of it is like another (SplitMix64).
fn noise(bytes: usize) -> Vec<u8> {
    let words = (0..bytes.div_ceil(8) as u64).flat_map(|n| {
        let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31).to_le_bytes()
    });
    words.take(bytes).collect()
}
