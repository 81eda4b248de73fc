//! `hopscope diff`: by how much the calls of two recordings differ, and whether that is noise.
mod sides;
mod slices;

use crate::logger::Verbosity;
use crate::slice::Opened;
use anyhow::Context;
use hopscope_analyze::diff::{Settings, compare, is_enough};
use hopscope_event::slice::SliceEntry;
use hopscope_report::{DiffHead, DiffRow, sort_diff, write_diff, write_diff_json};
use sides::{Rows, Side};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct DiffArgs {
    /// Recording to compare with (baseline)
    a: PathBuf,
    /// Recording to test for differences
    b: PathBuf,
    /// Aggregate by [default: function; slice if a recording has no calls]
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Compare the time of a call without measured callees (own), or with them (total)
    #[arg(long, value_enum, default_value_t = Time::Own)]
    time: Time,
    /// Subtract the median probe cost [default: only if the recordings' probes differ]
    #[arg(long, value_name = "WHETHER")]
    corrected: Option<bool>,
    /// Treat shifts below this percentage as noise, whatever the intervals show
    ///
    /// Compare two recordings of the same program to see your noise.
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    floor: f64,
    /// Base the verdict on this figure (repeatable)
    ///
    /// p99 and mean depend on what else the machine runs.
    #[arg(long, value_enum, value_name = "FIGURE", default_values_t = [Figure::P50])]
    judge: Vec<Figure>,
    /// Exit with 1 if a row is slower by more than this percentage, beyond noise
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_above: Option<f64>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Function,
    Module,
    /// A slice: the time between two kernel hooks
    Slice,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Time {
    Own,
    Total,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Figure {
    P50,
    P99,
    Mean,
}

/// As a part of one.
fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .trim_end_matches('%')
        .parse()
        .map_err(|_| format!("{text:?} is not a number of percent"))?;
    match number.is_finite() && number >= 0.0 {
        true => Ok(number / 100.0),
        false => Err("must be 0 or more".into()),
    }
}

pub fn run(args: DiffArgs, verbosity: &Verbosity) -> anyhow::Result<ExitCode> {
    let opened = [crate::slice::open(&args.a)?, crate::slice::open(&args.b)?];
    if is_of_slices(&args, &opened) {
        let [a, b] = [entry(&args.a, &opened[0])?, entry(&args.b, &opened[1])?];
        return of_slices(&args, verbosity, &opened, [a, b]);
    }
    let by = args.by.unwrap_or(By::Function);
    let sides = {
        let [a, b] = opened;
        [Side::new(&args.a, a)?, Side::new(&args.b, b)?]
    };
    let rows = Rows::of(&sides, by);
    anyhow::ensure!(
        !rows.names.is_empty(),
        "{} and {} have no function in common, so nothing can be compared: they are recordings of other programs, or of other functions of one",
        args.a.display(),
        args.b.display()
    );
    let times = sides::times(&sides, &args)?;
    let pass = |i: usize| sides[i].spreads(&rows, i, &times);
    let (a, b) = (pass(0)?, pass(1)?);
    let blocks_a = sides[0].blocks(&rows, 0, &times, &a, &b)?;
    let blocks_b = sides[1].blocks(&rows, 1, &times, &b, &a)?;
    let settings = settings(&args);
    let pair = |i: usize| ([&a.rows[i], &b.rows[i]], [&blocks_a[i], &blocks_b[i]]);
    let enough = |i: &usize| {
        let (spreads, blocks) = pair(*i);
        is_enough(spreads, blocks)
    };
    let tested = (0..rows.names.len()).filter(enough).count();
    let row = |(i, name): (usize, &String)| {
        let (spreads, blocks) = pair(i);
        DiffRow {
            name: name.clone(),
            compared: compare(spreads, blocks, tested, settings),
        }
    };
    let mut compared: Vec<DiffRow> = rows.names.iter().enumerate().map(row).collect();
    // What neither of them called has nothing to compare.
    compared.retain(|row| row.compared.n != [0, 0]);
    sort_diff(&mut compared, settings);
    let head = DiffHead {
        files: [&args.a, &args.b].map(|path| path.display().to_string()),
        doubts: [a.doubts, b.doubts],
        only: rows.only,
        times: times.said,
        of: "calls",
        settings,
        fail_above: args.fail_above,
    };
    show(&args, verbosity, &head, &compared)
}

fn show(
    args: &DiffArgs,
    verbosity: &Verbosity,
    head: &DiffHead,
    compared: &[DiffRow],
) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    match (args.json, verbosity.is_verbose()) {
        (true, _) => write_diff_json(&mut out, head, compared)?,
        (false, is_verbose) => write_diff(&mut out, head, compared, is_verbose)?,
    }
    out.flush()?;
    Ok(match head.failing(compared).is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// Calls are compared where both have some, unless slices are asked for.
fn is_of_slices(args: &DiffArgs, opened: &[Opened; 2]) -> bool {
    let tables = opened.each_ref().map(|opened| opened.reader.tables());
    let have_slices = tables.iter().all(|tables| tables.slice.is_some());
    let have_calls = tables.iter().all(|tables| !tables.functions.is_empty());
    match args.by {
        Some(by) => by == By::Slice,
        None => have_slices && !have_calls,
    }
}

fn entry<'a>(path: &Path, opened: &'a Opened) -> anyhow::Result<&'a SliceEntry> {
    let entry = opened.reader.tables().slice.as_ref();
    entry.with_context(|| {
        format!(
            "{} holds no slices of the kernel's path (hopscope slice -o, or record --with-slices)",
            path.display()
        )
    })
}

