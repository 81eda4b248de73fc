//! An accepted function, as it is kept until its process is attached to.
use crate::instrument::body::inlined::Crossings;
use crate::instrument::body::unit::Piece;
use crate::instrument::capture::Capture;
use crate::live::asked::Asked;
use crate::live::build::{Selected, Unwind};
use crate::live::led_slot::LedSlot;
use crate::locate::{Image, Load};
use hopscope_event::FunctionId;
use std::ops::Range;
use std::sync::Arc;

/// One accepted function of one process.
pub struct Item {
    pub id: FunctionId,
    pub(super) image: Arc<Image>,
    /// Of its pieces in the file; the first one begins with its entry.
    pub(super) ranges: Box<[Range<u64>]>,
    pub(super) red_zone_at_entry: bool,
    pub(super) lands: bool,
    pub(super) bias: u64,
    pub(super) module: Range<u64>,
    pub(super) load: Load,
    pub(super) captures: Vec<Capture>,
    pub(super) inlined: Crossings,
    /// Its entry stays: these lead into its copy.
    pub(super) slots: Option<Vec<LedSlot>>,
    pub(super) frames: Option<Frames>,
}

/// Its copy has unwind tables.
pub(super) struct Frames {
    /// Where the unwinders of its process ask for tables.
    pub(super) asked: Arc<[Asked]>,
    pub(super) must: bool,
    pub(super) walked: bool,
}

impl Item {
    /// Exceptions may pass through its frame.
    pub fn may_be_unwound(&self) -> bool {
        self.frames.as_ref().is_some_and(|f| f.must)
    }

    pub fn selected(&self) -> Selected<'_> {
        let pieces = self.ranges.iter().map(|range| {
            let bytes = self
                .image
                .bytes(range.clone())
                .expect("was decoded from there");
            Piece {
                svma: range.start,
                bytes,
            }
        });
        Selected {
            id: self.id,
            red_zone_at_entry: self.red_zone_at_entry,
            pieces: pieces.collect(),
            bias: self.bias,
            module: self.module.clone(),
            load: Some(self.load),
            lands: self.lands,
            captures: &self.captures,
            inlined: &self.inlined,
            slots: self.slots.as_deref(),
            unwind: self.frames.as_ref().map(|frames| Unwind {
                image: &self.image,
                asked: &frames.asked,
                must: frames.must,
                walked: frames.walked,
            }),
        }
    }
}
