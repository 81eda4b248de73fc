//! What becomes of a frame.
use super::wire::mac;
use crate::wire::checksum::Sum;
use crate::wire::ethernet::HEADER_BYTES;
use crate::wire::{be16, icmp, ipv4, protocol};
use proptest::prelude::*;
use std::net::IpAddr;

#[derive(Debug, Clone)]
pub(super) enum Fate {
    Arrive,
    Vanish,
    Twice,
    /// Behind all others.
    Late,
    /// Bytes are changed; checksums made right again, or not.
    Change(Vec<(prop::sample::Index, u8)>, bool),
    Cut(prop::sample::Index),
    /// In fragments of so many times eight bytes, the last first, some twice.
    Split(u8, bool),
    /// A router answers it with an error.
    Refuse(u8, u8, u16),
    /// Another host's ARP reply comes in its place.
    Spoof(u8),
}

pub(super) fn fate() -> impl Strategy<Value = Fate> {
    let change = (any::<prop::sample::Index>(), any::<u8>());
    prop_oneof![
        6 => Just(Fate::Arrive),
        2 => Just(Fate::Vanish),
        1 => Just(Fate::Twice),
        1 => Just(Fate::Late),
        4 => (prop::collection::vec(change, 1..4), any::<bool>()).prop_map(|(c, r)| Fate::Change(c, r)),
        1 => any::<prop::sample::Index>().prop_map(Fate::Cut),
        2 => (1u8..100, any::<bool>()).prop_map(|(p, t)| Fate::Split(p, t)),
        2 => (prop::sample::select(vec![3u8, 11, 12]), 0u8..16, any::<u16>())
            .prop_map(|(k, c, m)| Fate::Refuse(k, c, m)),
        1 => any::<u8>().prop_map(Fate::Spoof),
    ]
}

#[derive(Debug, Default)]
pub(super) struct Forged {
    pub(super) on: Vec<Vec<u8>>,
    pub(super) back: Option<Vec<u8>>,
    pub(super) later: Option<Vec<u8>>,
}

pub(super) fn forged(fate: &Fate, frame: &[u8], end: usize) -> Forged {
    let mut forged = Forged::default();
    match fate {
        Fate::Arrive => forged.on.push(frame.to_vec()),
        Fate::Vanish => {}
        Fate::Twice => forged.on = vec![frame.to_vec(); 2],
        Fate::Late => forged.later = Some(frame.to_vec()),
        Fate::Change(changes, repaired) => {
            let mut frame = frame.to_vec();
            for (at, byte) in changes {
                let at = at.index(frame.len());
                frame[at] ^= *byte;
            }
            if *repaired {
                repair(&mut frame);
            }
            forged.on.push(frame);
        }
        Fate::Cut(at) => forged.on.push(frame[..at.index(frame.len())].to_vec()),
        Fate::Split(eights, twice) => forged.on = split(frame, usize::from(*eights) * 8, *twice),
        Fate::Refuse(kind, code, mtu) => forged.back = refuse(frame, *kind, *code, *mtu, end),
        Fate::Spoof(last) => forged.on.push(spoof(end, *last)),
    }
    forged
}

fn is_v4(frame: &[u8]) -> bool {
    frame.len() >= HEADER_BYTES + ipv4::HEADER_BYTES && frame[12..14] == [8, 0]
}

/// Checksums of IPv4 and of what is in it, as if nothing had happened.
fn repair(frame: &mut [u8]) {
    if !is_v4(frame) || frame[14] != 0x45 {
        return;
    }
    set(frame, 24, Sum::default());
    let header = Sum::of(&frame[14..34]);
    set_field(frame, 24, header.field());
    let total = usize::from(be16(frame, 16));
    let Some(transport) = frame.get(34..14 + total.max(20)) else {
        return;
    };
    let (len, protocol) = (transport.len(), frame[23]);
    let at = match protocol {
        protocol::TCP if len >= 20 => 34 + 16,
        protocol::UDP if len >= 8 => 34 + 6,
        protocol::ICMP if len >= 8 => 34 + 2,
        _ => return,
    };
    set(frame, at, Sum::default());
    let address =
        |at: usize| IpAddr::from([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let pseudo = match protocol {
        protocol::ICMP => Sum::default(),
        _ => Sum::of_pseudo_header(address(26), address(30), protocol, len as u32),
    };
    let field = pseudo.and(Sum::of(&frame[34..34 + len])).field();
    set_field(frame, at, field);
}

fn set(frame: &mut [u8], at: usize, sum: Sum) {
    set_field(frame, at, sum.partial());
}

fn set_field(frame: &mut [u8], at: usize, field: u16) {
    frame[at..at + 2].copy_from_slice(&field.to_be_bytes());
}

fn split(frame: &[u8], piece: usize, twice: bool) -> Vec<Vec<u8>> {
    if !is_v4(frame) {
        return vec![frame.to_vec()];
    }
    let payload = &frame[34..];
    let pieces = payload.chunks(piece.max(24)).enumerate();
    let mut fragments: Vec<Vec<u8>> = pieces
        .map(|(i, bytes)| {
            let offset = i * piece.max(24);
            let more = u16::from(offset + bytes.len() < payload.len());
            let mut fragment = [&frame[..34], bytes].concat();
            set_field(&mut fragment, 16, (20 + bytes.len()) as u16);
            set_field(&mut fragment, 20, (offset / 8) as u16 | more << 13);
            set_field(&mut fragment, 24, 0);
            let field = Sum::of(&fragment[14..34]).field();
            set_field(&mut fragment, 24, field);
            fragment
        })
        .rev()
        .collect();
    if twice && let Some(first) = fragments.first().cloned() {
        fragments.push(first);
    }
    fragments
}

/// An ICMP error to the sender of a frame to host `end`, from the host itself.
fn refuse(frame: &[u8], kind: u8, code: u8, mtu: u16, end: usize) -> Option<Vec<u8>> {
    if !is_v4(frame) {
        return None;
    }
    let quoted = &frame[14..frame.len().min(14 + 20 + 8 + usize::from(code))];
    let mut message = vec![0; icmp::HEADER_BYTES];
    icmp::emit(message.first_chunk_mut()?, kind, code, mtu.into());
    message.extend_from_slice(quoted);
    let field = Sum::of(&message).field();
    icmp::set_checksum(&mut message, field);
    let mut bytes = [&mac(1 - end)[..], &mac(end), &[8, 0], &[0; 20]].concat();
    ipv4::Header {
        source: [10, 0, 0, end as u8 + 1].into(),
        destination: [10, 0, 0, 2 - end as u8].into(),
        protocol: protocol::ICMP,
        ttl: 64,
        traffic_class: 0,
        identification: 0,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        payload_bytes: message.len() as u16,
    }
    .emit(bytes[14..].first_chunk_mut()?);
    bytes.extend(message);
    Some(bytes)
}

/// An ARP reply of nobody's to host `end`.
fn spoof(end: usize, last: u8) -> Vec<u8> {
    let sender = [10, 0, 0, last];
    let target = [10, 0, 0, end as u8 + 1];
    let foreign = [2, 0, 0, 0, 9, last];
    [
        &mac(end)[..],
        &foreign,
        &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2],
        &foreign,
        &sender,
        &mac(end),
        &target,
    ]
    .concat()
}
