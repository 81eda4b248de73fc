//! Snapshots as they come, on a screen or as lines, until nobody sends any more.
use super::lines::Lines;
use super::live::Snapshot;
use super::screen;
use super::shown::Shown;
use super::table::RowChoice;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;

/// Sets `stop` when the user wants to leave.
///
/// # Errors
/// Those of the terminal, or of stdout.
pub fn show(shown: &Shown, snapshots: &Receiver<Snapshot>, stop: &AtomicBool) -> io::Result<()> {
    if shown.raw {
        lines(shown, snapshots)
    } else {
        screen::run(shown, snapshots, stop)
    }
}

fn lines(shown: &Shown, snapshots: &Receiver<Snapshot>) -> io::Result<()> {
    let lines = Lines {
        scale: shown.scale,
        json: shown.json,
        corrected: shown.corrected,
    };
    let choice = RowChoice {
        by: shown.by,
        filter: String::new(),
        whole: false,
    };
    let mut out = BufWriter::new(io::stdout());
    lines.titles(&mut out)?;
    out.flush()?;
    for snapshot in snapshots {
        lines.interval(&mut out, &snapshot, &choice)?;
    }
    Ok(())
}
