//! Exceptions of what is loaded later, in a program of C that was attached to before.
use super::{expect, following, load, start, throwing};
use crate::recording::{Recording, Report};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, scratch};

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "dlopen::exceptions_through_what_was_there",
        &[Requirement::Gxx],
        through,
    );
}

/// Through a function of the program, measured from the beginning, and of the plug-in.
fn through() -> Result<()> {
    let (mut target, plug_in, file) = (start()?, throwing()?, scratch().join("through.hop"));
    let record = following(target.pid(), &["through", "plug_*"], &file);
    let recording = Recording::start_command(record, &file)?;
    // What raises nothing changes nothing for who comes then.
    load(&mut target, 1, &super::plug_in()?)?;
    load(&mut target, 0, &plug_in)?;
    expect(&mut target, "call 0 300", "100")?;
    let said = recording.stop()?;
    ensure!(said["ended_because"] == "stopped by the user", "{said}");
    let report = Report::read(&file)?;
    let counted = ["through", "plug_step", "plug_run"].map(|f| report.entries(f));
    ensure!(counted == [300, 300, 1], "{counted:?}");
    // Copies may stay: memory of exceptions that are over names them.
    expect(&mut target, "original 0", "original")?;
    expect(&mut target, "call 0 30", "10")
}
