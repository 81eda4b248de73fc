//! LLVM's XRay: sleds compiled in, patched at start.
use super::{Bench, Measured, installed};
use crate::program::{Compiler, Target, Variant, build};
use std::path::Path;
use std::process::Command;

const PHASES: [&str; 3] = ["hot_e5", "indep_e5", "rr_e5"];

/// A handler that does nothing.
pub(crate) fn empty(bench: &Bench<'_>) -> Measured {
    measure(bench, Variant::XrayEmpty, "empty", &[])
}

/// The flight data recorder. It would drop calls below 5 us; that filter is turned off.
pub(crate) fn recorder(bench: &Bench<'_>) -> Measured {
    let logs = bench.scratch("xray")?;
    let options = format!(
        "patch_premain=true xray_mode=xray-fdr xray_logfile_base={}/log",
        logs.display()
    );
    let rows = measure(
        bench,
        Variant::Xray,
        clock(),
        &[
            ("XRAY_OPTIONS", &options),
            ("XRAY_FDR_OPTIONS", "func_duration_threshold_us=0"),
        ],
    );
    let _ = std::fs::remove_dir_all(&logs);
    rows
}

/// XRay reads the TSC only where the kernel tells its frequency.
fn clock() -> &'static str {
    let cpu = "/sys/devices/system/cpu/cpu0";
    let told = ["tsc_freq_khz", "cpufreq/cpuinfo_max_freq"];
    if told.iter().any(|f| Path::new(cpu).join(f).exists()) {
        "flight data (rdtscp)"
    } else {
        "flight data (vdso)"
    }
}

fn measure(
    bench: &Bench<'_>,
    variant: Variant,
    probe: &str,
    environment: &[(&str, &str)],
) -> Measured {
    installed("clang")?;
    let compiler = Compiler("clang".into());
    let rows = (|| {
        let program = build(&bench.settings.build_dir, bench.plan, &compiler, variant)?;
        // The bare program by the same compiler, or the difference would be the compilers'.
        let plain = build(
            &bench.settings.build_dir.join("clang"),
            bench.plan,
            &compiler,
            Variant::Plain,
        )?;
        let mut command = Command::new(&program.executable);
        command.envs(environment.iter().copied());
        let mut target = Target::start_under(command, &program.executable)?;
        let beside_clang = Bench {
            plain: &plain,
            ..*bench
        };
        let pairs = beside_clang.beside(&mut target, &PHASES)?;
        Ok::<_, crate::error::Error>(pairs.rows("XRay", probe, &PHASES))
    })();
    rows.map_err(|error| error.to_string())
}
