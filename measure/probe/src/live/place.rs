//! Where everything goes in the target's address space, decided before anything is touched.
use super::build::{BuildError, Segment};
use super::maps::{self, Mapping};
use super::table::Area;
use hopscope_event::layout::{Context, PAGE, pool_bytes};
use std::ops::Range;

/// Addresses of one attachment.
#[derive(Debug, Clone)]
pub struct Places {
    pub header: Area,
    pub contexts: Area,
    pub pool: Area,
    pub segments: Vec<Area>,
}

#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub contexts: u32,
    pub ring_records_log2: u32,
    pub header_bytes: u64,
}

impl Sizes {
    /// One context more than there are rings: the spare one belongs to nobody, so that its
    /// threads take the slow path.
    pub fn contexts_bytes(&self) -> u64 {
        ((self.contexts as usize + 1) * size_of::<Context>()).next_multiple_of(PAGE) as u64
    }
}

/// Room for the data first, then the segments near their modules.
pub fn choose(
    mappings: &[Mapping],
    sizes: &Sizes,
) -> Result<(Places, Vec<Range<u64>>), BuildError> {
    let mut taken = Vec::new();
    let anywhere = mappings
        .last()
        .map_or(0x7f00_0000_0000..0x7f00_0000_1000, |_| {
            let libraries = mappings
                .iter()
                .rev()
                .find(|m| m.inode != 0)
                .map_or(0x7f00_0000_0000, |m| m.range.start);
            libraries..libraries + 1
        });
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
    let contexts = area(sizes.contexts_bytes())?;
    let pool = area(pool_bytes(sizes.contexts as usize, sizes.ring_records_log2) as u64)?;
    Ok((
        Places {
            header,
            contexts,
            pool,
            segments: Vec::new(),
        },
        taken,
    ))
}

impl Places {
    pub fn add_segments(
        &mut self,
        segments: &[Segment],
        mappings: &[Mapping],
        taken: &mut Vec<Range<u64>>,
    ) -> Result<(), BuildError> {
        self.segments.clear();
        for segment in segments {
            let at = segment.place(mappings, taken)?;
            self.segments.push(Area {
                at,
                len: segment.len(),
            });
        }
        Ok(())
    }
}
