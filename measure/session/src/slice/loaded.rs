//! Hooks that are loaded, and what recordings say of them and of the machine.
use super::constants::measured;
use super::kernel::Kernel;
use crate::error::{Context, Result};
use hopscope_event::RecordingMeta;
use hopscope_event::slice::{RegionEntry, SliceCalibration, SliceEntry};
use hopscope_slice::interfaces;
use hopscope_slice::programs::{Slicer, SlicerOptions};
use hopscope_trace::host;

/// Where it is taken from what stamps cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calibration {
    /// Times are not corrected.
    Skipped,
    /// What was measured before, if it was.
    Kept,
    Anew,
}

pub struct Loaded {
    pub kernel: Kernel,
    pub entry: SliceEntry,
    pub meta: RecordingMeta,
}

impl Loaded {
    /// `filter`: the expression, as it was given. `duty_of`: hooks are attached for one in so many windows.
    ///
    /// # Errors
    /// This kernel, or this user, has none of the hooks.
    pub fn new(
        options: &SlicerOptions,
        regions: Vec<RegionEntry>,
        filter: String,
        calibration: Calibration,
        duty_of: u32,
    ) -> Result<Loaded> {
        // Meanwhile the kernel verifies programs.
        let looking = std::thread::spawn(|| (interfaces::names(), host::meta()));
        let mut slicer = Slicer::load(options)?;
        let looked = looking.join().ok();
        let (interfaces, meta) = looked.with_context(|| "looking at this machine")?;
        let calibration = match calibration {
            Calibration::Skipped => SliceCalibration::default(),
            kept => measured(&mut slicer, kept == Calibration::Anew)?,
        };
        let kernel = Kernel::new(slicer)?;
        let entry = kernel.entry(regions, filter, calibration, duty_of, interfaces);
        Ok(Loaded {
            kernel,
            entry,
            meta,
        })
    }
}
