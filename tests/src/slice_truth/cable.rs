//! A bridge of `netio` between two devices, in a thread of its own.
use anyhow::{Context, Result, anyhow};
use hopscope_netio::bridge::{Bridge, Impairments, LaneCounts, Waiting};
use hopscope_netio::clock::measure_frequency;
use hopscope_netio::{OpenOptions, PacketIo, PortName};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// What is at the bridge's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The peers of two veth devices, with packet sockets.
    Veth,
    /// Two TAP devices, which the bridge makes.
    Tap,
}

/// What becomes of each packet follows from it.
const SEED: u64 = 5;

pub(super) struct Cable {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<[LaneCounts; 2]>>>,
}

impl Cable {
    /// `ports`: devices, and the paths of their network namespaces. Returns when both are open.
    pub(super) fn new(
        kind: Kind,
        ports: [(String, String); 2],
        impairments: Impairments,
    ) -> Result<Cable> {
        let stop = Arc::new(AtomicBool::new(false));
        let (opened, is_open) = channel();
        let seen = stop.clone();
        let thread = std::thread::spawn(move || {
            let [a, b] = ports;
            let mut bridge = Bridge::new(
                open(kind, &a)?,
                open(kind, &b)?,
                impairments,
                impairments,
                SEED,
                measure_frequency(),
                false,
            )?;
            opened.send(()).context("nobody waits for the bridge")?;
            bridge.run(&seen, Waiting::Sleep)?;
            Ok(bridge.counts())
        });
        let mut cable = Cable {
            stop,
            thread: Some(thread),
        };
        match is_open.recv() {
            Ok(()) => Ok(cable),
            Err(_) => Err(cable.end().err().context("the bridge ended")?),
        }
    }

    pub(super) fn end(&mut self) -> Result<[LaneCounts; 2]> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().context("it ended before")?;
        thread.join().map_err(|_| anyhow!("the bridge panicked"))?
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.end();
        }
    }
}

fn open(kind: Kind, (device, netns): &(String, String)) -> Result<Box<dyn PacketIo>> {
    let namespace = File::open(netns).with_context(|| netns.clone())?;
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    let device = device.clone();
    let name = match kind {
        Kind::Veth => PortName::Packet { device },
        Kind::Tap => PortName::Tap { name: device },
    };
    let options = OpenOptions {
        gso: true,
        ..OpenOptions::default()
    };
    Ok(name.open(options)?)
}
