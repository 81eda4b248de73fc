//! A client with many connections and few requests under way: each connection has its turn.
use super::PairPlan;
use crate::app::{App, AppCounts};
use crate::sockets::Sockets;
use crate::{InstanceError, Ns};
use hopscope_load::connections::pattern::Pattern;
use hopscope_stack_engine::{Event, SocketError, SocketId, SocketKind};
use std::net::SocketAddr;

/// Connections that are being opened at a time.
const OPENING: usize = 64;
/// From one connection to the next that is asked: far apart, so that each is as cold as it will be.
const STRIDE: usize = 7_919;

pub(super) struct Rounds {
    plan: PairPlan,
    to: Vec<SocketAddr>,
    pattern: Pattern,
    back: Vec<u8>,
    sockets: Vec<Asked>,
    opening: usize,
    open: usize,
    next: usize,
    started: u64,
    answered: u64,
    corrupt: u64,
}

struct Asked {
    id: SocketId,
    is_open: bool,
    /// The request that is under way, and bytes of its response that are there.
    number: Option<u64>,
    received: usize,
}

impl Rounds {
    pub(super) fn new(plan: PairPlan, to: Vec<SocketAddr>) -> Rounds {
        Rounds {
            plan,
            to,
            pattern: Pattern::new(1, plan.size),
            back: vec![0; plan.size],
            sockets: Vec::with_capacity(plan.connections as usize),
            opening: 0,
            open: 0,
            next: 0,
            started: 0,
            answered: 0,
            corrupt: 0,
        }
    }

    pub(super) fn are_open(&self) -> bool {
        self.open == self.plan.connections as usize
    }

    pub(super) fn are_done(&self) -> bool {
        self.answered >= self.plan.requests
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered
    }

    pub(super) fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// Once all are open.
    pub(super) fn begin(&mut self, sockets: &mut Sockets<'_>) {
        for _ in 0..self
            .plan
            .depth
            .min(self.plan.active)
            .min(self.plan.connections)
        {
            self.request(sockets);
        }
    }

    fn open_more(&mut self, sockets: &mut Sockets<'_>) -> Result<(), InstanceError> {
        while self.opening < OPENING && self.sockets.len() < self.plan.connections as usize {
            let n = self.sockets.len();
            let to = self.to[n % self.to.len()];
            let failed = |source| InstanceError::Connect { to, source };
            let id = sockets.engine.socket(SocketKind::Tcp, false);
            let id = id.map_err(failed)?;
            let set = sockets.engine.set_token(id, n as u64 + 1);
            set.map_err(failed)?;
            match sockets.engine.connect(sockets.now, id, Some(to)) {
                Ok(()) | Err(SocketError::InProgress) => {}
                Err(error) => return Err(failed(error)),
            }
            self.sockets.push(Asked {
                id,
                is_open: false,
                number: None,
                received: 0,
            });
            self.opening += 1;
        }
        Ok(())
    }

    fn request(&mut self, sockets: &mut Sockets<'_>) {
        if self.started >= self.plan.requests {
            return;
        }
        let n = self.next;
        let active = self.sockets.len().min(self.plan.active.max(1) as usize);
        self.next = (self.next + STRIDE) % active;
        let asked = &mut self.sockets[n];
        if asked.number.is_some() {
            // Few connections: it is asked when it has answered.
            return;
        }
        let number = self.started;
        let message = self.pattern.message(n as u64, number, self.plan.size);
        // A request fits the empty send buffer.
        if sockets.send(asked.id, message) == Ok(self.plan.size) {
            (asked.number, asked.received) = (Some(number), 0);
            self.started += 1;
        }
    }

    fn receive(&mut self, sockets: &mut Sockets<'_>, n: usize) {
        let asked = &mut self.sockets[n];
        let Some(number) = asked.number else {
            return;
        };
        let room = self.plan.size - asked.received;
        let Ok(read) = sockets.recv(asked.id, &mut self.back[..room]) else {
            return;
        };
        let message = self.pattern.message(n as u64, number, self.plan.size);
        let expected = &message[asked.received..asked.received + read];
        self.corrupt += u64::from(self.back[..read] != *expected);
        asked.received += read;
        if asked.received == self.plan.size {
            asked.number = None;
            self.answered += 1;
            self.request(sockets);
        }
    }
}

impl App for Rounds {
    fn start(&mut self, sockets: &mut Sockets<'_>) -> Result<(), InstanceError> {
        self.open_more(sockets)
    }

    fn event(&mut self, sockets: &mut Sockets<'_>, event: Event) {
        let Some(n) = event.token.checked_sub(1) else {
            return;
        };
        let n = n as usize;
        if !self.sockets[n].is_open && event.readiness.writable {
            self.sockets[n].is_open = true;
            self.opening -= 1;
            self.open += 1;
            // What fails here is seen by what does not open.
            let _ = self.open_more(sockets);
        }
        if event.readiness.readable {
            self.receive(sockets, n);
        }
    }

    fn deadline(&self) -> Option<Ns> {
        None
    }

    fn counts(&self) -> AppCounts {
        AppCounts {
            answered: self.answered,
            corrupt: self.corrupt,
            ..AppCounts::default()
        }
    }
}
