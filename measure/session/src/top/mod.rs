//! What the chosen functions do now, from the recorder's batches to a screen or lines: a row each, interval after
//! interval.
mod by;
mod intervals;
mod keys;
mod lines;
mod live;
mod names;
mod request;
mod save;
mod screen;
mod session;
mod show;
mod shown;
mod table;
mod view;

pub use by::By;
pub use request::TopRequest;
pub use session::run;
