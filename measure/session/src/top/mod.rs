//! What the chosen functions do now, from the recorder's batches to a screen or lines: a row each, interval after
//! interval.
mod by;
mod keys;
mod lines;
mod live;
mod save;
mod screen;
mod show;
mod shown;
mod table;
mod view;

pub use by::By;
pub use live::{Live, Shared, Snapshot};
pub use show::show;
pub use shown::Shown;
pub use table::Name;
