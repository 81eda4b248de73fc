//! A server that stands still once is seen in the percentiles of an open loop. A closed loop does
//! not ask meanwhile, and so hardly sees it.
use super::{balance, number, servers, summary};
use anyhow::{Result, ensure};
use hopscope_tests::Suite;
use std::time::Duration;

const STALL: Duration = Duration::from_millis(100);

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "load_connections::a_stall_is_in_the_99th_percentile",
        &[],
        stalls,
    );
    suite.case(
        "load_connections::a_stall_on_one_of_many_connections_too",
        &[],
        one_of_many,
    );
}

fn stalling() -> Result<String> {
    let server = servers::start(|number, _| {
        if number == 50 {
            std::thread::sleep(STALL);
        }
    });
    Ok(server?.to_string())
}

/// 2,000 requests at 1,000 a second: 100 are due during the stall, 5 in 100, and the request due
/// when half of the stall was over waits for the other half. So more than 1 in 50 wait 50 ms.
fn stalls() -> Result<()> {
    let open = summary(&["rr", &stalling()?, "--rate", "1000", "-c", "2000"], 0)?;
    let closed = summary(&["rr", &stalling()?, "--closed", "-c", "2000"], 0)?;
    for run in [&open, &closed] {
        balance(run)?;
        ensure!(number(run, "/done")? == 2000, "{run}");
        let max_ns = number(run, "/latency/max_ns")?;
        ensure!(
            u128::from(max_ns) >= STALL.as_nanos(),
            "the stall is not the maximum: {run}"
        );
    }
    let p99_ns = |run| number(run, "/latency/p99_ns");
    ensure!(
        p99_ns(&open)? >= 50_000_000,
        "open loop missed the stall: {open}"
    );
    ensure!(
        p99_ns(&closed)? < p99_ns(&open)?,
        "the closed loop saw it as well: {closed}"
    );
    Ok(())
}

/// The requests of the connection that stands still wait for it; they do not move to another.
fn one_of_many() -> Result<()> {
    let open = summary(
        &[
            "rr",
            &stalling()?,
            "--rate",
            "2000",
            "-n",
            "4",
            "-c",
            "4000",
        ],
        0,
    )?;
    balance(&open)?;
    ensure!(number(&open, "/done")? == 4000, "{open}");
    ensure!(number(&open, "/latency/p99_ns")? >= 50_000_000, "{open}");
    Ok(())
}
