//! What a personality routine makes of an exception table, written a second time: one question at a time, as unwinders ask it.
use super::Memory;

#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Answer {
    /// No call site: C++ terminates.
    NotListed,
    NoLandingPad,
    Land {
        pad: u64,
        /// Numbers and types of the chain of actions: zero number for clean-ups.
        actions: Vec<Action>,
    },
}

#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Action {
    CleanUp,
    /// Address of the type, or of the slot that holds it.
    Catch {
        indirect: bool,
        address: u64,
    },
    Filter(Vec<(bool, u64)>),
}

struct In<'m, 'd> {
    memory: &'m Memory<'d>,
    at: u64,
}

impl In<'_, '_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let bytes = *self.memory.at(self.at).unwrap().first_chunk().unwrap();
        self.at += N as u64;
        bytes
    }

    fn unsigned(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let [byte] = self.bytes();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn signed(&mut self) -> i64 {
        let from = self.at;
        let value = self.unsigned();
        let bits = 7 * (self.at - from) as u32;
        if bits >= 64 {
            value as i64
        } else {
            (value << (64 - bits)) as i64 >> (64 - bits)
        }
    }

    fn encoded(&mut self, encoding: u8) -> u64 {
        let from = self.at;
        let value = match encoding & 0x0f {
            0x00 => u64::from_le_bytes(self.bytes()),
            0x01 => self.unsigned(),
            0x03 => u32::from_le_bytes(self.bytes()).into(),
            0x0b => i64::from(i32::from_le_bytes(self.bytes())) as u64,
            0x0c => u64::from_le_bytes(self.bytes()),
            other => panic!("format {other:#x}"),
        };
        match encoding & 0x70 {
            0x00 => value,
            _ if value == 0 => 0,
            0x10 => value.wrapping_add(from),
            other => panic!("application {other:#x}"),
        }
    }
}

/// `ip`: an address of the call, as unwinders have it: the return address less one.
pub fn ask(memory: &Memory, table: u64, function: u64, ip: u64) -> Answer {
    let mut lsda = In { memory, at: table };
    let [encoding] = lsda.bytes();
    let base = match encoding {
        0xff => function,
        _ => lsda.encoded(encoding),
    };
    let [type_encoding] = lsda.bytes();
    let type_base = (type_encoding != 0xff).then(|| {
        let offset = lsda.unsigned();
        lsda.at + offset
    });
    let [site_encoding] = lsda.bytes();
    let length = lsda.unsigned();
    let actions = lsda.at + length;
    while lsda.at < actions {
        let start = function + lsda.encoded(site_encoding);
        let end = start + lsda.encoded(site_encoding);
        let pad = lsda.encoded(site_encoding);
        let action = lsda.unsigned();
        if ip < start {
            break;
        }
        if ip >= end {
            continue;
        }
        if pad == 0 {
            return Answer::NoLandingPad;
        }
        let types = type_base.map(|base| (base, type_encoding));
        return Answer::Land {
            pad: base.wrapping_add(pad),
            actions: match action {
                0 => vec![Action::CleanUp],
                _ => chain(memory, actions + action - 1, types),
            },
        };
    }
    Answer::NotListed
}

fn chain(memory: &Memory, mut record: u64, types: Option<(u64, u8)>) -> Vec<Action> {
    let mut found = Vec::new();
    let one = |number: u64| {
        let (base, encoding) = types.unwrap();
        let size = match encoding & 0x0f {
            0x03 | 0x0b => 4,
            _ => 8,
        };
        let address = In {
            memory,
            at: base - number * size,
        }
        .encoded(encoding);
        (encoding & 0x80 != 0, address)
    };
    loop {
        let mut at = In { memory, at: record };
        let filter = at.signed();
        found.push(match filter {
            0 => Action::CleanUp,
            1.. => {
                let (indirect, address) = one(filter as u64);
                Action::Catch { indirect, address }
            }
            _ => {
                let mut list = In {
                    memory,
                    at: types.unwrap().0 + (-filter - 1) as u64,
                };
                let numbers = std::iter::from_fn(|| Some(list.unsigned()).filter(|n| *n > 0));
                Action::Filter(numbers.map(one).collect())
            }
        });
        let from = at.at;
        match at.signed() {
            0 => return found,
            way => record = from.wrapping_add_signed(way),
        }
        assert!(found.len() < 10_000);
    }
}
