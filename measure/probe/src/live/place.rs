//! Where everything goes in the target's address space, decided before anything is touched.
use super::build::{BuildError, Segment};
use super::counter_room;
use super::table::Area;
use hopscope_event::FunctionId;
use hopscope_event::layout::{Context, PAGE, pool_bytes};
use hopscope_process::maps::{self, Mapping};
use std::ops::Range;

/// Addresses of one attachment.
#[derive(Debug, Clone)]
pub struct Places {
    pub header: Area,
    pub contexts: Area,
    pub pool: Area,
    pub counter_pages: Area,
    pub segments: Vec<Area>,
}

impl Places {
    pub fn taken(&self) -> Vec<Range<u64>> {
        let areas = self.segments.iter();
        let areas = areas.chain([
            &self.header,
            &self.contexts,
            &self.pool,
            &self.counter_pages,
        ]);
        let there = areas.filter(|a| a.len > 0);
        there.map(|a| a.at..a.at + a.len).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub contexts: u32,
    pub ring_records_log2: u32,
    pub header_bytes: u64,
    /// Threads read counters.
    pub counters: bool,
    /// Of the recording that copies are added to.
    pub there: Option<RingAreas>,
}

/// What probes write to.
#[derive(Debug, Clone, Copy)]
pub struct RingAreas {
    pub contexts: Area,
    pub pool: Area,
    pub counter_pages: Area,
}

impl Sizes {
    /// One context more than there are rings: the spare one belongs to nobody, so that its
    /// threads take the slow path.
    pub fn contexts_bytes(&self) -> u64 {
        let scratch = if self.counters {
            counter_room::SCRATCH_BYTES
        } else {
            0
        };
        let contexts = (self.contexts as usize + 1) * size_of::<Context>();
        (contexts + scratch).next_multiple_of(PAGE) as u64
    }
}

/// Segments near their modules first: in a program that lies low there is little room in reach of
/// it. Then the data, near the libraries, in reach of nothing.
pub fn choose(
    mappings: &[Mapping],
    segments: &[Segment],
    sizes: &Sizes,
) -> Result<Places, BuildError> {
    let mut taken = Vec::new();
    let mut areas = Vec::with_capacity(segments.len());
    for segment in segments {
        let (at, len) = (segment.place(mappings, &mut taken)?, segment.len());
        areas.push(Area { at, len });
    }
    let anywhere = near_libraries(mappings);
    let mut area = |len: u64| {
        let at = maps::find_gap(mappings, &taken, len, &anywhere, 1 << 46).ok_or_else(|| {
            BuildError::NoGap {
                len,
                reach: anywhere.clone(),
            }
        })?;
        taken.push(at..at + len);
        Ok::<Area, BuildError>(Area { at, len })
    };
    let header = area(sizes.header_bytes.next_multiple_of(PAGE as u64))?;
    let data = match sizes.there {
        Some(there) => there,
        None => RingAreas {
            contexts: area(sizes.contexts_bytes())?,
            pool: area(pool_bytes(sizes.contexts as usize, sizes.ring_records_log2) as u64)?,
            counter_pages: match sizes.counters {
                true => area(counter_room::bytes(sizes.contexts as usize))?,
                false => Area::nowhere(),
            },
        },
    };
    Ok(Places {
        header,
        contexts: data.contexts,
        pool: data.pool,
        counter_pages: data.counter_pages,
        segments: areas,
    })
}

/// Functions whose segments have no place near their module, with the reason.
pub fn without_room(mappings: &[Mapping], segments: &[Segment]) -> Vec<(FunctionId, String)> {
    let mut taken = Vec::new();
    let mut without = Vec::new();
    for segment in segments {
        if let Err(why) = segment.place(mappings, &mut taken) {
            without.extend(segment.functions().map(|id| (id, why.to_string())));
        }
    }
    without
}

/// Where libraries lie, or would: rings beside a static program would be in the way of its heap.
pub(super) fn near_libraries(mappings: &[Mapping]) -> Range<u64> {
    const USUAL: u64 = 0x7f00_0000_0000;
    let highest = mappings.iter().rev().find(|m| m.inode != 0);
    let at = highest.map_or(USUAL, |m| m.range.start);
    let at = if at < USUAL >> 1 { USUAL } else { at };
    at..at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rings_of_a_static_program_leave_its_neighbourhood_free() {
        let maps = maps::parse(
            "00400000-00440000 r-xp 00000000 fe:00 1234 /bin/static\n\
             00600000-00700000 rw-p 00000000 00:00 0 [heap]\n\
             7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n",
        );
        let sizes = Sizes {
            contexts: 64,
            ring_records_log2: 22,
            header_bytes: 1 << 20,
            counters: true,
            there: None,
        };
        let places = choose(&maps, &[], &sizes).unwrap();
        for area in [
            places.header,
            places.contexts,
            places.pool,
            places.counter_pages,
        ] {
            assert!(area.at > 1 << 40, "{area:?}");
        }
    }
}
