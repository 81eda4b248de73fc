//! `hopscope diff`: by how much the calls of two recordings differ, and whether that is noise.
use crate::logger::Verbosity;
use hopscope_analyze::diff::Settings;
use hopscope_read::diff::{self, DiffOptions, diff};
use hopscope_report::{write_diff, write_diff_json};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
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
    if number.is_finite() && number >= 0.0 {
        Ok(number / 100.0)
    } else {
        Err("must be 0 or more".into())
    }
}

pub fn run(args: DiffArgs, verbosity: &Verbosity) -> anyhow::Result<ExitCode> {
    let (head, compared) = diff(&args.options())?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.json {
        write_diff_json(&mut out, &head, &compared)?;
    } else {
        write_diff(&mut out, &head, &compared, verbosity.is_verbose())?;
    }
    out.flush()?;
    Ok(if head.failing(&compared).is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

impl DiffArgs {
    fn options(&self) -> DiffOptions {
        DiffOptions {
            a: self.a.clone(),
            b: self.b.clone(),
            by: self.by.map(|by| match by {
                By::Function => diff::By::Function,
                By::Module => diff::By::Module,
                By::Slice => diff::By::Slice,
            }),
            time: match self.time {
                Time::Own => diff::Time::Own,
                Time::Total => diff::Time::Total,
            },
            corrected: self.corrected,
            settings: Settings {
                floor: self.floor,
                judged: [Figure::P50, Figure::P99, Figure::Mean].map(|f| self.judge.contains(&f)),
                ..Settings::default()
            },
            fail_above: self.fail_above,
        }
    }
}
