//! Two ports joined by a cable that loses, delays, repeats, reorders and damages frames as asked,
//! and knows of each frame what it did.
mod impairment;
mod lane;
mod run;
mod tail;

pub use impairment::{Fate, Impairments, ImpairmentsError};
pub use lane::LaneCounts;
pub use run::{Bridge, Waiting};