/// Slices of the kernel's path instead of calls.
fn of_slices(
    args: &DiffArgs,
    verbosity: &Verbosity,
    opened: &[Opened; 2],
    entries: [&SliceEntry; 2],
) -> anyhow::Result<ExitCode> {
    let (corrected, said) = slices::times(entries, args)?;
    let side = |i: usize| slices::Side::new(&opened[i], entries[i], corrected);
    let sides = [side(0), side(1)];
    let (a, b) = (sides[0].spreads()?, sides[1].spreads()?);
    let (in_a, in_b) = (
        |n: &&String| a.rows.contains_key(*n),
        |n: &&String| b.rows.contains_key(*n),
    );
    let names: Vec<String> = a.rows.keys().filter(in_b).cloned().collect();
    let only = [
        a.rows.keys().filter(|n| !in_b(n)).cloned().collect(),
        b.rows.keys().filter(|n| !in_a(n)).cloned().collect(),
    ];
    anyhow::ensure!(
        !names.is_empty(),
        "{} and {} have no slice in common, so nothing can be compared",
        args.a.display(),
        args.b.display()
    );
    let blocks_a = sides[0].blocks(&names, &a, &b)?;
    let blocks_b = sides[1].blocks(&names, &b, &a)?;
    let settings = settings(args);
    let pairs: Vec<_> = names
        .iter()
        .zip(blocks_a.iter().zip(&blocks_b))
        .map(|(name, (in_a, in_b))| (name, [&a.rows[name], &b.rows[name]], [in_a, in_b]))
        .collect();
    let tested = pairs.iter().filter(|(_, s, b)| is_enough(*s, *b)).count();
    let row = |(name, spreads, blocks): &(&String, _, _)| DiffRow {
        name: (*name).clone(),
        compared: compare(*spreads, *blocks, tested, settings),
    };
    let mut compared: Vec<DiffRow> = pairs.iter().map(row).collect();
    sort_diff(&mut compared, settings);
    let doubts = opened.each_ref().map(|o| o.damage().into_iter().collect());
    let head = DiffHead {
        files: [&args.a, &args.b].map(|path| path.display().to_string()),
        doubts,
        only,
        times: said,
        of: "packets",
        settings,
        fail_above: args.fail_above,
    };
    show(args, verbosity, &head, &compared)
}

fn settings(args: &DiffArgs) -> Settings {
    Settings {
        floor: args.floor,
        judged: [Figure::P50, Figure::P99, Figure::Mean].map(|f| args.judge.contains(&f)),
        ..Settings::default()
    }
}
