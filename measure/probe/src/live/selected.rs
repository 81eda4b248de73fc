//! Functions that are to be measured, with what they are copied from.
use super::asked::Asked;
use super::led_slot::LedSlot;
use crate::instrument::body::inlined::Crossings;
use crate::instrument::body::unit::Piece;
use crate::instrument::capture::Capture;
use crate::locate::{Image, Load};
use hopscope_event::FunctionId;
use std::ops::Range;

/// A function that was accepted, in one process.
pub struct Selected<'a> {
    pub id: FunctionId,
    /// Of the file, as they were accepted; the first one begins with the entry.
    pub pieces: Vec<Piece<'a>>,
    pub red_zone_at_entry: bool,
    /// Address in the process minus address in the file.
    pub bias: u64,
    /// Where its module is mapped, data included.
    pub module: Range<u64>,
    /// Of that module; `None`: whatever lies there.
    pub load: Option<Load>,
    /// Exceptions may land in it.
    pub lands: bool,
    pub captures: &'a [Capture],
    /// Functions inlined into it that are timed.
    pub inlined: &'a Crossings,
    /// Its entry stays as it is: these lead into the copy.
    pub slots: Option<&'a [LedSlot]>,
    /// `None`: the copy gets no unwind tables.
    pub unwind: Option<Unwind<'a>>,
}

/// How the frame of a copy can be unwound.
#[derive(Clone, Copy)]
pub struct Unwind<'a> {
    pub image: &'a Image,
    /// Where the unwinders of its process ask for tables.
    pub asked: &'a [Asked],
    /// Exceptions or the end of a thread may pass through it.
    pub must: bool,
    /// Something in its process unwinds, or looks at, stacks.
    pub walked: bool,
}
