//! The back end turn by turn, with a packet port of its own: whatever is said and written, at any time.
use super::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

mod descriptors;
mod framing;
mod guest;
mod port;
mod recorded;
mod sessions;

fn runner(cases: u32) -> TestRunner {
    // PROPTEST_CASES counts more.
    let cases = cases.max(ProptestConfig::default().cases / 4);
    TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    })
}
