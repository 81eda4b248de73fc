//! Whole sessions: fair ones with anything in between. Nothing panics, no packet is lost without a reason, no
//! descriptor stays, and each turn does a bounded piece of work.
use super::descriptors::{self, borrowed};
use super::guest::{Guest, MEMORY_LEN};
use super::port::{Handle, LONGEST};
use super::*;
use crate::policy::PolicyKind;
use hopscope_netio::Offload;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

const PAIRS: usize = 2;
const QUEUES: usize = 2 * PAIRS;

#[derive(Debug, Clone)]
enum Act {
    Connect,
    Leave,
    /// Both queues of pair 0, fair, and perhaps pair 1.
    Begin {
        features: u64,
        size: u16,
        second: bool,
    },
    Say {
        request: u32,
        flags: u32,
        payload: Vec<u8>,
        with: Vec<With>,
    },
    Bytes(Vec<u8>),
    Add {
        queue: usize,
        parts: Vec<(u64, u32)>,
    },
    Reclaim(usize),
    Ask(usize, Option<u16>),
    Kick(usize),
    Spoil {
        queue: usize,
        at: u64,
        bytes: Vec<u8>,
    },
    Cut(u64),
    Comes {
        pair: usize,
        len: usize,
        offload: Offload,
    },
    Room(usize, usize),
    Turns(u8),
}

#[derive(Debug, Clone, Copy)]
enum With {
    Bell(usize),
    Memory,
    Socket,
}

fn features() -> impl Strategy<Value = u64> {
    // Of what is offered: checksums and segments, merging, several queues, indirect, index, packed.
    let all = 1 | 1 << 1 | 0x1980 | 1 << 15 | 1 << 22 | 1 << 28 | 1 << 29 | 1 << 34;
    prop_oneof![
        3 => any::<u64>().prop_map(move |bits| 1 << 32 | bits & all),
        1 => any::<u64>().prop_map(move |bits| bits & all & !(1 << 34)),
    ]
}

fn queue() -> impl Strategy<Value = usize> {
    // Pair 0 is the one that is always begun.
    prop_oneof![3 => 0..2usize, 1 => 0..QUEUES]
}

/// What fair front ends and their guests do, and the network.
fn fair() -> impl Strategy<Value = Act> {
    // Few of the buffers end beyond the memory.
    let part = (0..0x3_f800u64, prop_oneof![9 => 12..1600u32, 1 => 0..12u32]);
    let offload = (any::<[u8; 2]>(), any::<[u16; 4]>(), 0..4u8);
    let offload = offload.prop_map(|(b, w, plain)| match plain {
        1.. => Offload::default(),
        0 => Offload {
            flags: b[0] & 1,
            gso_type: b[1] & 0x85,
            hdr_len: w[0],
            gso_size: w[1],
            csum_start: w[2] % 100,
            csum_offset: w[3] % 20,
        },
    });
    let part = prop::collection::vec(part, 1..4);
    prop_oneof![
        14 => (queue(), part).prop_map(|(queue, parts)| Act::Add { queue, parts }),
        6 => queue().prop_map(Act::Reclaim),
        2 => (queue(), prop::option::of(any::<u16>())).prop_map(|(queue, ahead)| Act::Ask(queue, ahead)),
        2 => queue().prop_map(Act::Kick),
        8 => (0..PAIRS, prop_oneof![8 => 60..LONGEST, 1 => 1..60usize], offload)
            .prop_map(|(pair, len, offload)| Act::Comes { pair, len, offload }),
        2 => (0..PAIRS, 0..40usize).prop_map(|(pair, room)| Act::Room(pair, room)),
        10 => (1..6u8).prop_map(Act::Turns),
    ]
}

/// The end of one, and the begin of another.
fn again() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => Just(Act::Connect),
        1 => Just(Act::Leave),
        3 => begin(),
    ]
}

fn begin() -> impl Strategy<Value = Act> {
    let size = prop::sample::select(vec![2u16, 4, 8, 64, 256]);
    (features(), size, any::<bool>()).prop_map(|(features, size, second)| Act::Begin {
        features,
        size,
        second,
    })
}

