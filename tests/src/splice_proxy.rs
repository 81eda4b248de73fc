//! `hopscope splice proxy`: what one end says the other hears, by either engine, and nothing stays behind.
use hopscope_tests::Suite;

mod bounds;
mod bytes;
mod choosing;
mod early;
mod ends;
mod lifecycle;
mod programs;
mod proxy;
mod urgent;

pub(crate) fn register(suite: &mut Suite) {
    bytes::register(suite);
    early::register(suite);
    ends::register(suite);
    bounds::register(suite);
    choosing::register(suite);
    lifecycle::register(suite);
    programs::register(suite);
    urgent::register(suite);
}

/// For tests that run with both.
const ENGINES: [&str; 2] = ["kernel", "user"];
