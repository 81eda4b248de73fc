//! Two instances joined in memory, in one thread: what the engine itself costs, without a kernel and a device.
use crate::app::{AppCounts, Echo, Server};
use crate::command::Mail;
use crate::run::Instance;
use crate::share::Share;
use crate::{Device, InstanceError, InstancePlan, LinkMtu, Ns};
use hopscope_netio::{MemoryOptions, MemoryPort, memory_pair};
use hopscope_serving::clock::Clock;
use hopscope_serving::events::EventLog;
use hopscope_stack_engine::Config;
use hopscope_stack_engine::config::{Address, Medium, TxOffload};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

mod rounds;

use rounds::Rounds;

const PORT: u16 = 7;
/// Of one pair of addresses there are some 28,000 ports: the server has this many addresses.
const ADDRESSES: u8 = 8;
const MTU: u16 = 1500;
/// Nothing comes any more: a connection was lost, or the engine's fault.
const STUCK: Ns = Ns::from_ms(30_000);

#[derive(Debug, Clone, Copy)]
pub struct PairPlan {
    pub connections: u32,
    /// Over which requests go; the others are idle.
    pub active: u32,
    pub requests: u64,
    /// Bytes of a request, and of its response.
    pub size: usize,
    /// Requests under way at a time.
    pub depth: u32,
}

/// What was done once all connections were open.
#[derive(Debug, Clone)]
pub struct PairReport {
    pub opened: Ns,
    pub duration: Ns,
    pub answered: u64,
    pub corrupt: u64,
    /// Segments in, of both ends.
    pub segments: u64,
    pub server: AppCounts,
    /// Of the server's engine, while all connections were open and idle, by its own account.
    pub accounted_bytes: u64,
    /// What the process grew by until then: both ends, with all that belongs to them.
    pub grown_bytes: u64,
    pub client: Value,
    pub serving: Value,
}

type Serving = Instance<Server<Echo>>;
type Asking = Instance<Rounds>;

/// # Errors
/// The engine refuses; nothing moves any more.
pub fn run(plan: PairPlan) -> Result<PairReport, InstanceError> {
    let resident = resident_bytes();
    let options = MemoryOptions {
        max_frame_len: 2048,
        ..MemoryOptions::default()
    };
    let (near, far) = memory_pair(options);
    let addresses = || (0..ADDRESSES).map(|n| IpAddr::from(Ipv4Addr::new(10, 0, 1, n + 1)));
    let client = IpAddr::from(Ipv4Addr::new(10, 0, 0, 1));
    let to: Vec<SocketAddr> = addresses().map(|ip| SocketAddr::new(ip, PORT)).collect();
    let listen = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT);
    let echo = Server::new(Echo::default(), vec![listen], 4096);
    let mut serving: Serving = Instance::start(end(far, 2, addresses())?, echo)?;
    let rounds = Rounds::new(plan, to);
    let mut asking: Asking = Instance::start(end(near, 1, [client].into_iter())?, rounds)?;
    let clock = Clock::start();
    until(&mut asking, &mut serving, clock, Rounds::are_open)?;
    let opened = clock.now();
    let idle = serving.stats();
    let grown_bytes = resident_bytes().saturating_sub(resident);
    let before = received(&asking.stats()) + received(&idle);
    asking.act(|rounds, sockets| rounds.begin(sockets));
    let began = clock.now();
    until(&mut asking, &mut serving, clock, Rounds::are_done)?;
    let duration = clock.now().since(began);
    let (client, serving_stats) = (asking.stats(), serving.stats());
    Ok(PairReport {
        opened,
        duration,
        answered: asking.app().answered(),
        corrupt: asking.app().corrupt(),
        segments: received(&client) + received(&serving_stats) - before,
        server: serving.counts(),
        accounted_bytes: memory(&idle),
        grown_bytes,
        client,
        serving: serving_stats,
    })
}

fn end(
    port: MemoryPort,
    mac: u8,
    addresses: impl Iterator<Item = IpAddr>,
) -> Result<InstancePlan, InstanceError> {
    let medium = Medium::Ethernet {
        mac: [2, 0, 0, 0, 0, mac],
    };
    // The same each time: instructions are counted.
    let mut config = Config::new(medium, [mac; 32]);
    config.mtu = MTU;
    config.memory_bytes = 8 << 30;
    config.addresses = addresses
        .map(|address| Address {
            address,
            prefix_bits: 16,
        })
        .collect();
    let share = Share::all(1, 0, false).map_err(InstanceError::system("making an eventfd"))?;
    let device = Device {
        port: Box::new(port),
        medium,
        mtu: LinkMtu::new(MTU, None),
        offload: TxOffload::default(),
        kept: None,
        claims: Vec::new(),
    };
    Ok(InstancePlan {
        device,
        config,
        share: share.into_iter().next().expect("one was asked for"),
        spin: true,
        log: EventLog::default(),
        on_link: Box::new(|_| {}),
        mail: Arc::new(Mail::default()),
    })
}

fn until(
    asking: &mut Asking,
    serving: &mut Serving,
    clock: Clock,
    is_done: impl Fn(&Rounds) -> bool,
) -> Result<(), InstanceError> {
    let mut moved = clock.now();
    while !is_done(asking.app()) {
        let busy = asking.turn()? | serving.turn()?;
        if busy {
            moved = clock.now();
        } else if clock.now().since(moved) > STUCK {
            let source = std::io::ErrorKind::TimedOut.into();
            let doing = "waiting for the other end";
            return Err(InstanceError::System { doing, source });
        }
    }
    Ok(())
}

fn number(stats: &Value, path: &str) -> u64 {
    stats.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

fn received(stats: &Value) -> u64 {
    number(stats, "/counters/Tcp/InSegs")
}

fn memory(stats: &Value) -> u64 {
    number(stats, "/memory/buffer_bytes") + number(stats, "/memory/table_bytes")
}

/// Of this process, by the kernel's account (proc(5), statm: pages).
fn resident_bytes() -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}
