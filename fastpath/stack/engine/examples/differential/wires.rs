//! Both ways between two ends: the kernel's loopback, and a TAP device with the engine behind it.
use crate::program::{Call, Who};
use crate::{engine_end, kernel_end};
use hopscope_event::Ns;
use hopscope_netio::{Outgoing, PacketIo, TapOptions, TapPort};
use hopscope_stack_engine::config::{Address, Medium};
use hopscope_stack_engine::frame::RxMeta;
use hopscope_stack_engine::{Config, Engine, SocketError, SocketId, SocketKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

const DEVICE: &str = "tap-diff";
const KERNEL: &str = "10.93.0.1";
const ENGINE: &str = "10.93.0.2";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    BothKernel,
    EngineListens,
    EngineConnects,
}

enum End {
    Kernel(Option<TcpStream>),
    Engine(Option<SocketId>),
}

pub struct Ends {
    client: End,
    server: End,
    /// Bytes sent by each.
    sent: [u64; 2],
}

pub struct Wires {
    engine: Engine,
    tap: TapPort,
    began: Instant,
    quiet: Duration,
    port: u16,
    loopback: TcpListener,
    kernel: TcpListener,
}

/// The bytes at `from` of what an end sends: different ones at each place.
pub fn bytes(from: u64, count: usize) -> Vec<u8> {
    (from..from + count as u64)
        .map(|n| (n * 31 + (n >> 8)) as u8)
        .collect()
}

pub fn show(bytes: &[u8]) -> String {
    let sum = bytes
        .iter()
        .fold(0u32, |sum, b| sum.wrapping_mul(31) + u32::from(*b));
    format!("{} bytes {sum:08x}", bytes.len())
}

pub fn flags(readable: bool, writable: bool, rdhup: bool, hup: bool, error: bool) -> String {
    let names = [
        (readable, "IN"),
        (writable, "OUT"),
        (rdhup, "RDHUP"),
        (hup, "HUP"),
        (error, "ERR"),
    ];
    let set: Vec<&str> = names.iter().filter(|n| n.0).map(|n| n.1).collect();
    set.join("|")
}

fn ip(args: &[&str]) -> Result<(), String> {
    let done = Command::new("ip")
        .args(args)
        .status()
        .map_err(|e| format!("ip: {e}"))?;
    if done.success() {
        Ok(())
    } else {
        Err(format!("ip {args:?}: {done}"))
    }
}

