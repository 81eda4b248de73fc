//! A machine of QEMU's, from its start to its end.
use std::fs::File;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// It ends with this process, however that ends; and when `over` says so, with an error. What it says itself goes
/// to `said`, or where this process's words go.
pub(crate) fn wait(
    qemu: &Command,
    said: Option<File>,
    over: &dyn Fn() -> bool,
) -> Result<ExitStatus, String> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]);
    command.arg(qemu.get_program()).args(qemu.get_args());
    command.stdin(Stdio::null());
    if let Some(said) = said {
        command.stderr(said);
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if !over() => std::thread::sleep(LOOK_AGAIN),
            ended => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(match ended {
                    Err(error) => error.to_string(),
                    Ok(_) => "no end in time".into(),
                });
            }
        }
    }
}
