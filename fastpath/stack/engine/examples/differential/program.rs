//! A program: calls on both ends, from a seed.
use hopscope_openloop::random::{SplitMix64, seeded};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Send(usize),
    Recv(usize),
    Peek(usize),
    ShutRead,
    ShutWrite,
    ShutBoth,
    Close,
    /// close(2) with SO_LINGER of no seconds.
    Reset,
    Error,
    Poll,
    Unread,
}

pub struct Program {
    seed: u64,
    calls: Vec<(Who, Call)>,
}

/// More than a program sends in all: buffers never fill, whose sizes differ.
const SEND_MAX: u64 = 1_500;

impl Program {
    pub fn random(seed: u64) -> Program {
        let mut random = seeded(seed, "differential");
        let count = 4 + random.next_u64() % 12;
        let mut calls = Vec::new();
        for _ in 0..count {
            let who = if random.next_u64() & 1 == 0 {
                Who::Client
            } else {
                Who::Server
            };
            calls.push((who, call(&mut random)));
            // What everyone does after each call, without being told of anything.
            calls.push((Who::Client, Call::Poll));
            calls.push((Who::Server, Call::Poll));
        }
        Program { seed, calls }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn calls(&self) -> &[(Who, Call)] {
        &self.calls
    }
}

fn call(random: &mut SplitMix64) -> Call {
    let bytes = 1 + (random.next_u64() % SEND_MAX) as usize;
    match random.next_u64() % 20 {
        0..=5 => Call::Send(bytes),
        6..=10 => Call::Recv(bytes),
        11 => Call::Peek(bytes),
        12 => Call::ShutRead,
        13 | 14 => Call::ShutWrite,
        15 => Call::ShutBoth,
        16 => Call::Close,
        17 => Call::Reset,
        18 => Call::Error,
        _ => Call::Unread,
    }
}
