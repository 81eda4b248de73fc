//! `hopscope splice attach`: programs that run.
use super::args::AttachArgs;
use super::session::{Signals, start, write};
use anyhow::ensure;
use hopscope_splice::cgroup;
use hopscope_splice::programs::Count;
use hopscope_splice::session::{Kernel, POLL};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

pub(super) fn run(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    args.common.refuse_test_hooks()?;
    let signals = Signals::take()?;
    let groups = groups(args)?;
    cgroup::remove_stale();
    let kernel = Kernel::try_out()?;
    let mut session = start(&args.common, groups, None, &kernel)?;
    let begun = Instant::now();
    let is_over = || args.duration.is_some_and(|limit| begun.elapsed() >= limit);
    while signals.count() == 0 && !is_over() {
        session.look()?;
        std::thread::sleep(POLL);
    }
    let counts = session.end(&|| signals.count())?;
    write(&mut std::io::stdout().lock(), &counts, args.json)?;
    Ok(ExitCode::from(u8::from(counts.get(Count::Mismatched) > 0)))
}

fn groups(args: &AttachArgs) -> anyhow::Result<Vec<PathBuf>> {
    let mut groups = Vec::new();
    for path in &args.cgroup {
        groups.push(cgroup::checked(path)?);
    }
    for pid in &args.pid {
        let group = cgroup::of_process(*pid)?;
        let others = cgroup::all_below(&group)
            .iter()
            .filter(|one| *one != pid)
            .count();
        ensure!(
            others == 0 || !args.common.port.is_empty() || args.common.yes,
            "process {pid} shares the control group {} with {others} others, which would take part: \
             choose connections with --port, or say --yes",
            group.display()
        );
        groups.push(group);
    }
    groups.sort();
    groups.dedup();
    Ok(groups)
}
