//! A recording from attach to summary: the chosen calls of processes, or of a command, into a file or a flight recorder.
mod budget;
mod check_cost;
mod distress;
mod dry_stop;
mod end;
mod flight;
mod one_file;
mod recorder;
mod request;
mod sampling;
mod session;
mod slices;
mod stops;
mod summary;
mod trigger;

pub use check_cost::parse_duration as parse_check_cost;
pub use end::Finished;
pub use request::{DistressRequest, FlightRequest, RecordRequest};
pub use session::run;

pub(crate) use flight::begun;
