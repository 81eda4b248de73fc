//! By how much the calls, or the slices, of two recordings differ.
mod calls;
mod slices;

use crate::error::{Error, Result, require};
use crate::opened::{Opened, open};
use calls::{Rows, Side};
use hopscope_analyze::diff::{Settings, compare, is_enough};
use hopscope_event::slice::SliceEntry;
use hopscope_report::{DiffHead, DiffRow, sort_diff};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct DiffOptions {
    pub a: PathBuf,
    pub b: PathBuf,
    /// What one row is about; `None`: functions, or slices where a recording has no calls.
    pub by: Option<By>,
    pub time: Time,
    /// Whether the median probe cost is taken out; `None`: where the recordings were not made alike.
    pub corrected: Option<bool>,
    pub settings: Settings,
    /// For the header: a row that is slower by more than this part fails.
    pub fail_above: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Function,
    Module,
    Slice,
}

/// Of a call, without measured callees or with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    Own,
    Total,
}

/// # Errors
/// What cannot be read, and recordings that have nothing in common.
pub fn diff(options: &DiffOptions) -> Result<(DiffHead, Vec<DiffRow>)> {
    let opened = [open(&options.a)?, open(&options.b)?];
    if is_of_slices(options, &opened) {
        let [a, b] = [
            entry(&options.a, &opened[0])?,
            entry(&options.b, &opened[1])?,
        ];
        return of_slices(options, &opened, [a, b]);
    }
    let by = options.by.unwrap_or(By::Function);
    let sides = {
        let [a, b] = opened;
        [Side::new(&options.a, a)?, Side::new(&options.b, b)?]
    };
    let rows = Rows::of(&sides, by);
    require!(
        !rows.names.is_empty(),
        "{} and {} have no function in common, so nothing can be compared: they are recordings of other programs, or of other functions of one",
        options.a.display(),
        options.b.display()
    );
    let times = calls::times(&sides, options)?;
    let pass = |i: usize| sides[i].spreads(&rows, i, &times);
    let (a, b) = (pass(0)?, pass(1)?);
    let blocks_a = sides[0].blocks(&rows, 0, &times, &a, &b)?;
    let blocks_b = sides[1].blocks(&rows, 1, &times, &b, &a)?;
    let settings = options.settings;
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
        files: [&options.a, &options.b].map(|path| path.display().to_string()),
        doubts: [a.doubts, b.doubts],
        only: rows.only,
        times: times.said,
        of: "calls",
        settings,
        fail_above: options.fail_above,
    };
    Ok((head, compared))
}

/// Calls are compared where both have some, unless slices are asked for.
fn is_of_slices(options: &DiffOptions, opened: &[Opened; 2]) -> bool {
    let tables = opened.each_ref().map(|opened| opened.reader.tables());
    let have_slices = tables.iter().all(|tables| tables.slice.is_some());
    let have_calls = tables.iter().all(|tables| !tables.functions.is_empty());
    match options.by {
        Some(by) => by == By::Slice,
        None => have_slices && !have_calls,
    }
}

fn entry<'a>(path: &Path, opened: &'a Opened) -> Result<&'a SliceEntry> {
    let entry = opened.reader.tables().slice.as_ref();
    entry.ok_or_else(|| {
        Error::Refused(format!(
            "{} holds no slices of the kernel's path (hopscope slice -o, or record --with-slices)",
            path.display()
        ))
    })
}

/// Slices of the kernel's path instead of calls.
fn of_slices(
    options: &DiffOptions,
    opened: &[Opened; 2],
    entries: [&SliceEntry; 2],
) -> Result<(DiffHead, Vec<DiffRow>)> {
    let (corrected, said) = slices::times(entries, options)?;
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
    require!(
        !names.is_empty(),
        "{} and {} have no slice in common, so nothing can be compared",
        options.a.display(),
        options.b.display()
    );
    let blocks_a = sides[0].blocks(&names, &a, &b)?;
    let blocks_b = sides[1].blocks(&names, &b, &a)?;
    let settings = options.settings;
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
        files: [&options.a, &options.b].map(|path| path.display().to_string()),
        doubts,
        only,
        times: said,
        of: "packets",
        settings,
        fail_above: options.fail_above,
    };
    Ok((head, compared))
}
