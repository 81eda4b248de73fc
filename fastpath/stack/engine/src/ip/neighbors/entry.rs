//! One neighbour: its state (RFC 4861, 7.3.2, for ARP too) and the frames that wait for its address.
use super::super::outbox::Frame;
use crate::Ns;
use crate::wire::ethernet::Mac;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Of one neighbour (Linux, unres_qlen_bytes); beyond it the oldest frame makes room.
const MAX_WAITING_BYTES: usize = 212_992;
const MAX_WAITING: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// No entry.
    Free,
    /// Solicited, no answer yet.
    Incomplete,
    Reachable {
        until: Ns,
    },
    /// The address may be old.
    Stale,
    /// Used while stale: somebody may confirm it before it is probed.
    Delay,
    Probe,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub address: IpAddr,
    pub mac: Mac,
    pub state: State,
    /// Counts the entries that had this place.
    pub generation: u32,
    /// Solicitations since the state was entered.
    pub probes: u8,
    /// Something was sent through it.
    pub used: bool,
    /// When `mac` was last set.
    pub updated: Ns,
    /// When its timer fires; Incomplete, Delay and Probe have one.
    pub due: Option<Ns>,
    pub waiting: VecDeque<Frame>,
    pub waiting_bytes: usize,
}

impl Entry {
    pub(super) fn free() -> Entry {
        Entry {
            address: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
            mac: Mac::default(),
            state: State::Free,
            generation: 0,
            probes: 0,
            used: false,
            updated: Ns(0),
            due: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    pub(super) fn has_mac(&self) -> bool {
        !matches!(self.state, State::Free | State::Incomplete)
    }

    pub(super) fn enter(&mut self, state: State, due: Option<Ns>) {
        self.state = state;
        self.due = due;
        self.probes = 0;
    }

    /// Frames that had to go, oldest first.
    pub(super) fn wait(&mut self, frame: Frame) -> usize {
        self.waiting_bytes += frame.bytes.len();
        self.waiting.push_back(frame);
        let mut dropped = 0;
        while self.waiting_bytes > MAX_WAITING_BYTES || self.waiting.len() > MAX_WAITING {
            let Some(oldest) = self.waiting.pop_front() else {
                break;
            };
            self.waiting_bytes -= oldest.bytes.len();
            dropped += 1;
        }
        dropped
    }

    pub(super) fn take_waiting(&mut self) -> VecDeque<Frame> {
        self.waiting_bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}
