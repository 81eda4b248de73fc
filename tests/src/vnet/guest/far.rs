//! What a guest talks to on this side: every address of this network namespace.
use anyhow::Result;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::spawn;

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

pub(super) struct Far {
    pub(super) data: Arc<Vec<u8>>,
    asked: Arc<AtomicU32>,
    _discard: UdpSocket,
}

impl Far {
    /// Serves until this process ends; `bytes` of data.
    pub(super) fn start(bytes: usize) -> Result<Far> {
        let far = Far {
            data: Arc::new(noise(bytes)),
            asked: Arc::default(),
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
        let echo = UdpSocket::bind(("0.0.0.0", ECHO))?;
        spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while let Ok((len, from)) = echo.recv_from(&mut bytes) {
                // The way back may be gone for a while: the client counts what does not come.
                let _ = echo.send_to(&bytes[..len], from);
            }
        });
        Ok(far)
    }

    pub(super) fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
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