/// What none should.
fn hostile() -> impl Strategy<Value = Act> {
    let word = prop_oneof![Just(0u8), Just(1), 0..8u8, any::<u8>()];
    let with = prop_oneof![
        3 => queue().prop_map(With::Bell),
        2 => Just(With::Memory),
        1 => Just(With::Socket),
    ];
    let payload = prop_oneof![
        Just(vec![]),
        prop::collection::vec(word.clone(), 8),
        prop::collection::vec(word.clone(), 40),
        prop::collection::vec(any::<u8>(), 0..264),
    ];
    let flags = prop_oneof![6 => Just(1u32), 2 => Just(9), 1 => any::<u32>()];
    let place = prop_oneof![0..64u64, 0x8000..0x8010u64, 0xc000..0xc010u64, any::<u64>()];
    let wild = prop::collection::vec((any::<u64>().prop_map(|at| at >> 20), any::<u32>()), 1..5);
    prop_oneof![
        3 => (0..42u32, flags, payload, prop::collection::vec(with, 0..3))
            .prop_map(|(request, flags, payload, with)| Act::Say { request, flags, payload, with }),
        1 => prop::collection::vec(word.clone(), 1..40).prop_map(Act::Bytes),
        2 => (queue(), wild).prop_map(|(queue, parts)| Act::Add { queue, parts }),
        3 => (queue(), place, prop::collection::vec(word, 1..24))
            .prop_map(|(queue, at, bytes)| Act::Spoil { queue, at, bytes }),
        2 => prop_oneof![1 => 0..MEMORY_LEN, 1 => Just(MEMORY_LEN)].prop_map(Act::Cut),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let few = prop_oneof![40 => fair(), 1 => again(), 1 => hostile()];
    let many = prop_oneof![8 => fair(), 1 => again(), 2 => hostile()];
    prop_oneof![
        1 => prop::collection::vec(fair(), 0..200),
        2 => prop::collection::vec(few, 0..200),
        2 => prop::collection::vec(many, 0..80),
    ]
}

/// What was reached: filters and refusals must not have emptied the test.
#[derive(Debug, Default)]
struct Reached {
    sent: u64,
    received: u64,
    chains: u64,
    dropped: u64,
    starts: u64,
    broken: u64,
    broken_off: u64,
    vanished: u64,
    waits: u64,
    calls: u64,
    reclaimed: u64,
}

struct World {
    server: Server,
    guest: Guest,
    ports: Vec<Handle>,
    path: PathBuf,
    vanished: u64,
    reclaimed: u64,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl World {
    fn new(calls: [PolicyKind; 2], kicks: Kicks) -> World {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("hopscope-serve-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let ports: Vec<Handle> = (0..PAIRS).map(|_| Handle::default()).collect();
        let plan = BackEndPlan {
            socket: path.clone(),
            client: false,
            ports: ports
                .iter()
                .map(|port| Box::new(port.port()) as _)
                .collect(),
            segments: true,
            control: None,
            shadows: true,
            kicks,
            rx_calls: calls[0],
            tx_calls: calls[1],
            events: None,
        };
        World {
            server: Server::start(plan).expect("a socket"),
            guest: Guest::new(QUEUES),
            ports,
            path,
            vanished: 0,
            reclaimed: 0,
        }
    }

    fn turn(&mut self) -> Result<(), TestCaseError> {
        for port in &self.ports {
            port.with(|inside| inside.calls = 0);
        }
        let vanished = &mut self.vanished;
        let mut say = |notice: Notice<'_>| {
            if let Notice::BrokenOff(broken) = &notice
                && broken.to_string().contains("while it was in use")
            {
                *vanished += 1;
            }
        };
        let done = self.server.step_once(&mut say);
        prop_assert!(done.is_ok(), "{:?}", done.err());
        for port in &self.ports {
            // Of each queue at most a turn of 256, and one look at the end.
            let calls = port.with(|inside| inside.calls);
            prop_assert!(calls <= 2 * 257, "{calls} calls in one turn");
        }
        Ok(())
    }

    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let guest = &mut self.guest;
        match act {
            Act::Connect => guest.connect(&self.path),
            Act::Leave => guest.leave(),
            Act::Begin {
                features,
                size,
                second,
            } => {
                guest.negotiate(*features);
                let queues = if *second { QUEUES } else { 2 };
                (0..queues).for_each(|n| guest.start(n, *size, *features));
            }
            Act::Say {
                request,
                flags,
                payload,
                with,
            } => {
                let number = |with: &With| match with {
                    With::Bell(n) => borrowed(&guest.kicks[*n]).as_raw_fd(),
                    With::Memory => guest.file.as_raw_fd(),
                    With::Socket => 0,
                };
                let numbers: Vec<i32> = with.iter().map(number).collect();
                guest.say(*request, *flags, payload, &numbers);
            }
            Act::Bytes(bytes) => guest.bytes(bytes),
            Act::Add { queue, parts } => guest.add(*queue, parts),
            Act::Reclaim(queue) => self.reclaimed += u64::from(guest.reclaim(*queue)),
            Act::Ask(queue, ahead) => guest.ask(*queue, *ahead),
            Act::Kick(queue) => guest.kick(*queue),
            Act::Spoil { queue, at, bytes } => guest.spoil(*queue, *at, bytes),
            Act::Cut(len) => guest.cut(*len),
            Act::Comes { pair, len, offload } => {
                self.ports[*pair].with(|inside| inside.coming.push_back((vec![9; *len], *offload)));
            }
            Act::Room(pair, room) => self.ports[*pair].with(|inside| inside.room = *room),
            Act::Turns(count) => {
                for _ in 0..*count {
                    self.turn()?;
                }
            }
        }
        Ok(())
    }

    fn end(self, reached: &mut Reached) -> Result<(), TestCaseError> {
        let World { server, guest, .. } = self;
        let counts = server.end(&mut |_| {}).expect("ports that work");
        for pair in &counts.pairs {
            prop_assert!(pair.conserved(), "{pair:?}");
            reached.sent += pair.tx.packets;
            reached.received += pair.rx.packets;
            for queue in [&pair.rx, &pair.tx] {
                reached.chains += queue.chains;
                reached.dropped += queue.drops.sum();
                reached.starts += queue.starts;
                reached.broken += queue.broken;
                reached.waits += queue.waits;
                reached.calls += queue.calls;
            }
        }
        reached.broken_off += counts.broken_off;
        reached.vanished += self.vanished;
        reached.reclaimed += self.reclaimed;
        nothing_kept(&guest)?;
        prop_assert!(!self.path.exists(), "the socket is left behind");
        Ok(())
    }
}

/// The guest's own descriptors, and what it has mapped itself, are all that there is.
fn nothing_kept(guest: &Guest) -> Result<(), TestCaseError> {
    prop_assert_eq!(descriptors::open(&guest.file), 2, "of the memory");
    for bell in guest.kicks.iter().chain(&guest.calls) {
        prop_assert_eq!(bell.open(), 1, "of a doorbell");
    }
    Ok(())
}

fn kind() -> impl Strategy<Value = PolicyKind> {
    let names = [
        "plain",
        "event-idx",
        "batch",
        "tam:4",
        "coal:4:50",
        "adaptive",
        "ahc:50:4",
    ];
    prop::sample::select(names.to_vec()).prop_map(|name| name.parse().expect("a policy"))
}

fn kicks() -> impl Strategy<Value = Kicks> {
    let one = (1..40u16, 1..200u64).prop_map(|(entries, us)| Kicks::Defer {
        entries,
        time: crate::Ns::from_us(us),
    });
    prop_oneof![Just(Kicks::EventIdx), Just(Kicks::Adaptive), one]
}

#[test]
fn no_session_does_harm() {
    let reached = std::cell::RefCell::new(Reached::default());
    let all = (begin(), acts(), [kind(), kind()], kicks(), any::<bool>());
    let done = runner(384).run(&all, |(begin, acts, calls, kicks, leaves)| {
        let mut world = World::new(calls, kicks);
        world.act(&Act::Connect)?;
        world.turn()?;
        world.act(&Act::Room(0, 30))?;
        world.act(&begin)?;
        for act in &acts {
            world.act(act)?;
        }
        world.turn()?;
        if leaves {
            // What was its front end's goes with it, not with the back end.
            world.guest.leave();
            world.turn()?;
            nothing_kept(&world.guest)?;
        }
        world.end(&mut reached.borrow_mut())
    });
    done.unwrap_or_else(|why| panic!("{why}"));
    let reached = reached.into_inner();
    let Reached {
        sent,
        received,
        chains,
        dropped,
        starts,
        broken,
        broken_off,
        vanished,
        waits,
        calls,
        reclaimed,
    } = reached;
    let all = [
        sent, received, chains, dropped, starts, broken, broken_off, vanished, waits, calls,
        reclaimed,
    ];
    assert!(all.into_iter().all(|count| count > 0), "{reached:?}");
}

/// A ring that is never empty: others get their turn, and a call ends each.
#[test]
fn a_turn_ends_although_there_is_more() {
    let batch = "batch".parse().expect("a policy");
    let mut world = World::new([batch; 2], Kicks::EventIdx);
    let begin = Act::Begin {
        features: 1 << 32,
        size: 512,
        second: false,
    };
    for act in [Act::Connect, Act::Turns(1), Act::Room(0, 1000), begin] {
        world.act(&act).expect("fair");
    }
    world.turn().expect("fair");
    for n in 0..400 {
        world.guest.add(1, &[(n * 0x80, 72)]);
    }
    let went = |world: &World| world.ports[0].with(|inside| inside.went.len());
    for expected in [256, 400] {
        let calls = world.guest.calls[1].0.read().unwrap_or(0);
        assert!(calls <= 1, "{calls} calls");
        world.turn().expect("fair");
        assert_eq!(went(&world), expected);
    }
    let calls = world.guest.calls[1].0.read();
    assert_eq!(calls, Ok(1), "of the second turn");
}

/// Found by the above: it was neither handed on nor dropped, and the program took that for a fault of its own.
#[test]
fn a_packet_whose_queue_breaks_is_counted() {
    let batch = "batch".parse().expect("a policy");
    let mut world = World::new([batch; 2], Kicks::EventIdx);
    let begin = Act::Begin {
        features: 1 << 32,
        size: 8,
        second: false,
    };
    let nowhere = Act::Add {
        queue: 0,
        parts: vec![(MEMORY_LEN, 1600)],
    };
    let comes = Act::Comes {
        pair: 0,
        len: 60,
        offload: Offload::default(),
    };
    for act in [
        Act::Connect,
        Act::Turns(1),
        begin,
        nowhere,
        comes,
        Act::Turns(2),
    ] {
        world.act(&act).expect("fair");
    }
    let mut reached = Reached::default();
    world.end(&mut reached).expect("conserved");
    assert_eq!(
        (reached.broken, reached.dropped, reached.received),
        (1, 1, 0)
    );
}
