//! `hopscope slice -r FILE`: packets of a recording, as live ones are shown.
use super::args::SliceArgs;
use crate::logger::Verbosity;
use anyhow::Context;
use hopscope_analyze::slice::RealTime;
use hopscope_event::slice::SliceEntry;
use hopscope_read::{Opened, open};
use hopscope_report::slice::SliceSource;
use hopscope_session::slice::{PacketChoice, Pass, To, create};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

pub(super) fn run(
    args: &SliceArgs,
    path: &Path,
    verbosity: &Verbosity,
) -> anyhow::Result<ExitCode> {
    let expression = args.expression.join(" ");
    let chosen = &args.choice;
    let choice = PacketChoice::new(
        &expression,
        &chosen.pid,
        chosen.comm.as_deref(),
        chosen.min_latency,
    )?;
    let opened = open(path)?;
    let entry = entry_of(&opened, path)?;
    let tables = opened.reader.tables();
    let time = RealTime::new(tables.meta.start, &tables.clocks);
    let source = SliceSource { entry, time: &time };
    let file = args.files.written();
    let to = match file {
        Some((to, format)) => {
            anyhow::ensure!(
                to != path,
                "{} cannot be read and written at once",
                to.display()
            );
            let mode = args.files.mode;
            To::File(create(to, format, mode, &tables.meta, entry)?)
        }
        None => args.shown.to(verbosity),
    };
    let mut pass = Pass::new(entry, choice, to);
    if let Some(file) = pass.file() {
        for sync in &tables.clocks {
            file.clock(*sync)?;
        }
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let done = packets(args, &opened, &source, &mut pass, &mut out);
    let mut damage = opened.damage();
    if let Err(error) = &done {
        let said = format!("{error:#}");
        damage = Some(damage.map_or(said.clone(), |d| format!("{d}; {said}")));
    }
    let summary = tables.slice_summary.as_ref();
    let read = Some(damage.as_deref());
    match file {
        Some((to, _)) if args.shown.json && to.as_os_str() != "-" => {
            pass.close_json(&mut out, source, read, summary)?
        }
        // What is written is on stdout, perhaps.
        Some(_) => pass.close(&mut std::io::stderr().lock(), source, read, summary)?,
        None => pass.close(&mut out, source, read, summary)?,
    }
    out.flush()?;
    if pass.choice().unknown() > 0 {
        log::warn!(
            "{} packets excluded: the expression needs bytes that were not captured",
            pass.choice().unknown()
        );
    }
    if let Some(file) = pass.into_file() {
        file.finish(summary, tables.summary.as_ref())?;
    }
    done?;
    Ok(ExitCode::SUCCESS)
}

fn packets(
    args: &SliceArgs,
    opened: &Opened,
    source: &SliceSource<'_>,
    pass: &mut Pass,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    for batch in opened.reader.slices() {
        for packet in &batch? {
            pass.packet(out, source, packet)?;
            if args.choice.count == Some(pass.taken()) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn entry_of<'a>(opened: &'a Opened, path: &Path) -> anyhow::Result<&'a SliceEntry> {
    opened.reader.tables().slice.as_ref().with_context(|| {
        format!(
            "{} holds no slices of the kernel's path (record them with `hopscope slice -o`)",
            path.display()
        )
    })
}
