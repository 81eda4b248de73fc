//! Whether this machine's processor runs the guest, or an emulator: found by trying, since a /dev/kvm may be there
//! that does not run a kernel as it is.
use crate::virtual_machine;
use crate::vnet::Bench;
use hopscope_guest::{Accelerator, Error, Guest, Kernel, Result, Run};
use std::fs::{File, OpenOptions, read_to_string};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// With KVM a guest is at its end after a second or two.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn found(bench: &Bench<'_, '_>, kernel: &Kernel) -> Accelerator {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    let reason = match opened {
        Err(error) => format!("/dev/kvm: {error}"),
        Ok(_) => match boots(bench, kernel) {
            Ok(()) => return Accelerator::Kvm,
            Err(error) => format!(
                "/dev/kvm is there, and did not run the guest: {}",
                error.to_string().lines().next().unwrap_or_default()
            )
            .replace("the guest hangs: ", ""),
        },
    };
    Accelerator::Emulated { reason }
}

fn boots(bench: &Bench<'_, '_>, kernel: &Kernel) -> Result<()> {
    let files = bench.files.join("trial");
    let mut guest = Guest::new(kernel, &bench.settings.hopscope, &files)?;
    guest.accelerator(Accelerator::Kvm);
    guest.step("nothing", "true");
    run(guest, &files, PATIENCE, &AtomicBool::new(false)).map(drop)
}

/// To its end, or until it took too long or is given up. What QEMU says goes to a file in `files`.
pub(super) fn run(
    guest: Guest,
    files: &Path,
    patience: Duration,
    given_up: &AtomicBool,
) -> Result<Run> {
    let words = files.join("qemu.stderr");
    let said = File::create(&words).map_err(Error::file("create", &words))?;
    let began = Instant::now();
    let over = || given_up.load(Ordering::Relaxed) || began.elapsed() > patience;
    guest.run(|qemu| {
        let ended = virtual_machine::wait(&qemu, Some(said), &over);
        let said = read_to_string(&words).unwrap_or_default();
        let words = said.lines().next().unwrap_or_default();
        match ended {
            Ok(status) if status.success() => Ok(status),
            // Its last words say more than its status.
            Ok(status) => Err(format!("{status}: {words}")),
            Err(why) => Err(format!("{why}: {words}")),
        }
    })
}
