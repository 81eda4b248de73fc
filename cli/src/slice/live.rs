//! `hopscope slice`: hooks attached, packets shown or written as they end, until asked to stop.
use super::args::SliceArgs;
use super::progress::Progress;
use super::target;
use crate::logger::Verbosity;
use anyhow::{Context, ensure};
use hopscope_process::{Held, launch};
use hopscope_session::slice::{
    Calibration, Ended, FilePlan, Limits, Loaded, Session, become_user, say_what_is_missing,
};
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) fn run(args: &SliceArgs, verbosity: &Verbosity) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let ignored = hopscope_process::signals::ignored();
    hopscope_session::stop_at_signals(&stop)?;
    refuse(args)?;
    let regions = target::regions(args)?;
    let held = command(args, &ignored)?;
    let tgid = held
        .as_ref()
        .and_then(|held| u32::try_from(held.pid()).ok());
    let device = target::device(args)?;
    let name = device.as_ref().map(|device| device.name().to_owned());
    let options = target::options(args, &regions, device.as_ref(), tgid)?;
    let calibration = match (args.live.no_calibration, args.live.recalibrate) {
        (true, _) => Calibration::Skipped,
        (false, true) => Calibration::Anew,
        (false, false) => Calibration::Kept,
    };
    let filter = args.expression.join(" ");
    let duty_of = args.live.duty.unwrap_or(1);
    let mut loaded = Loaded::new(&options, regions, filter, calibration, duty_of)?;
    say_what_is_missing(&loaded.entry);
    loaded.kernel.begin()?;
    if !verbosity.is_quiet() {
        eprintln!(
            "hopscope: {} points of a packet's way are watched",
            loaded.entry.points.len()
        );
    }
    if let Some(path) = &args.live.ready_file {
        std::fs::write(path, "").with_context(|| path.display().to_string())?;
    }
    if let Some(user) = &args.live.relinquish_privileges {
        become_user(user)?;
    }
    let out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let shown = args.shown.to(verbosity);
    let mut session = Session::new(loaded, file(args), shown, out, device, limits(args))?;
    session.start(held)?;
    let mut progress = Progress::new(session.writes_file());
    let why = session.follow(&stop, &mut |packets| progress.show(packets));
    drop(progress);
    if let (Ok(why @ Ended::Disappeared), Some(name)) = (&why, name) {
        crate::status::say!("-i {name}: {why}");
    }
    let mut err = std::io::stderr().lock();
    let mut finished = session.finish(why, &mut err, args.shown.json)?;
    drop(err);
    match &mut finished.child {
        Some(child) => crate::command::exit_code_of(child.wait()),
        None => Ok(ExitCode::from(u8::from(
            finished.ended == Ended::Disappeared,
        ))),
    }
}

fn refuse(args: &SliceArgs) -> anyhow::Result<()> {
    let writes = [&args.files.write, &args.files.output];
    let is_file = |path: &&PathBuf| path.as_os_str() != "-";
    ensure!(
        args.files.file_size.is_none() || writes.into_iter().flatten().any(|p| is_file(&p)),
        "-C cuts files: give one with -w or -o"
    );
    ensure!(
        args.live.relinquish_privileges.is_none() || args.live.duty.is_none(),
        "-Z and --duty: attaching hooks again takes the privileges that are given up"
    );
    Ok(())
}

fn command(args: &SliceArgs, ignored: &[i32]) -> anyhow::Result<Option<Held>> {
    if args.command.is_empty() {
        return Ok(None);
    }
    let words = args.command.iter().map(|word| {
        let word = word.to_str();
        word.map(str::to_owned).context("-- COMMAND: not UTF-8")
    });
    let words: Vec<String> = words.collect::<anyhow::Result<_>>()?;
    Ok(Some(launch(&words, ignored)?))
}

fn file(args: &SliceArgs) -> Option<FilePlan> {
    let files = &args.files;
    let (path, format) = files.written()?;
    Some(FilePlan {
        path: path.to_owned(),
        format,
        mode: files.mode,
        cut_at: files.file_size,
        files: files.file_count,
    })
}

fn limits(args: &SliceArgs) -> Limits {
    Limits {
        count: args.choice.count,
        duration: args.live.duration,
        duty_of: args.live.duty,
        packet_buffered: args.shown.packet_buffered,
    }
}
