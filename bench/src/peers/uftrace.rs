//! uftrace writes a 16-byte record at entry and exit; it starts its target and can't attach.
use super::{Bench, Measured, installed};
use crate::program::{Target, Variant, build};
use std::process::Command;

const PHASES: [&str; 3] = ["hot_e5", "indep_e5", "rr_e5"];

/// The program rebuilt with `-pg -mfentry`.
pub(crate) fn rebuilt(bench: &Bench<'_>) -> Measured {
    measure(bench, Variant::Mfentry, "record, -mfentry", &[])
}

/// The program as it is, entries patched when it starts.
pub(crate) fn dynamic(bench: &Bench<'_>) -> Measured {
    measure(
        bench,
        Variant::Plain,
        "record -P",
        &["-P", "e5_*", "--match", "glob"],
    )
}

fn measure(bench: &Bench<'_>, variant: Variant, probe: &str, options: &[&str]) -> Measured {
    let uftrace = installed("uftrace")?;
    let data = bench.scratch("uftrace")?;
    let rows = (|| {
        let program = build(
            &bench.settings.build_dir,
            bench.plan,
            bench.compiler,
            variant,
        )?;
        let mut command = Command::new(uftrace);
        command.args(["record", "--no-pager", "--no-libcall", "-d"]);
        command.arg(&data).args(options).arg(&program.executable);
        let mut target = Target::start_under(command, &program.executable)?;
        let pairs = bench.beside(&mut target, &PHASES)?;
        Ok::<_, crate::error::Error>(pairs.rows("uftrace", probe, &PHASES))
    })();
    // Hundreds of megabytes: 32 bytes a call.
    let _ = std::fs::remove_dir_all(&data);
    rows.map_err(|error| error.to_string())
}
