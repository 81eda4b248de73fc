//! The process that calibration measures: four functions, each called in a loop. Its own crate, so that they are
//! optimized in each build: without that the processor has nothing under way at once that stamps could end.
#![forbid(unsafe_code)]
use hopscope_event::clock::read::read_tsc;
use std::fs;
use std::hint::black_box;
use std::io::{self, BufRead, ErrorKind, Write};

/// The stamps take longer than anything else here.
#[inline(never)]
fn calibration_leaf(x: u64) -> u64 {
    (x ^ 5).wrapping_mul(3)
}

/// A body whose instructions wait for each other: what a probe does meanwhile costs less.
#[inline(never)]
fn calibration_chain(mut x: u64) -> u64 {
    let mut left = CHAIN;
    // Nothing here may call: what panics could be unwound, and is not measured.
    while left != 0 {
        x = (x ^ (x >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        left = left.wrapping_sub(1);
    }
    x
}

/// Each call misses the caches; without stamps between them several misses are under way at once.
#[inline(never)]
fn calibration_miss(table: &Table, at: u64) -> u64 {
    table[at as usize & (TABLE_WORDS - 1)]
}

/// A lookup in which each step is a miss that waits for the one before it (bucket, entry, next hop, neighbour), and
/// what it loads decides where it goes on, which no processor foresees. Without stamps between the calls, the misses of
/// several calls are under way at once.
#[inline(never)]
fn calibration_lookup(table: &Table, mut at: u64) -> u64 {
    let mut left = MISSES;
    while left != 0 {
        let mut word = table[at as usize & (TABLE_WORDS - 1)];
        while word & 1 != 0 {
            at = at.wrapping_add(1);
            word = table[at as usize & (TABLE_WORDS - 1)];
        }
        at = word >> 1;
        left = left.wrapping_sub(1);
    }
    at
}

/// What a caller of [`calibration_leaf`] counts, for counters.
#[inline(never)]
fn calibration_caller(leaf: fn(u64) -> u64, mut x: u64) -> u64 {
    let mut left = CALLS;
    while left != 0 {
        x = leaf(x);
        left = left.wrapping_sub(1);
    }
    x
}

/// Called right behind each other, as stages of a pipeline are: each but the first may have the stamp of the exit before it.
#[inline(never)]
fn calibration_first(x: u64) -> u64 {
    (x ^ 9).wrapping_mul(5)
}

#[inline(never)]
fn calibration_second(x: u64) -> u64 {
    (x ^ 3).wrapping_mul(7)
}

/// [`STAGES`] calls each round.
#[inline(never)]
fn calibration_pipeline(mut x: u64) -> u64 {
    let mut left = CALLS;
    while left != 0 {
        x = calibration_second(calibration_first(x));
        x = calibration_second(calibration_first(x));
        x = calibration_second(calibration_first(x));
        x = calibration_second(calibration_first(x));
        left = left.wrapping_sub(1);
    }
    x
}

type Table = [u64; TABLE_WORDS];

const CHAIN: u32 = 30;
const MISSES: u32 = 4;
/// Above the caches of one processor and what it has of a shared one.
const TABLE_WORDS: usize = 8 << 20;
/// Memory that the machine, and every control group above, must have left beside the table.
const SPARE_BYTES: u64 = 1 << 30;

/// By the number of their loop; the last two are there when there is memory for their table.
pub const FUNCTIONS: [&str; 4] = [
    "calibration_leaf",
    "calibration_chain",
    "calibration_miss",
    "calibration_lookup",
];
/// The loop of lookups each of which begins where the one before ended: nothing is under way at once.
pub const IN_TURN: usize = 4;
/// Records of the first loop's calls, each time that it is asked for.
pub const RECORDS_OF_FIRST: u64 = 2 * FIRST_BATCHES as u64 * CALLS;
const FIRST_BATCHES: usize = 400;
/// Calls of each batch of a loop, and of [`CALLER`] of the first of [`FUNCTIONS`].
pub const CALLS: u64 = 1_000;
/// The loop of calls of the first two of these by the third.
pub const PIPELINE: [&str; 3] = [
    "calibration_first",
    "calibration_second",
    "calibration_pipeline",
];
pub const PIPELINE_LOOP: usize = 6;
/// Calls of a round of that loop.
pub const STAGES: i64 = 8;
/// Not timed: called some times when the number of its loop is written.
pub const CALLER: &str = "calibration_caller";
pub const CALLER_LOOP: usize = 5;
const CALLER_CALLS: usize = 20;

/// Where the next step of a lookup is: not near, and not where a prefetcher expects it.
fn elsewhere(at: u64) -> u64 {
    let mixed = (at ^ (at >> 11)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// `None` where there is no memory for it: that loop is left out then.
fn table() -> Option<Box<Table>> {
    let available = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    let wanted = SPARE_BYTES + 8 * TABLE_WORDS as u64;
    let limited = hopscope_process::memory_limit::room(std::process::id() as i32);
    match available {
        Some(kib) if kib << 10 >= wanted && limited.is_none_or(|bytes| bytes >= wanted) => {
            let words: Vec<u64> = (0..TABLE_WORDS as u64).map(elsewhere).collect();
            words.into_boxed_slice().try_into().ok()
        }
        _ => None,
    }
}

/// Hidden subcommand: writes how many loops there are, and times the loop whose number arrives on a line, until standard input ends.
///
/// # Errors
/// Those of its input and output.
pub fn run() -> io::Result<()> {
    let table = table();
    let leaf: fn(u64) -> u64 = black_box(calibration_leaf);
    let chain: fn(u64) -> u64 = black_box(calibration_chain);
    let miss: fn(&Table, u64) -> u64 = black_box(calibration_miss);
    let lookup: fn(&Table, u64) -> u64 = black_box(calibration_lookup);
    let pipeline: fn(u64) -> u64 = black_box(calibration_pipeline);
    let caller: fn(fn(u64) -> u64, u64) -> u64 = black_box(calibration_caller);
    let mut random = 1u64;
    let mut out = std::io::stdout();
    writeln!(out, "{}", if table.is_some() { IN_TURN + 1 } else { 2 })?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let invalid =
            |what: &str| io::Error::new(ErrorKind::InvalidInput, format!("{what}: {line:?}"));
        let which: usize = line
            .trim()
            .parse()
            .map_err(|_| invalid("no number of a loop"))?;
        let ticks = match (which, &table) {
            (0, _) => time(FIRST_BATCHES, || (0..CALLS).fold(1, |x, _| leaf(x))),
            (1, _) => time(200, || (0..CALLS).fold(1, |x, _| chain(x))),
            (PIPELINE_LOOP, _) => time(100, || pipeline(1)),
            (CALLER_LOOP, _) => time(CALLER_CALLS, || caller(leaf, 1)),
            (2, Some(table)) => time(100, || misses(miss, table, &mut random, 0)),
            (3, Some(table)) => time(30, || misses(lookup, table, &mut random, 0)),
            (_, Some(table)) => time(30, || misses(lookup, table, &mut random, u64::MAX)),
            (_, None) => return Err(invalid("no table for this loop")),
        };
        writeln!(out, "{} {} {}", ticks[0], ticks[1], ticks[2])?;
        out.flush()?;
    }
    Ok(())
}

/// [`CALLS`] calls, each at a place that the bits `after` of the result before it have a part in.
fn misses(function: fn(&Table, u64) -> u64, table: &Table, random: &mut u64, after: u64) -> u64 {
    (0..CALLS).fold(0, |last: u64, _| {
        *random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let found = function(table, (*random >> 33) ^ (last & after));
        last.wrapping_add(found)
    })
}

/// Ticks of [`CALLS`] calls, thousandths of a tick of one: lowest twentieth, median, highest tenth of the batches.
fn time(batches: usize, mut calls: impl FnMut() -> u64) -> [u64; 3] {
    let mut ticks: Vec<u64> = (0..batches)
        .map(|_| {
            let from = read_tsc();
            black_box(calls());
            read_tsc().0.wrapping_sub(from.0)
        })
        .collect();
    ticks.sort_unstable();
    [batches / 20, batches / 2, batches * 9 / 10].map(|at| ticks[at])
}
