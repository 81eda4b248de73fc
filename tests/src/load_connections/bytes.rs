//! Every byte of an answer is compared.
use super::{balance, number, servers, summary};
use anyhow::{Result, ensure};
use hopscope_tests::Suite;

pub(super) fn register(suite: &mut Suite) {
    suite.case("load_connections::one_flipped_bit_is_found", &[], flipped);
    suite.case("load_connections::an_older_answer_is_found", &[], stale);
    suite.case(
        "load_connections::a_wrong_byte_at_the_sink_is_found",
        &[],
        sink,
    );
}

fn flipping() -> Result<String> {
    let server = servers::start(|number, bytes| {
        if number == 7 {
            bytes[31] ^= 0x10;
        }
    });
    Ok(server?.to_string())
}

fn flipped() -> Result<()> {
    for (connections, expected) in [("1", 1), ("3", 3)] {
        let target = flipping()?;
        let words = [
            "rr",
            &target,
            "--rate",
            "5000",
            "-c",
            "60",
            "-n",
            connections,
        ];
        let run = summary(&words, 1)?;
        balance(&run)?;
        let corrupt = number(&run, "/corrupt")?;
        ensure!(
            corrupt == expected,
            "{corrupt} wrong answers of {expected}: {run}"
        );
        let first = run["first_corrupt"].as_str().unwrap_or("");
        ensure!(first.contains("request 7: byte 31 is"), "{run}");
        // Without the comparison nobody notices.
        let unchecked = summary(&[&words[..], &["--no-verify"]].concat(), 0)?;
        ensure!(number(&unchecked, "/corrupt")? == 0, "{unchecked}");
    }
    let run = summary(&["crr", &flipping()?, "--closed", "-c", "20"], 0)?;
    ensure!(
        number(&run, "/done")? == 20,
        "no connection has an eighth request: {run}"
    );
    Ok(())
}

/// The right bytes of the request before: an answer that was sent once too often.
fn stale() -> Result<()> {
    let kept = std::sync::Arc::new(std::sync::Mutex::new([0; servers::SIZE]));
    let server = servers::start(move |number, bytes| {
        let Ok(mut kept) = kept.lock() else { return };
        match number {
            10 => *kept = *bytes,
            11 => *bytes = *kept,
            _ => {}
        }
    });
    let run = summary(&["rr", &server?.to_string(), "--closed", "-c", "40"], 1)?;
    balance(&run)?;
    ensure!(number(&run, "/corrupt")? == 1, "{run}");
    Ok(())
}

/// The sink expects the bytes of another seed: it says so, and the client with it.
fn sink() -> Result<()> {
    let server = super::counts::Own::start(&["--service", "sink", "--seed", "2"])?;
    let [listen, stats] = server.addresses();
    let words = [
        "stream",
        listen,
        "--server-stats",
        stats,
        "-c",
        "40",
        "--seed",
    ];
    let run = summary(&[&words[..], &["1"]].concat(), 1)?;
    ensure!(number(&run, "/server/counts/corrupt")? == 1, "{run}");
    let run = summary(&[&words[..], &["2"]].concat(), 0)?;
    ensure!(number(&run, "/server/counts/corrupt")? == 0, "{run}");
    Ok(())
}