impl Wires {
    pub fn open() -> Result<Wires, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let mut ports = TapPort::open(DEVICE, TapOptions::default()).map_err(|e| text(&e))?;
        ip(&["link", "set", "lo", "up"])?;
        ip(&["address", "add", &format!("{KERNEL}/24"), "dev", DEVICE])?;
        ip(&["link", "set", DEVICE, "up"])?;
        let medium = Medium::Ethernet {
            mac: [2, 0, 0, 0, 0, 2],
        };
        let mut config = Config::new(medium, [7; 32]);
        config.addresses.push(Address {
            address: ENGINE.parse().map_err(|e| text(&e))?,
            prefix_bits: 24,
        });
        let engine = Engine::new(config).map_err(|e| text(&e))?;
        let listen = |address: &str| TcpListener::bind((address, 0)).map_err(|e| text(&e));
        let wires = Wires {
            engine,
            tap: ports.remove(0),
            began: Instant::now(),
            quiet: Duration::ZERO,
            port: 1_000,
            loopback: listen("127.0.0.1")?,
            kernel: listen(KERNEL)?,
        };
        Ok(wires)
    }

    pub fn set_patience(&mut self, times: u32) {
        self.quiet = Duration::from_micros(100) * times;
    }

    fn now(&self) -> Ns {
        Ns(self.began.elapsed().as_nanos() as u64 + 1)
    }

    /// What is under way goes through. Whether anything was.
    fn pump(&mut self) -> bool {
        let now = self.now();
        let engine = &mut self.engine;
        let received = self.tap.receive(64, &mut |frame| {
            engine.receive(now, frame.bytes, RxMeta::default());
        });
        engine.advance(now);
        let sent = self.tap.send(64, &mut |slot| {
            let frame = engine.transmit(now, slot);
            Outgoing {
                len: frame.map_or(0, |f| f.len),
                ..Outgoing::default()
            }
        });
        let flushed = self.tap.flush();
        received.unwrap_or(0) + sent.unwrap_or(0) > 0 || flushed.unwrap_or(0) > 0
    }

    /// Until nothing has been under way for a while: of the kernel's own loopback nothing is seen, so that is waited for.
    pub fn settle(&mut self, _: &Ends) {
        let mut last = Instant::now();
        while last.elapsed() < self.quiet {
            if self.pump() {
                last = Instant::now();
            }
        }
    }

    pub fn connect(&mut self, sides: Sides) -> Result<Ends, String> {
        let (client, server) = match sides {
            Sides::BothKernel => {
                let (client, server) = kernel_pair(&self.loopback)?;
                (End::Kernel(Some(client)), End::Kernel(Some(server)))
            }
            Sides::EngineListens => self.engine_listens()?,
            Sides::EngineConnects => self.engine_connects()?,
        };
        let ends = Ends {
            client,
            server,
            sent: [0; 2],
        };
        self.settle(&ends);
        Ok(ends)
    }

    fn engine_listens(&mut self) -> Result<(End, End), String> {
        let failed = |e: SocketError| e.to_string();
        self.port = self.port % 60_000 + 1;
        let at = SocketAddr::new(ENGINE.parse().unwrap_or(IpAddr::from([0; 4])), self.port);
        let listener = self.engine.socket(SocketKind::Tcp, false).map_err(failed)?;
        self.engine.bind(listener, at).map_err(failed)?;
        self.engine.listen(listener, 8).map_err(failed)?;
        let connecting = std::thread::spawn(move || TcpStream::connect(at));
        let accepted = loop {
            self.pump();
            match self.engine.accept(listener) {
                Ok((id, _)) => break id,
                Err(SocketError::WouldBlock) => {}
                Err(error) => return Err(failed(error)),
            }
        };
        let client = connecting.join().map_err(|_| "connect panicked")?;
        let client = client.map_err(|e| e.to_string())?;
        let now = self.now();
        self.engine.close(now, listener).map_err(failed)?;
        Ok((End::Kernel(Some(client)), End::Engine(Some(accepted))))
    }

    fn engine_connects(&mut self) -> Result<(End, End), String> {
        let failed = |e: SocketError| e.to_string();
        let peer = self.kernel.local_addr().map_err(|e| e.to_string())?;
        let id = self.engine.socket(SocketKind::Tcp, false).map_err(failed)?;
        let now = self.now();
        match self.engine.connect(now, id, Some(peer)) {
            Ok(()) | Err(SocketError::InProgress) => {}
            Err(error) => return Err(failed(error)),
        }
        while !self.engine.readiness(id).map_err(failed)?.writable {
            self.pump();
        }
        let (server, _) = self.kernel.accept().map_err(|e| e.to_string())?;
        Ok((End::Engine(Some(id)), End::Kernel(Some(server))))
    }
}

fn kernel_pair(listener: &TcpListener) -> Result<(TcpStream, TcpStream), String> {
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let client = TcpStream::connect(address).map_err(|e| e.to_string())?;
    let (server, _) = listener.accept().map_err(|e| e.to_string())?;
    Ok((client, server))
}

impl Ends {
    pub fn call(&mut self, wires: &mut Wires, who: Who, call: Call) -> String {
        let now = wires.now();
        let (end, sent) = match who {
            Who::Client => (&mut self.client, &mut self.sent[0]),
            Who::Server => (&mut self.server, &mut self.sent[1]),
        };
        match end {
            End::Kernel(stream) => kernel_end::call(stream, call, sent),
            End::Engine(id) => engine_end::call(&mut wires.engine, now, id, call, sent),
        }
    }

    /// By reset: nothing of it is left for the next program.
    pub fn close(mut self, wires: &mut Wires) {
        for who in [Who::Client, Who::Server] {
            self.call(wires, who, Call::Reset);
        }
        wires.settle(&self);
    }
}
