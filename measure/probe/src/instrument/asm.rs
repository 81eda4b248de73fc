//! A byte buffer with labels. Code goes into zones so that what is hot lies together; where a
//! zone ends up is decided after everything has been emitted.
use std::fmt;

/// Where a piece of output lies. Zones are concatenated in this order, each aligned to 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Zone {
    /// Bodies with inline probes: what runs on every call.
    Hot,
    /// Fragments, conditional tail exits, dispatchers, the slow path.
    Cold,
    /// The way of each probe to the slow path; a zone of its own, because probes lie in the hot
    /// and in the cold one.
    Stub,
    /// Translation tables of indirect jumps (data).
    Table,
}

pub const ZONES: [Zone; 4] = [Zone::Hot, Zone::Cold, Zone::Stub, Zone::Table];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(u32);

#[derive(Debug, Clone, Copy, Default)]
enum Place {
    #[default]
    Unbound,
    At(Zone, u32),
    /// An address outside of the output.
    Absolute(u64),
}

#[derive(Debug, Clone, Copy)]
struct Fixup {
    zone: Zone,
    /// Offset of the 32-bit field.
    at: u32,
    /// Offset of the next instruction, which a displacement counts from.
    next: u32,
    label: Label,
    short: bool,
}

/// A displacement does not fit its field, or a label was never bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LinkError {
    OutOfRange { target: u64 },
    Unbound,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::OutOfRange { target } => {
                write!(f, "{target:#x} is out of reach of a displacement")
            }
            LinkError::Unbound => write!(f, "a label was never placed"),
        }
    }
}

impl std::error::Error for LinkError {}

#[derive(Debug, Default)]
pub struct Asm {
    zones: [Vec<u8>; 4],
    places: Vec<Place>,
    fixups: Vec<Fixup>,
}

impl Asm {
    pub fn new() -> Asm {
        Asm::default()
    }

    pub fn label(&mut self) -> Label {
        self.places.push(Place::Unbound);
        Label(self.places.len() as u32 - 1)
    }

    pub fn label_at(&mut self, address: u64) -> Label {
        self.places.push(Place::Absolute(address));
        Label(self.places.len() as u32 - 1)
    }

    pub fn bind(&mut self, zone: Zone, label: Label) {
        self.places[label.0 as usize] = Place::At(zone, self.zones[zone as usize].len() as u32);
    }

    /// Replaces bytes, and sets where in them a label is now.
    pub fn overwrite(&mut self, zone: Zone, at: u32, bytes: &[u8], labels: &[(Label, u32)]) {
        let at = at as usize;
        self.zones[zone as usize][at..at + bytes.len()].copy_from_slice(bytes);
        for (label, offset) in labels {
            self.places[label.0 as usize] = Place::At(zone, at as u32 + offset);
        }
    }

    pub fn position(&self, zone: Zone) -> u32 {
        self.zones[zone as usize].len() as u32
    }

    pub fn bytes(&mut self, zone: Zone, bytes: &[u8]) {
        self.zones[zone as usize].extend_from_slice(bytes);
    }

    pub fn words(&mut self, zone: Zone, words: &[u32]) {
        for word in words {
            self.bytes(zone, &word.to_le_bytes());
        }
    }

    /// What was put there so far.
    pub fn zone_bytes(&self, zone: Zone, range: std::ops::Range<u32>) -> &[u8] {
        &self.zones[zone as usize][range.start as usize..range.end as usize]
    }

    /// `opcode` followed by a 32-bit displacement to `label`, then `trailing` bytes.
    pub fn rel32(&mut self, zone: Zone, opcode: &[u8], label: Label, trailing: &[u8]) {
        self.bytes(zone, opcode);
        let at = self.position(zone);
        self.bytes(zone, &[0; 4]);
        self.bytes(zone, trailing);
        self.fixups.push(Fixup {
            zone,
            at,
            next: self.position(zone),
            label,
            short: false,
        });
    }

    /// `opcode` followed by an 8-bit displacement; the label must end up within reach.
    pub fn rel8(&mut self, zone: Zone, opcode: &[u8], label: Label) {
        self.bytes(zone, opcode);
        let at = self.position(zone);
        self.bytes(zone, &[0]);
        self.fixups.push(Fixup {
            zone,
            at,
            next: at + 1,
            label,
            short: true,
        });
    }

