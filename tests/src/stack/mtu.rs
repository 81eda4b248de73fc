//! The MTU of the stack's device changes while bytes go both ways, at both ends of the cable or at the stack's alone: all of them arrive,
//! unchanged, and segments are as long as they may be.
use super::cable::{STACK, Way, ip, namespace};
use super::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, hopscope};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) const WATCHDOG: Duration = Duration::from_secs(60);
/// Of a stream, compared piece by piece.
const PERIOD: usize = 65_521;
const STEP: u64 = 1 << 20;
/// Options of timestamps, in each segment.
const OPTION_BYTES: u64 = 12;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netns};
    for way in [Way::Packet, Way::PacketWhole, Way::Xdp, Way::Tap] {
        let name = format!("stack::serve_follows_the_mtu_{}", way.name());
        suite
            .case(name, &[Netns, Ethtool], move || serve(way))
            .watchdog(600);
    }
    for way in [Way::Packet, Way::PacketWhole] {
        let name = format!("stack::serve_follows_the_mtu_of_its_end_{}", way.name());
        suite
            .case(name, &[Netns, Ethtool], move || one_end(way))
            .watchdog(600);
    }
}

/// Bytes to an echo server and back, until it is told to end.
struct Transfer {
    over: Arc<AtomicBool>,
    /// A message for each step that came back.
    steps: Receiver<()>,
    writer: JoinHandle<Result<u64>>,
    reader: JoinHandle<Result<u64>>,
}

fn pattern() -> Vec<u8> {
    let byte = |i: usize| ((i % PERIOD).wrapping_mul(0x9e37_79b1) >> 16) as u8;
    (0..2 * PERIOD).map(byte).collect()
}

impl Transfer {
    fn start() -> Result<Transfer> {
        let stream = TcpStream::connect((STACK, 7))?;
        let (mut to, mut from) = (stream.try_clone()?, stream);
        let over = Arc::new(AtomicBool::new(false));
        let (told, steps) = channel();
        let until = over.clone();
        let writer = std::thread::spawn(move || -> Result<u64> {
            let pattern = pattern();
            let mut sent = 0;
            while !until.load(Ordering::Relaxed) {
                let start = (sent % PERIOD as u64) as usize;
                sent += to.write(&pattern[start..start + PERIOD])? as u64;
            }
            to.shutdown(Shutdown::Write)?;
            Ok(sent)
        });
        let reader = std::thread::spawn(move || -> Result<u64> {
            let pattern = pattern();
            let mut into = vec![0; PERIOD];
            let mut received = 0;
            loop {
                let count = from.read(&mut into)?;
                if count == 0 {
                    return Ok(received);
                }
                let start = (received % PERIOD as u64) as usize;
                ensure!(
                    into[..count] == pattern[start..start + count],
                    "other bytes from {received} on"
                );
                let before = received / STEP;
                received += count as u64;
                for _ in before..received / STEP {
                    // Nobody listens any more at the end.
                    let _ = told.send(());
                }
            }
        });
        Ok(Transfer {
            over,
            steps,
            writer,
            reader,
        })
    }

    /// So many steps more than have come yet.
    fn goes_on(&self, steps: usize) -> Result<()> {
        while self.steps.try_recv().is_ok() {}
        for _ in 0..steps {
            self.steps.recv_timeout(WATCHDOG).context("nothing comes")?;
        }
        Ok(())
    }

    fn ends(self) -> Result<()> {
        self.over.store(true, Ordering::Relaxed);
        let sent = self.writer.join().expect("no panic")?;
        let received = self.reader.join().expect("no panic")?;
        ensure!(sent == received, "{sent} sent, {received} came back");
        Ok(())
    }
}

fn steps() -> usize {
    counts().pick(4, 100)
}

/// What connections are opened with, and what ports that segment nothing have room for.
fn longest(way: Way) -> u16 {
    match way {
        Way::Xdp => 3_000,
        _ => 9_000,
    }
}

pub(super) fn set_mtu(way: Way, mtu: u16) -> Result<()> {
    if way != Way::Tap {
        ip(&format!("link set near mtu {mtu}"))?;
    }
    ip(&format!("link set far mtu {mtu}"))
}

/// Until `stack ss` has the connection with that MTU, and segments of that length.
fn follows(control: &str, mtu: u16) -> Result<()> {
    let started = Instant::now();
    loop {
        let answer = hopscope(&["stack", "ss", "--json", "--control", control])?.expect_code(0)?;
        let answer: Value = serde_json::from_str(&answer.stdout)?;
        let rows = answer.pointer("/engines/0/connections");
        let mut rows = rows.and_then(Value::as_array).into_iter().flatten();
        let row = rows.find(|row| row["state"] == "ESTAB");
        let row = row.with_context(|| format!("no connection: {answer}"))?;
        let info = &row["info"];
        if info["pmtu"] == mtu {
            let mss = u64::from(mtu) - 40 - OPTION_BYTES;
            ensure!(info["mss"] == mss, "{row}");
            return Ok(());
        }
        ensure!(started.elapsed() < WATCHDOG, "not {mtu}: {row}");
    }
}

fn serve(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    set_mtu(way, longest(way))?;
    let serving = Serving::start(way, &["--app=echo"])?;
    let transfer = Transfer::start()?;
    transfer.goes_on(steps())?;
    let mtus = [1_500, 1_000, longest(way), 576, 1_500, longest(way)];
    for mtu in mtus {
        set_mtu(way, mtu)?;
        follows(serving.control(), mtu)?;
        transfer.goes_on(steps())?;
    }
    transfer.ends()?;
    let summary = serving.stop()?;
    let changes = summary.pointer("/engines/0/link/mtu_changes");
    ensure!(changes == Some(&mtus.len().into()), "{summary}");
    Ok(())
}

/// The kernel's end takes what it took before, and sends little at a time.
fn one_end(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    ip("route replace 10.0.0.0/24 dev far src 10.0.0.1 mtu lock 900 advmss 1460")?;
    let serving = Serving::start(way, &["--app=echo"])?;
    let transfer = Transfer::start()?;
    transfer.goes_on(steps())?;
    for mtu in [1_000, 1_500, 950, 1_400, 1_000] {
        ip(&format!("link set near mtu {mtu}"))?;
        follows(serving.control(), mtu)?;
        transfer.goes_on(steps())?;
    }
    transfer.ends()?;
    serving.stop()?;
    Ok(())
}

/// What becomes of an echo server's connection is seen by what comes back.
pub(super) fn amid_a_transfer(longest: u16) -> Result<()> {
    let transfer = Transfer::start()?;
    transfer.goes_on(steps())?;
    for mtu in [1_400, 1_000, longest, 576, 1_400, longest] {
        set_mtu(Way::Packet, mtu)?;
        transfer.goes_on(steps())?;
    }
    transfer.ends()
}
