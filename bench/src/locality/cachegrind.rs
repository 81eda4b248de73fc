//! Instructions, loads and first-level misses of the lookup, by valgrind's simulation of the caches:
//! exact, the same each time, and of no processor in particular.
use crate::Settings;
use crate::error::{Error, Result};
use crate::function::{BATCH, firewall};
use crate::program::run;
use serde::Serialize;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The lookup: all that `acl_match` does.
const FUNCTIONS: [&str; 3] = ["acl_match", "acl_lookup", "tuple_space_permit"];
const PACKETS: u32 = 50_000;

/// For each packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct CacheCounts {
    pub(super) instructions: f64,
    pub(super) loads: f64,
    pub(super) load_misses: f64,
}

pub(super) fn count(
    settings: &Settings,
    demo: Option<&PathBuf>,
    options: &[&str],
) -> Result<CacheCounts> {
    let program = firewall::program(settings, demo)?;
    let out = settings.build_dir.join("network-functions/cachegrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--log-file=/dev/null",
    ]);
    valgrind.arg(format!("--cachegrind-out-file={}", out.display()));
    valgrind
        .arg(program)
        .args(["--source", "memory"])
        .args(options);
    valgrind.args([
        "--burst",
        &BATCH.to_string(),
        "--packets",
        &PACKETS.to_string(),
    ]);
    run(&mut valgrind)?;
    let text = fs::read_to_string(&out).map_err(Error::file("read", &out))?;
    read(&text, &FUNCTIONS).ok_or_else(|| Error::Answer {
        asked: "counts of the lookup".into(),
        answer: format!("none in {}", out.display()),
    })
}

/// Sums over `functions` (Valgrind manual, 5.2.8: `events:` names the columns; `fn=` begins a
/// function; then a line number and counts, of which trailing zeros may be left out).
fn read(text: &str, functions: &[&str]) -> Option<CacheCounts> {
    let events = text
        .lines()
        .find_map(|line| line.strip_prefix("events: "))?;
    let column: HashMap<&str, usize> = events.split_whitespace().zip(1..).collect();
    let wanted = [column.get("Ir")?, column.get("Dr")?, column.get("D1mr")?];
    let (mut sums, mut within) = ([0.0; 3], false);
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("fn=") {
            within = functions.contains(&function);
        } else if within && line.starts_with(|c: char| c.is_ascii_digit()) {
            let counts: Vec<&str> = line.split_whitespace().collect();
            for (sum, column) in sums.iter_mut().zip(wanted) {
                *sum += counts.get(*column).map_or(Some(0.0), |n| n.parse().ok())?;
            }
        }
    }
    let [instructions, loads, load_misses] = sums.map(|sum| sum / f64::from(PACKETS));
    (instructions > 0.0).then_some(CacheCounts {
        instructions,
        loads,
        load_misses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_functions_that_were_asked_for() {
        let text = "desc: x\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw \nfl=a.c\nfn=other\n\
                    1 9 9 9 9 9 9 9 9 9\nfn=acl_match\n17 100000 0 0 50000 25000\nfi=b.h\n3 50000\n";
        let counts = read(text, &FUNCTIONS).unwrap();
        assert_eq!(
            (counts.instructions, counts.loads, counts.load_misses),
            (3.0, 1.0, 0.5)
        );
        assert_eq!(read(text, &["nothing"]), None);
    }
}
