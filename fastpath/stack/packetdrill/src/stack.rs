//! The engine, its clock, and what it sent.
use crate::descriptors::Descriptors;
use crate::sysctls;
use hopscope_stack_engine::frame::RxMeta;
use hopscope_stack_engine::{Engine, Ns};
use std::collections::VecDeque;

pub struct Stack {
    pub engine: Engine,
    pub now: Ns,
    pub descriptors: Descriptors,
    /// Packets, with the time at which they were sent.
    pub sent: VecDeque<(Ns, Vec<u8>)>,
    slot: Vec<u8>,
}

impl Stack {
    pub fn new() -> Stack {
        Stack {
            engine: Engine::new(sysctls::config()).expect("sysctls that the engine can have"),
            now: Ns::from_ms(1_000_000),
            descriptors: Descriptors::default(),
            sent: VecDeque::new(),
            slot: vec![0; 66_000],
        }
    }

    /// After every call: takes what there is to send, and notes what happened on sockets.
    pub fn pump(&mut self) {
        while let Some(frame) = self.engine.transmit(self.now, &mut self.slot) {
            let packet = self.slot[..frame.len].to_vec();
            self.sent.push_back((self.now, packet));
        }
        while let Some(event) = self.engine.next_event() {
            for epoll in self.descriptors.epolls() {
                epoll.happened(event.socket);
            }
        }
    }

    pub fn receive(&mut self, packet: &[u8]) {
        self.engine.receive(self.now, packet, RxMeta::default());
        self.pump();
    }

    /// Goes to the next timer, at most to `end`. True: there is more to do before `end`.
    pub fn step(&mut self, end: Ns) -> bool {
        self.pump();
        match self.engine.poll_at().filter(|at| *at <= end) {
            Some(at) => {
                self.now = self.now.max(at);
                self.engine.advance(self.now);
                self.pump();
                true
            }
            None => {
                self.now = self.now.max(end);
                false
            }
        }
    }
}
