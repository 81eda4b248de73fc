//! An accelerator as `run` and `attach` start it, and what is said at its end.
use super::args::Common;
use crate::json::tagged;
use crate::status::on_stderr;
use anyhow::Context;
use hopscope_splice::cgroup::Group;
use hopscope_splice::programs::Counts;
use hopscope_splice::session::{Helper, Kernel, Session, refuse_policies};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `group`: of the command that is run.
pub(super) fn start<'a>(
    common: &Common,
    groups: Vec<PathBuf>,
    group: Option<&'a Group>,
    kernel: &Kernel,
) -> anyhow::Result<Session<'a>> {
    refuse_policies(&groups, common.yes)?;
    let options = common.options(groups);
    let session = Session::start(
        options,
        common.pair_anyway,
        group,
        kernel,
        helper,
        on_stderr,
    )?;
    if let Some(path) = &common.ready_file {
        std::fs::write(path, "").with_context(|| path.display().to_string())?;
    }
    Ok(session)
}

pub(super) fn helper(which: Helper) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("splice").arg(match which {
        Helper::Keeper => "__keep",
        Helper::Edges => "__tell",
    });
    command
}

pub(super) fn write(out: &mut impl Write, counts: &Counts, json: bool) -> anyhow::Result<()> {
    if json {
        writeln!(out, "{}", tagged("splice_summary", counts)?)?
    } else {
        write!(out, "{counts}")?
    }
    Ok(())
}

/// Ctrl-C and its like, counted.
pub(super) struct Signals(Arc<AtomicUsize>);

impl Signals {
    pub(super) fn take() -> anyhow::Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let count = Arc::new(AtomicUsize::new(0));
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
            .context("taking over signals")?;
        let counted = count.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Signals(count))
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
