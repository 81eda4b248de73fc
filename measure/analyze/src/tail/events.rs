//! Late packets that lead back to the same run.
use super::blame::Blame;
use super::cause::{Evidence, Link};
use super::parts::Parts;
use crate::packet::Packet;
use hopscope_event::{StreamIx, Tsc};
use std::collections::HashMap;

/// Events that are told apart.
pub(super) const EVENTS_MAX: usize = 1 << 16;

/// A packet with its latency in parts and the chain back.
#[derive(Debug, Clone)]
pub struct Late {
    pub packet: Packet,
    pub parts: Parts,
    pub links: Vec<Link>,
    /// Links that are not listed.
    pub more_links: u32,
    /// Ticks of its latency that its event explains.
    pub explained_ticks: i64,
}

/// What the packets of one event have in common.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) blame: Blame,
    pub(super) packets: u64,
    pub(super) explained: i128,
    pub(super) latency: i128,
    /// How far from the ordinary, in standard deviations of its logarithm (runs, parts).
    pub(super) z: f64,
    /// ln of the chance that so many packets come in such a time.
    pub(super) chance_ln: f64,
    pub(super) evidence: Evidence,
    /// Of the run, for what took long in it.
    pub(super) flows: Vec<(StreamIx, u32)>,
    pub(super) large_batch: bool,
    /// Of a function that is rarely called: it took what it ordinarily takes, and that is more than
    /// an ordinary run.
    pub(super) holds_up: bool,
    pub(super) at: Tsc,
    /// The latest of its packets.
    pub(super) example: Late,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    by_blame: HashMap<Blame, Event>,
    /// Packets of events beyond those told apart, and their latency.
    pub(super) beyond: (u64, i128),
}

impl Events {
    pub(super) fn add(&mut self, event: Event) {
        if let Some(known) = self.by_blame.get_mut(&event.blame) {
            known.packets += event.packets;
            known.explained += event.explained;
            known.latency += event.latency;
            if event.z > known.z {
                known.z = event.z;
            }
            if event.chance_ln < known.chance_ln {
                (known.chance_ln, known.evidence) = (event.chance_ln, event.evidence);
            }
            if event.example.parts.latency_ticks > known.example.parts.latency_ticks {
                known.example = event.example;
            }
            return;
        }
        match self.by_blame.len() < EVENTS_MAX {
            true => _ = self.by_blame.insert(event.blame, event),
            false => {
                self.beyond.0 += event.packets;
                self.beyond.1 += event.latency;
            }
        }
    }

    /// In the order in which they happened.
    pub(super) fn into_sorted(self) -> Vec<Event> {
        let mut events: Vec<_> = self.by_blame.into_values().collect();
        events.sort_by_key(|e| (e.at, e.blame));
        events
    }
}
