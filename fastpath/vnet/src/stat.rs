//! What a back end that runs has counted, as its control socket tells it: rows for people, Prometheus' format, and
//! what other policies would have done.
mod error;
mod explain;
mod prometheus;
mod reading;
mod table;

pub use error::StatError;
pub use explain::write as write_explanation;
pub use prometheus::text as prometheus_text;
pub use reading::Reading;
pub use table::Table;

/// Of pair 0 alone the number says nothing, but scripts want one form.
pub fn queue_name(pair: u64, direction: &str) -> String {
    format!("{direction}{pair}")
}