    /// Offset of a label bound in `zone`.
    pub fn offset_in(&self, zone: Zone, label: Label) -> u32 {
        match self.places[label.0 as usize] {
            Place::At(z, offset) if z == zone => offset,
            _ => panic!("label not bound in this zone"),
        }
    }

    /// Where a label is, unless it is an address outside of the output.
    pub fn place(&self, label: Label) -> Option<(Zone, u32)> {
        match self.places[label.0 as usize] {
            Place::At(zone, offset) => Some((zone, offset)),
            Place::Unbound | Place::Absolute(_) => None,
        }
    }

    /// 32-bit displacements from number `first` on: where each lies, and what it refers to. Ascending in each zone.
    pub fn references(&self, first: usize) -> impl Iterator<Item = (Zone, u32, Label)> {
        let long = self.fixups[first..].iter().filter(|f| !f.short);
        long.map(|f| (f.zone, f.at, f.label))
    }

    pub fn align(&mut self, zone: Zone, to: usize, filler: u8) {
        let bytes = &mut self.zones[zone as usize];
        bytes.resize(bytes.len().next_multiple_of(to), filler);
    }

    /// Length of everything once it is placed.
    pub fn len(&self) -> usize {
        self.zone_offset(Zone::Table) + self.zones[Zone::Table as usize].len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn zone_offset(&self, zone: Zone) -> usize {
        ZONES
            .iter()
            .take_while(|z| **z != zone)
            .map(|z| self.zones[*z as usize].len().next_multiple_of(64))
            .sum()
    }

    /// Address of a bound label when the output starts at `base`.
    pub fn address(&self, label: Label, base: u64) -> Option<u64> {
        match self.places[label.0 as usize] {
            Place::Unbound => None,
            Place::At(zone, offset) => Some(base + self.zone_offset(zone) as u64 + offset as u64),
            Place::Absolute(address) => Some(address),
        }
    }

    /// Address of an offset in a zone when the output starts at `base`.
    pub fn address_of(&self, zone: Zone, offset: u32, base: u64) -> u64 {
        base + self.zone_offset(zone) as u64 + offset as u64
    }

    /// How many displacements there are so far: which of them [`Asm::link_each`] could not resolve.
    pub fn fixups(&self) -> usize {
        self.fixups.len()
    }

    /// Resolves every displacement for an output at `base` and returns its bytes.
    ///
    /// # Errors
    /// The first one that cannot be resolved.
    pub fn link(&self, base: u64) -> Result<Vec<u8>, LinkError> {
        let (code, failed) = self.link_each(base);
        failed
            .into_iter()
            .next()
            .map_or(Ok(code), |(_, why)| Err(why))
    }

    /// The same, with the numbers of those that cannot be resolved, ascending; they stay 0.
    pub fn link_each(&self, base: u64) -> (Vec<u8>, Vec<(usize, LinkError)>) {
        let mut out = Vec::with_capacity(self.len());
        for zone in ZONES {
            out.resize(self.zone_offset(zone), 0xcc);
            out.extend_from_slice(&self.zones[zone as usize]);
        }
        let mut failed = Vec::new();
        for (n, fixup) in self.fixups.iter().enumerate() {
            if let Err(why) = self.resolve(fixup, base, &mut out) {
                failed.push((n, why));
            }
        }
        (out, failed)
    }

    fn resolve(&self, f: &Fixup, base: u64, out: &mut [u8]) -> Result<(), LinkError> {
        let target = self.address(f.label, base).ok_or(LinkError::Unbound)?;
        let next = self.address_of(f.zone, f.next, base);
        let distance = target.wrapping_sub(next) as i64;
        let at = self.zone_offset(f.zone) + f.at as usize;
        if f.short {
            let near = i8::try_from(distance).map_err(|_| LinkError::OutOfRange { target })?;
            out[at] = near as u8;
        } else {
            let far = i32::try_from(distance).map_err(|_| LinkError::OutOfRange { target })?;
            out[at..at + 4].copy_from_slice(&far.to_le_bytes());
        }
        Ok(())
    }
}
